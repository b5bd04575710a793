"""JSON values as the API server decodes them, before the engine sees them."""

import re
from typing import Any, Final

import msgspec

DEEPEST: Final = 200
"""Levels of a value."""

_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1
_HALVES: Final = re.compile("[\ud800-\udfff]")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")


class TooDeepError(ValueError):
    """A value of more levels than `DEEPEST`."""


def as_decoded(value: Any) -> tuple[Any, int]:  # noqa: ANN401 - JSON
    """Give the value as the API server reads it: whole numbers beyond 64 bits are floating, half a character is none.

    Most values hold neither and are given back as they are.

    Returns:
        The value, and its size in bytes of JSON.

    Raises:
        TooDeepError: it has too many levels.
    """
    try:
        encoded = msgspec.json.encode(value)
        if not _LONG_NUMBER.search(encoded):
            return value, len(encoded)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        pass
    decoded = _decoded(value, 0)
    return decoded, len(msgspec.json.encode(decoded))


def extent_of(value: Any) -> tuple[int, int]:  # noqa: ANN401 - JSON
    """Measure a value: the members of its longest list or object, the characters of its longest text."""
    widest = longest = 0
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            longest = max(longest, len(item))
        elif isinstance(item, list | tuple | dict):
            widest = max(widest, len(item))
            stack.extend(item.values() if isinstance(item, dict) else item)
    return widest, longest


def _decoded(value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case bool() | float() | None:
            return value
        case int():
            return value if _LEAST <= value <= _GREATEST else float(value)
    if depth == DEEPEST:
        raise TooDeepError(f"must have at most {DEEPEST} levels, got more")
    if isinstance(value, list | tuple):
        return [_decoded(item, depth + 1) for item in value]
    return {_decoded(key, depth): _decoded(item, depth + 1) for key, item in value.items()}
