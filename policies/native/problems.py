"""What the API server would say against an object."""

import json
from typing import Final

import msgspec

REQUIRED: Final = "Required"
INVALID: Final = "Invalid"
DUPLICATE: Final = "Duplicate"
FORBIDDEN: Final = "Forbidden"
NOT_SUPPORTED: Final = "NotSupported"
TOO_MANY: Final = "TooMany"
TOO_LONG: Final = "TooLong"
UNREADABLE: Final = "BadRequest"
"""The object can't even be decoded: a wrong type, a number that doesn't fit."""
DROPPED: Final = "Dropped"
"""Not refused: the API server removes the field in silence."""

LONGEST_SHOWN: Final = 80

Step = str | int
Path = tuple[Step, ...]


class Problem(msgspec.Struct, frozen=True, order=True):
    """One problem.

    Attributes:
        path: field, as the API server writes it: `spec.podGroupTemplates[0].name`.
        type: the API server's word for the kind of error.
        message: `<path>: must <rule>, got <value>`.
    """

    path: str
    type: str
    message: str


def problem(path: str | Path, type_: str, rule: str, value: object) -> Problem:
    """Make one; `rule` follows "must"."""
    where = path if isinstance(path, str) else field_path(path)
    return Problem(where, type_, f"{where}: must {rule}, got {shown(value)}")


def field_path(path: Path) -> str:
    """Render a path: `a.b[0].c`; the whole object is `object`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "object"


def shown(value: object) -> str:
    """Render a value for a message: JSON in one line, cut."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
