"""Counts the calls of Python functions from within the engine.

The binding loses 48 to 200 bytes a call (measured, 0.1.3), so only quantities and texts of lists and maps are Python, and
whoever serves for long recycles its process by this count.
"""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

_Result = TypeVar("_Result")
_counter = count()


def calls() -> int:
    """Give the number of calls so far; each has cost this process up to 200 bytes for good."""
    _, arguments = _counter.__reduce__()[:2]
    return int(arguments[0])


def counted(implementation: Callable[..., _Result]) -> Callable[..., _Result]:
    """Count each call of a function."""

    def call(*args: object) -> _Result:
        next(_counter)
        return implementation(*args)

    return call
