"""The mark of `lockstep breakglass` on what it changed: who opened admission, when, why, and what was there. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

OPENED: Final = "lockstep.dev/breakglass"
"""Annotation on each object that was changed."""


class Opening(msgspec.Struct, frozen=True):
    """One opening.

    Attributes:
        reason: why, in the words of whoever did it.
        who: the user as the API server knows them, empty where it did not tell.
        since: when, RFC 3339.
        before: JSON pointer -> the value that was there; nothing where the pointer led nowhere.
    """

    reason: str
    who: str
    since: str
    before: Mapping[str, Any]


def read_opening(annotations: Mapping[str, str] | None) -> Opening | None:
    """Read the mark of an object; `None` where there is none.

    Raises:
        ValueError: there is something else.
    """
    text = (annotations or {}).get(OPENED)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Opening)
    except msgspec.MsgspecError as error:
        raise ValueError(
            f"metadata.annotations[{OPENED}]: must be a mark of lockstep breakglass, got {error}"
        ) from error
