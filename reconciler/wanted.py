"""The group object that a replica should have, and what is different about the one it has."""

from collections.abc import Container, Mapping

import msgspec

from gangs import keys
from gangs.resources import equal_resources
from reconciler.objects import POD, GroupObject, Pod
from schedulers.abilities import minimum_path
from schedulers.contract import GroupKind, Provider, Replica, Spec

Json = dict[str, object]


def keep_served(spec: Spec, kept: Container[str] | None) -> Spec:
    """Leave out the fields that the API server would drop without a word."""
    dropped = {one.field for one in spec.gated if kept is None or (one.shown_by or one.field) not in kept}
    if not dropped:
        return spec
    fields = {name: value for name, value in spec.fields.items() if name not in dropped}
    return msgspec.structs.replace(spec, fields=fields, fixed=tuple(path for path in spec.fixed if path not in dropped))


def refer(spec: Spec, reference: Mapping[str, object]) -> Spec:
    """Add the fields that refer to shared objects; they are written once."""
    if not reference:
        return spec
    return msgspec.structs.replace(spec, fields={**spec.fields, **reference}, fixed=(*spec.fixed, *reference))


def group_labels(replica: Replica) -> dict[str, str]:
    """Compute the labels of a group object: ours, and LWS's so that a set's groups can be selected."""
    return {
        keys.LOCKSTEP_GROUP: replica.group,
        keys.LWS_NAME: replica.lws,
        keys.GROUP_INDEX: str(replica.index),
        keys.REVISION: replica.revision,
    }


def group_object(replica: Replica, kind: GroupKind, spec: Spec, leader: Pod) -> Json:
    """Build the whole object for its creation.

    Its controller is the leader pod, so that it goes with the incarnation. `blockOwnerDeletion` stays unset: see
    DECISIONS.md.
    """
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": replica.group,
            "namespace": replica.namespace,
            "labels": group_labels(replica),
            **({"annotations": dict(spec.annotations)} if spec.annotations else {}),
            "ownerReferences": [owner_reference(leader)],
        },
        "spec": dict(spec.fields),
    }


def owner_reference(leader: Pod) -> Json:
    """Name the leader pod as the controller of its group."""
    return controller_reference("v1", POD, leader.metadata.name, leader.metadata.uid)


def controller_reference(api_version: str, kind: str, name: str, uid: str) -> Json:
    """Build the owner reference of a controller."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def difference(replica: Replica, spec: Spec, live: GroupObject) -> Json | None:
    """Compute the merge patch (RFC 7386) that gives our fields their values back; `None` when nothing is amiss.

    Only fields we own are compared, one by one; what is written once is not; fields of others are not looked at. The
    patch names the object's UID, so that it can't hit a successor of the same name.
    """
    changes: Json = {}
    _compare("", spec.fields, live.spec, spec, changes)
    marks = _marks(replica, spec, live)
    if not changes and not marks:
        return None
    patch: Json = {"metadata": {"uid": live.metadata.uid, **marks}}
    if changes:
        patch["spec"] = changes
    return patch


def _marks(replica: Replica, spec: Spec, live: GroupObject) -> Json:
    """Give the labels and annotations of ours that differ."""
    pairs = {
        "labels": (group_labels(replica), live.metadata.labels or {}),
        "annotations": (spec.annotations, live.metadata.annotations or {}),
    }
    changes = {
        where: {key: value for key, value in wanted.items() if have.get(key) != value}
        for where, (wanted, have) in pairs.items()
    }
    return {where: changed for where, changed in changes.items() if changed}


def minimum_of(spec: Mapping[str, object], path: str) -> int | None:
    """Read the minimum from a group object's spec, at a dotted path."""
    value = value_at(spec, path)
    return value if isinstance(value, int) else None


def live_minimum(live: GroupObject, provider: Provider) -> int | None:
    """Read the minimum from a live group object, whatever its version."""
    paths = dict.fromkeys(minimum_path(provider, kind) for kind in provider.kinds)
    found = (minimum_of(live.spec, path) for path in paths)
    return next((minimum for minimum in found if minimum is not None), None)


def value_at(spec: Mapping[str, object], path: str) -> object:
    """Give what stands in a spec at a dotted path, where a number is an index of a list; `None` for nothing."""
    value: object = spec
    for step in path.split("."):
        if isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _compare(path: str, wanted: Mapping[str, object], live: Mapping[str, object], spec: Spec, changes: Json) -> None:
    for name, value in wanted.items():
        where = f"{path}.{name}" if path else name
        have = live.get(name)
        if where in spec.fixed:
            continue
        if where in spec.quantities:
            if not _same_amounts(value, have):
                changes[name] = _replacing(value, have)
        elif isinstance(value, Mapping):
            below: Json = {}
            _compare(where, value, have if isinstance(have, Mapping) else {}, spec, below)
            if below:
                changes[name] = below
        elif value != have:
            changes[name] = value


def _same_amounts(wanted: object, have: object) -> bool:
    if not isinstance(wanted, Mapping) or not isinstance(have, Mapping | None):
        return False
    return equal_resources(wanted, have)


def _replacing(wanted: object, have: object) -> Json:
    """Give the merge patch that makes a map exactly what is wanted: keys too many go."""
    assert isinstance(wanted, Mapping)  # noqa: S101 - `_same_amounts` has looked
    surplus = set(have) - set(wanted) if isinstance(have, Mapping) else set()
    return {**wanted, **dict.fromkeys(sorted(surplus), None)}
