"""Clocks that tests move."""

import datetime as dt


class HandClock:
    """A clock that stands still unless moved."""

    def __init__(self) -> None:
        """Start at some time."""
        self.time = 1000.0

    def now(self) -> float:
        """The time."""
        return self.time

    def utc(self) -> dt.datetime:
        """The same as a date."""
        return dt.datetime.fromtimestamp(self.time, dt.UTC)
