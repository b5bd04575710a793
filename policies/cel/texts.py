"""What `%s` makes of lists and maps in Kubernetes; the engine writes them differently.

Source: cel-go `ext/formatting.go`, `formatList`, `formatMap` and `quoteForCEL`.
"""

import json
from typing import Any

from policies.cel.foreign import counted
from policies.cel.syntax import DYN, Type


@counted
def _written(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return write_value(value)


def write_value(value: Any) -> str:  # noqa: ANN401, PLR0911 - any JSON value, one line a kind
    """Write a JSON value as a literal of CEL.

    Raises:
        ValueError: for a text whose quoting differs between the languages.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case float():
            return f"{value:.6f}"
        case list():
            return f"[{', '.join(map(write_value, value))}]"
        case dict():
            pairs = sorted((_quoted(key), write_value(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable to be written")
    return json.dumps(text, ensure_ascii=False)


WRITING = {"lockstep_text": (((Type("list", (DYN,)),), (Type("map", (DYN, DYN)),)), _written)}
"""By name: the types it takes and its implementation."""
