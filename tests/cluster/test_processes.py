"""Processes end when asked, and with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import processes
from tests.cluster.processes import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROOT = Path(__file__).parents[2]
_STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"]
_STARTS_ONE = """
import pathlib, sys, time
from tests.cluster.processes import Process
child = Process("child", ["/bin/sleep", "100"], pathlib.Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
time.sleep(100)
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    """A process that sleeps."""
    process = Process("sleeper", ["/bin/sleep", "100"], tmp_path / "log")
    yield process
    process.kill()


def _until(condition: Callable[[], object], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_nothing_outlives_a_killed_test_process(tmp_path: Path) -> None:
    """KILL to the process that started it ends the component too."""
    command = [sys.executable, "-c", _STARTS_ONE, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _runs(pid)
        parent.kill()
    assert _until(lambda: not _runs(pid))


def test_component_outlives_the_thread_that_started_it(sleeper: Process) -> None:
    """A component that a short-lived thread started goes on when that thread has ended."""
    thread = threading.Thread(target=sleeper.start)
    thread.start()
    thread.join()
    assert not _until(lambda: not sleeper.alive, 0.5)


def test_stop_kills_what_ignores_term(tmp_path: Path) -> None:
    """A process that ignores TERM is killed after the time given, with its children."""
    process = Process("stubborn", _STUBBORN, tmp_path / "log")
    process.start()
    assert _until(lambda: "ready" in process.tail())
    pid = process.pid
    assert pid is not None
    process.stop(0.3)
    assert not _runs(pid)
    assert process.died is None


def test_unexpected_end_is_seen(sleeper: Process) -> None:
    """The exit code of a process that nobody stopped is there; after a stop there is none."""
    sleeper.start()
    assert (sleeper.alive, sleeper.died) == (True, None)
    assert sleeper.pid is not None
    os.kill(sleeper.pid, signal.SIGKILL)
    assert _until(lambda: sleeper.died == -signal.SIGKILL)
    assert sleeper.pid is None


def test_ports_are_given_once() -> None:
    """No port is given twice, and none that the kernel may give to an outgoing connection."""
    given = [processes.free_port() for _ in range(50)]
    assert len(set(given)) == 50
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(given) < first_outgoing


def test_tail_is_the_end_of_the_log(tmp_path: Path) -> None:
    """The last lines of a long log, all of a short one, nothing of one that is not there."""
    log = tmp_path / "log"
    process = Process("talker", ["/bin/sh", "-c", "seq 1 100000"], log)
    assert process.tail() == ""
    process.start()
    assert _until(lambda: process.died == 0)
    process.kill()
    assert process.tail(2) == "99999\n100000"
