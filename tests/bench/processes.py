"""The two servers of a comparison as processes: started, watched and stopped."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER_CORE = 0
CLIENT_CORE = 1

_START_SECONDS = 20.0
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Peer:
    """A running server: its name in the table, where it answers, and the first of its processes."""

    name: str
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """CPU time that all its processes have used so far."""
        return sum(_running_seconds(pid) for pid in self._pids())

    def worker_mib(self) -> float:
        """Resident memory of its largest process."""
        page = os.sysconf("SC_PAGE_SIZE")
        return max(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._pids()) * page / _MIB

    def _pids(self) -> list[int]:
        pids = [self.pid]
        for pid in pids:
            pids.extend(_children(pid))
        return pids


@contextmanager
def running_lockstep(folder: Path) -> Iterator[Peer]:
    """Run `lockstep serve` with the certificate in `folder`; its log goes there too."""
    log = folder / "lockstep.log"
    arguments = ["--addr", "127.0.0.1:0", "--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key")]
    command = [sys.executable, "-m", "lockstep", "serve", *arguments, "--drain-seconds", "0"]
    with log.open("wb") as output:
        with on_core(SERVER_CORE):
            process = subprocess.Popen(command, stderr=output)
        with process, _ended(process):
            yield Peer("lockstep", f"https://{_announced(log)}/mutate", process.pid)


@contextmanager
def running_gopeer(binary: Path, folder: Path) -> Iterator[Peer]:
    """Run the Go peer with the certificate in `folder`."""
    command = [str(binary), "-cert", str(folder / "tls.crt"), "-key", str(folder / "tls.key")]
    with on_core(SERVER_CORE):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process, _ended(process):
        address = process.stdout.readline().strip() if process.stdout else ""
        yield Peer("lean Go", f"https://{address}/mutate", process.pid)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Let processes that are started meanwhile have one core, with all the threads that they will make."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[core % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def _ended(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> Iterator[None]:
    """End a server after use."""
    try:
        yield
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def _announced(log: Path) -> str:
    """Where the server says that it listens."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if '"message":"serving"' in line and line.endswith("}"):
                return str(json.loads(line)["addr"])
        time.sleep(0.05)
    raise RuntimeError(f"lockstep serve did not start:\n{log.read_text()}")


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def _running_seconds(pid: int) -> float:
    """Time on a CPU of all threads of a process, from the scheduler's own count in nanoseconds."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
