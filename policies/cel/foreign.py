"""Counts the calls of Python functions from within the engine.

The binding loses 48 to 200 bytes a call (measured, 0.1.3), so only quantities and texts of lists and maps are Python,
and whoever serves for long recycles its process by this count.
"""

from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")
_calls = [0]


def calls() -> int:
    """Give the number of calls so far (threads may lose some); each has cost this process up to 200 bytes for good."""
    return _calls[0]


def counted(implementation: Callable[..., _Result]) -> Callable[..., _Result]:
    """Count each call of a function."""

    def call(*args: object) -> _Result:
        _calls[0] += 1
        return implementation(*args)

    return call
