"""Log lines as JSON on standard error, which never hold up an answer.

A pod's log is a pipe that someone else empties. When it is full, a plain write would stop the event loop and with it
every admission, so a line that does not fit is dropped and counted.
"""

import logging
import os
import select
import time
from collections.abc import Iterable
from typing import Any

import msgspec

_PIPE_BUF = 4096
"""Bytes that a pipe takes whole once it says that it can be written to (POSIX: at least 512; Linux: 4096)."""

_encode = msgspec.json.Encoder().encode


class LineWriter:
    """Writes lines to a file descriptor without waiting for it.

    Attributes:
        dropped: lines that did not fit.
    """

    def __init__(self, descriptor: int = 2) -> None:
        """Write to `descriptor`, standard error as it comes."""
        self.dropped = 0
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def write(self, fields: dict[str, Any]) -> None:
        """Write `fields` as one line, after the present time."""
        self.write_all([make_line(time.time(), fields)])

    def write_all(self, lines: Iterable[bytes]) -> None:
        """Write whole lines, as many at a time as a pipe takes."""
        ready: list[bytes] = []
        size = 0
        for line in lines:
            if ready and size + len(line) > _PIPE_BUF:
                self._write_lines(ready)
                ready, size = [], 0
            ready.append(line)
            size += len(line)
        if ready:
            self._write_lines(ready)

    def _write_lines(self, lines: list[bytes]) -> None:
        text = b"".join(lines)
        for start in range(0, len(text), _PIPE_BUF):
            if not self._write_piece(text[start : start + _PIPE_BUF]):
                self.dropped += len(lines)
                return

    def _write_piece(self, piece: bytes) -> bool:
        if not any(event & select.POLLOUT for _, event in self._poll.poll(0)):
            return False
        try:
            os.write(self._descriptor, piece)
        except OSError:
            return False
        return True


def make_line(at: float, fields: dict[str, Any]) -> bytes:
    """Make the line that says `fields` at the Unix time `at`."""
    return _encode({"ts": _timestamp(at), **fields}) + b"\n"


class LineHandler(logging.Handler):
    """Hands the records of Python's logging to a `LineWriter`."""

    def __init__(self, writer: LineWriter) -> None:
        """Write through `writer`."""
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a traceback goes along as text."""
        fields = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        if record.exc_info:
            fields["traceback"] = logging.Formatter().formatException(record.exc_info)
        self._writer.write(fields)


def log_as_lines() -> None:
    """Send all logs of this process to standard error as such lines."""
    logging.basicConfig(level=logging.INFO, handlers=[LineHandler(LineWriter())])


def _timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    whole = int(seconds)
    return f"{_whole_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


_last_second: tuple[int, str] = (0, "1970-01-01T00:00:00")


def _whole_second(seconds: int) -> str:
    """The date and time of a second; most lines share it with the line before."""
    global _last_second  # noqa: PLW0603  # a cache of one entry
    if _last_second[0] != seconds:
        _last_second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    return _last_second[1]
