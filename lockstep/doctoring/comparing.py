"""What is different between an object as it was shipped and as it is in the cluster. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

DEFAULTS: Final[Mapping[str, object]] = {
    "matchPolicy": "Equivalent",
    "objectSelector": {},
    "namespaceSelector": {},
    "scope": "*",
    "port": 443,
    "reinvocationPolicy": "Never",
    "failurePolicy": "Fail",
}
"""What the API server writes where nothing was said."""

NAMED: Final = "name"


class Difference(msgspec.Struct, frozen=True):
    """One field that differs.

    Attributes:
        path: field path.
        shipped: how it was shipped, `None` for not at all.
        live: how it is, `None` for not at all.
    """

    path: str
    shipped: object
    live: object

    def __str__(self) -> str:
        """Render as `<path>: must be <shipped>, got <live>`."""
        if self.shipped is None:
            return f"{self.path}: must not be there, got {shown(self.live)}"
        return f"{self.path}: must be {shown(self.shipped)}, got {shown(self.live)}"


def differences(shipped: Any, live: Any, path: str = "", *, exact: bool = True) -> Iterator[Difference]:  # noqa: ANN401
    """Compare two values of JSON.

    Args:
        shipped: as it was shipped.
        live: as it is.
        path: where they are.
        exact: whether fields that were not shipped are differences, unless they are the API server's defaults.
    """
    if isinstance(shipped, Mapping) and isinstance(live, Mapping):
        yield from _of_maps(shipped, live, path, exact=exact)
    elif isinstance(shipped, list) and isinstance(live, list) and _can_be_paired(shipped, live):
        for number, (one, other) in enumerate(zip(shipped, live, strict=True)):
            yield from differences(one, other, f"{path}[{_title(one, number)}]", exact=exact)
    elif shipped != live:
        yield Difference(path, shipped, live)


def _of_maps(shipped: Mapping[str, Any], live: Mapping[str, Any], path: str, *, exact: bool) -> Iterator[Difference]:
    for key, value in shipped.items():
        inside = f"{path}.{key}" if path else key
        if key in live:
            yield from differences(value, live[key], inside, exact=exact)
        elif value not in ({}, [], None, ""):
            yield Difference(inside, value, None)
    more = (key for key in live if key not in shipped) if exact else ()
    for key in more:
        if live[key] not in ({}, [], None) and DEFAULTS.get(key) != live[key]:
            yield Difference(f"{path}.{key}" if path else key, None, live[key])


def _can_be_paired(shipped: Sequence[Any], live: Sequence[Any]) -> bool:
    """Lists of objects are compared one by one where they have the same number of them; others as a whole."""
    return len(shipped) == len(live) and all(isinstance(each, Mapping) for each in (*shipped, *live))


def _title(one: Any, number: int) -> str:  # noqa: ANN401
    name = one.get(NAMED) if isinstance(one, Mapping) else None
    return str(name or number)


def shown(value: object) -> str:
    """Render a value for a message."""
    if value is None:
        return "nothing"
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 160 else f"{text[:157]}..."  # noqa: PLR2004 - about a line
