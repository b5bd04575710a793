"""Processes of a control plane: start, stop, look at their logs; none outlives us."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIFELINE = str(Path(__file__).with_name("lifeline.py"))

# The kernel ties a process to the *thread* that started it. One thread that lives as long as we do starts all of them.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lifeline")

# Below the ports that the kernel gives to outgoing connections: a server that is stopped finds its port free again.
_PORTS = range(20000, 32000)
_given: set[int] = set()


def free_port() -> int:
    """Give a loopback port that is free now and was not given before by this process.

    Raises:
        RuntimeError: no free one found.
    """
    for port in random.SystemRandom().sample(_PORTS, 200):
        with socket.socket() as probe:
            if port not in _given and probe.connect_ex(("127.0.0.1", port)) != 0 and _binds(port):
                _given.add(port)
                return port
    raise RuntimeError("port: must be free on loopback, got 200 that are not")


def _binds(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass
class Process:
    """One command of the control plane. It can be stopped and started again; its log is appended to."""

    name: str
    command: list[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.alive:
            return
        self._running = _STARTER.submit(self._spawn).result()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", _LIFELINE, str(os.getpid()), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | dict(self.environment),
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to its process group, if it runs."""
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, number)

    def stop(self, seconds: float = 10) -> None:
        """TERM, and KILL after so many seconds; returns when it has ended."""
        self.send(signal.SIGTERM)
        self.join(seconds)

    def kill(self) -> None:
        """KILL; returns when it has ended."""
        self.send(signal.SIGKILL)
        self.join(10)

    def join(self, seconds: float) -> None:
        """Wait for its end, and KILL it when it takes longer than so many seconds."""
        if self._running is None:
            return
        try:
            self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self._running.wait(10)
        self._running = None

    @property
    def alive(self) -> bool:
        """Is it running?"""
        return self._running is not None and self._running.poll() is None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._running.pid if self._running is not None and self.alive else None

    @property
    def died(self) -> int | None:
        """The exit code when it ended though nobody stopped it."""
        return None if self._running is None else self._running.poll()

    def tail(self, lines: int = 15, width: int = 300) -> str:
        """Return the last lines of its log, each cut at `width`."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 1000 * lines))
            last = log.read().decode(errors="replace").splitlines()[-lines:]
        return "\n".join(line[:width] for line in last)
