"""Workload, PodGroup, CompositePodGroup and Pod judged offline as the API server of a version would judge them.

Of a Pod only its metadata and what ties it to a group are looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from policies.native import v1_35, v1_36, v1_37
from policies.native.admitting import admission_problems
from policies.native.metadata import metadata_change_problems, metadata_problems
from policies.native.preparing import Json, is_too_large, prepare, prepare_stored, without_nulls
from policies.native.problems import DUPLICATE, FORBIDDEN, INVALID, UNREADABLE, Path, Problem, problem
from policies.native.shapes import MOST_PROBLEMS, Shape, value_at
from policies.native.trees import tree_problems
from policies.native.updates import broken, is_unchanged
from policies.targets import ALPHA_138, EVICTION, Target

STATUS: Final = "status"

_GROUP: Final = "scheduling.k8s.io/"
_OURS: Final = ("Workload", "PodGroup", "CompositePodGroup")


def _shapes(kinds: Mapping[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], Shape]:
    return {key: Shape(schema) for key, schema in kinds.items()}


SHAPES: Final[Mapping[str, Mapping[tuple[str, str], Shape]]] = {
    "1.35": _shapes(v1_35.KINDS),
    "1.36": _shapes(v1_36.KINDS),
    "1.37": _shapes(v1_37.KINDS),
    ALPHA_138: _shapes(v1_37.KINDS_138_ALPHA),
}
"""Kinds by version, and by apiVersion and kind."""


def validate(
    content: object,
    old: object = None,
    target: Target = Target(),  # noqa: B008 - frozen
    existing: Sequence[Mapping[str, Any]] | None = None,
    subresource: str = "",
) -> list[Problem]:
    """Find why the API server would refuse an object; nothing is found about kinds that are not ours.

    A manifest's namespace has to be filled in before, as a client does with the one it is working in.

    Args:
        content: the object, as JSON; anything at all is fine.
        old: the stored object where this is an update.
        target: version and gates of the API server.
        existing: all other objects there are, for admission plugins that look them up; None where they aren't known,
            and those plugins are not played.
        subresource: `status` for an update of it.

    Returns:
        Problems in the order of their paths in the object's kind, at most 100; none when it would be accepted.
    """
    return _judged(content, old, target, existing, subresource)[0]


def find_dropped(content: object, old: object = None, target: Target = Target()) -> list[Problem]:  # noqa: B008
    """Find the fields of an object that the API server would leave out in silence.

    Returns:
        Problems of type `Dropped`; none where the object can't be decoded.
    """
    return _judged(content, old, target, None, "")[1]


Judgement = tuple[list[Problem], list[Problem]]
"""Why it is refused, and what would be left out."""


def _judged(
    content: object, old: object, target: Target, existing: Sequence[Mapping[str, Any]] | None, subresource: str
) -> Judgement:
    rule = is_too_large(content) or is_too_large(old)
    if rule is not None:
        return [problem("object", UNREADABLE, rule, "more")], []
    if not isinstance(content, dict):
        return [problem("object", UNREADABLE, "be an object", content)], []
    shape, unserved = _shape_of(content, target)
    if shape is None:
        return unserved, []
    written, stored = without_nulls(content), without_nulls(old)
    unreadable = _undecodable(written, stored, shape)
    if unreadable:
        return unreadable, []
    if stored is None:
        return _created(written, shape, target, existing)
    change = _status_update if subresource == STATUS else _updated
    return change(written, prepare_stored(stored, shape.schema, target), shape, target)


def _undecodable(written: object, stored: object, shape: Shape) -> list[Problem]:
    found = shape.undecodable(written)
    if not found and stored is not None and shape.undecodable(stored):
        return [problem("object", UNREADABLE, "be the update of an object of its kind", stored)]
    return found


def _shape_of(content: Json, target: Target) -> tuple[Shape | None, list[Problem]]:
    version, kind = content.get("apiVersion"), content.get("kind")
    served = SHAPES[target.version]
    if not isinstance(version, str) or not isinstance(kind, str):
        return None, []
    shape = served.get((version, kind))
    if shape is not None or kind not in _OURS or not version.startswith(_GROUP):
        return shape, []
    choices = [other for other, served_kind in served if served_kind == kind]
    rule = f"be {' or '.join(choices)} for a {kind} on Kubernetes {target.version}"
    if not choices:
        rule = f"be of a version of Kubernetes that has {kind}, which {target.version} has not"
    return None, [problem("apiVersion", UNREADABLE, rule, version)]


def _created(written: Json, shape: Shape, target: Target, existing: Sequence[Mapping[str, Any]] | None) -> Judgement:
    written = {key: value for key, value in written.items() if key != STATUS}
    prepared = prepare(written, None, shape.schema, target)
    found = _first(
        (found for _, found in shape.problems(prepared.content, written)),
        metadata_problems(prepared.content["metadata"]),
        _relations(prepared.content, target),
    )
    if not found and existing is not None:
        found = list(admission_problems(prepared.content, existing, target))
    return found, prepared.dropped


def _updated(written: Json, stored: Json, shape: Shape, target: Target) -> Judgement:
    written = {**written, **{key: value for key, value in stored.items() if key == STATUS}}
    prepared = prepare(written, stored, shape.schema, target)
    content = prepared.content
    changes = broken(content, stored, shape.schema)
    found = _first(
        (found for change in changes for found in change.problems),
        (
            found
            for path, found in shape.problems(content, written)
            if not any(change.covers(path, found) for change in changes)
            and not is_unchanged(content, stored, _judged_at(path, found), shape.schema)
        ),
        metadata_change_problems(content["metadata"], stored["metadata"]),
        (found for found in metadata_problems(content["metadata"]) if not _is_about_names(found)),
        _relations(content, target),
    )
    return found, prepared.dropped


def _status_update(written: Json, stored: Json, shape: Shape, target: Target) -> Judgement:
    written = {**stored, STATUS: written.get(STATUS, {})}
    if "status" not in shape.schema["properties"]:
        return [], []
    prepared = prepare(written, stored, shape.schema, target)
    shown = (found for path, found in shape.problems(prepared.content, written) if path[:1] == (STATUS,))
    return _first(shown, _unknown_claims(prepared.content)), prepared.dropped


def _first(*found: Iterable[Problem]) -> list[Problem]:
    return list(islice(chain(*found), MOST_PROBLEMS))


def _judged_at(path: Path, found: Problem) -> Path:
    """Give the field that has to be unchanged for a problem not to be looked for: a list for a repeated item."""
    if found.type != DUPLICATE:
        return path
    return path[: max(position for position, step in enumerate(path) if isinstance(step, int))]


def _is_about_names(found: Problem) -> bool:
    """Whether a problem is one that only a creation is asked about."""
    return found.path in ("metadata.name", "metadata.generateName", "metadata.namespace")


def _relations(content: Json, target: Target) -> Iterator[Problem]:
    """Find what is wrong with several fields taken together."""
    if content["kind"] == "Workload" and target.version not in ("1.35", "1.36"):
        yield from tree_problems(content["spec"])
    if content["kind"] == "Pod" and target.enabled(EVICTION) and "schedulingGroup" in content["spec"]:
        responders = content["spec"].get("evictionResponders")
        if responders:
            yield problem("spec.schedulingGroup", FORBIDDEN, "be left out where evictionResponders is set", responders)


def _unknown_claims(content: Json) -> Iterator[Problem]:
    claims = value_at(content, ("spec", "resourceClaims"))
    known = {claim.get("name") for claim in claims} if isinstance(claims, list) else set()
    for index, status in enumerate(content[STATUS].get("resourceClaimStatuses", ())):
        if status.get("name") not in known:
            path = (STATUS, "resourceClaimStatuses", index, "name")
            yield problem(path, INVALID, "be the name of one of spec.resourceClaims", status.get("name"))
