"""The clocks of the reconciler: one that only runs forward, one for what people read."""

import datetime as dt
import time
from typing import Final, Protocol

_FORWARD: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Where time comes from; tests pass their own."""

    def now(self) -> float:
        """Seconds since some start; never goes back, and goes on while the machine sleeps."""

    def utc(self) -> dt.datetime:
        """Wall clock in UTC, for timestamps that people read; nothing is decided by it."""


class SystemClock:
    """The machine's clocks.

    Linux stops its monotonic clock while suspended, so a process that wakes up would still believe in its lease;
    the boot-time clock goes on.
    """

    def now(self) -> float:
        """Seconds since boot."""
        return time.clock_gettime(_FORWARD)

    def utc(self) -> dt.datetime:
        """Wall clock in UTC."""
        return dt.datetime.now(tz=dt.UTC)


def micro_time(moment: dt.datetime) -> str:
    """Render a `MicroTime`: always six digits, always UTC."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_time(moment: dt.datetime) -> str:
    """Render a `Time`: whole seconds, always UTC."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
