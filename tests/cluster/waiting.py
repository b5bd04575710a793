"""Wait for what a cluster does in its own time, and say what was seen last when it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from tests.cluster.client import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_EVERY = 0.2
_LAST_SHOWN = 2000
_NOT_YET = (ApiError, UnreachableError, LookupError, AssertionError)


class WaitError(AssertionError):
    """Something did not happen in time, or stopped being so."""


class Waiter:
    """Polls conditions; `report` gives what to print below a failure."""

    def __init__(self, report: Callable[[], str]) -> None:
        """Remember where reports come from."""
        self._report = report

    def wait(self, what: str, condition: Callable[[], T], seconds: float = 30, every: float = _EVERY) -> T:
        """Poll until `condition()` is true and return its value.

        A refusal, no answer, a missing key and a failed assert are "not yet".

        Raises:
            WaitError: not within so many seconds.
        """
        end = time.monotonic() + seconds
        while True:
            last: Any = None
            try:
                last = condition()
                if last:
                    return last  # type: ignore[no-any-return]
            except WaitError:
                # A condition that waits itself, or knows that there is nothing to wait for.
                raise
            except _NOT_YET as error:
                last = error
            if time.monotonic() > end:
                raise WaitError(self._message(f"{what}: must be within {seconds:g} s", last))
            time.sleep(every)

    def holds(self, what: str, condition: Callable[[], object], seconds: float = 5, every: float = _EVERY) -> None:
        """Poll for so many seconds; `condition()` must be true each time.

        Raises:
            WaitError: it was false, or failed.
        """
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            try:
                last = condition()
            except _NOT_YET as error:
                last = error
            if not last or isinstance(last, Exception):
                raise WaitError(self._message(f"{what}: must hold for {seconds:g} s, ended after {passed:.1f} s", last))
            time.sleep(every)

    def _message(self, what: str, last: object) -> str:
        return f"{what}, got {str(last)[:_LAST_SHOWN]!r}\n{self._report()}"
