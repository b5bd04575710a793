"""The patches that open admission and close it again. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.doctoring.opening import OPENED, Opening, read_opening
from lockstep.doctoring.places import BINDING, Json

Operation = dict[str, Any]

OPEN_POLICY: Final = "Ignore"
OPEN_ACTIONS: Final = ["Warn", "Audit"]
NEVER: Final = {"name": "lockstep-breakglass", "expression": "false"}
"""A match condition with which the API server never calls a webhook."""

ANNOTATION: Final = "/metadata/annotations/" + OPENED.replace("/", "~1")


def opening_patch(content: Json, reason: str, who: str, since: str, *, uncalled: bool = False) -> list[Operation]:
    """Compute the JSON patch that opens one object and marks it; empty when it is open already.

    Args:
        content: a webhook configuration, or a policy's binding.
        reason: why.
        who: the user.
        since: now, RFC 3339.
        uncalled: whether webhooks are not to be called at all.
    """
    if read_opening(content["metadata"].get("annotations")) is not None:
        return []
    changes = list(_of_binding(content) if content["kind"] == BINDING else _of_webhooks(content, uncalled=uncalled))
    before = {path: _at(content, path) for path, _ in changes}
    mark = msgspec.json.encode(Opening(reason, who, since, before)).decode()
    head = [] if content["metadata"].get("annotations") else [_add("/metadata/annotations", {})]
    return [_unchanged(content), *head, _add(ANNOTATION, mark), *(_add(path, value) for path, value in changes)]


def closing_patch(content: Json) -> list[Operation]:
    """Compute the JSON patch that puts back what was there; empty when the object is not open.

    Raises:
        ValueError: its mark can't be read.
    """
    opening = read_opening(content["metadata"].get("annotations"))
    if opening is None:
        return []
    back = [
        _add(path, value) if value is not None else {"op": "remove", "path": path}
        for path, value in opening.before.items()
    ]
    return [_unchanged(content), *back, {"op": "remove", "path": ANNOTATION}]


def _of_binding(content: Json) -> Iterator[tuple[str, Any]]:
    if content["spec"].get("validationActions") != OPEN_ACTIONS:
        yield "/spec/validationActions", OPEN_ACTIONS


def _of_webhooks(content: Json, *, uncalled: bool) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(content.get("webhooks") or ()):
        if entry.get("failurePolicy") != OPEN_POLICY:
            yield f"/webhooks/{number}/failurePolicy", OPEN_POLICY
        if uncalled:
            yield f"/webhooks/{number}/matchConditions", [*(entry.get("matchConditions") or ()), NEVER]


def _unchanged(content: Json) -> Operation:
    """Refuse the patch when someone has written in between: entries are named by their number."""
    return {"op": "test", "path": "/metadata/resourceVersion", "value": content["metadata"]["resourceVersion"]}


def _put_back(path: str, value: object) -> Operation:
    return {"op": "remove", "path": path} if value is None else _add(path, value)


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _at(content: Json, path: str) -> Any:  # noqa: ANN401
    value: Any = content
    for part in path.strip("/").split("/"):
        if isinstance(value, Sequence):
            value = value[int(part)]
        elif isinstance(value, Mapping):
            value = value.get(part)
    return value
