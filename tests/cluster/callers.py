"""Threads that call a server for as long as a test goes on."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Callers(ABC):
    """Some threads that all do `_run` from the beginning of a `with` to its end."""

    def __init__(self, number: int) -> None:
        """Prepare so many."""
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(number)]

    def __enter__(self) -> Self:
        """Begin to call."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Call no more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Call until `_stopping` is set."""
