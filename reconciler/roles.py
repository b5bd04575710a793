"""The DisaggregatedSet that a replica's LeaderWorkerSet is a role of.

Source: kubernetes-sigs/lws `api/disaggregatedset/v1/disaggregatedset_types.go`, `pkg/controllers/disaggregatedset`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gangs import keys, late
from reconciler.objects import LeaderWorkerSetSpec, Metadata
from reconciler.replicas import Sight
from schedulers.contract import GroupKind, Roles, SetRole

DISAGGREGATED_SETS: Final = GroupKind("disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet", "disaggregatedsets")
"""`schedulers.native_objects.DISAGGREGATED`, in the words of this package."""

MARKS: Final = (keys.DISAGGREGATED_NAME, keys.DISAGGREGATED_SLICE, keys.DISAGGREGATED_REVISION)


class _Role(msgspec.Struct, frozen=True):
    """One of a DisaggregatedSet's `spec.roles`: a name and the template of an LWS."""

    name: str
    metadata: Metadata = Metadata()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


def read_roles(sight: Sight) -> Roles | None:
    """Read the roles from the set that controls the LWS; `None` where there is none, or it can't be read."""
    above = None if sight.lws is None else sight.lws.metadata.controller
    if above is None or above.kind != keys.DISAGGREGATED_KIND:
        return None
    owner, labels = sight.find(DISAGGREGATED_SETS, above.name), sight.leader.labels
    role = labels.get(keys.DISAGGREGATED_ROLE)
    if owner is None or owner.metadata.uid != above.uid or role is None:
        return None
    roles = _roles(owner.spec)
    marks = {key: labels[key] for key in MARKS if key in labels}
    known = role in (one.name for one in roles) and keys.DISAGGREGATED_REVISION in marks
    started = {one.name for one in roles} <= sight.whole_roles(marks)
    return Roles(above.name, marks, role, roles, started) if known else None


def _roles(spec: Mapping[str, object]) -> tuple[SetRole, ...]:
    try:
        given = msgspec.convert(spec.get("roles"), list[_Role])
    except msgspec.ValidationError:
        return ()
    return tuple(_role(one) for one in given)


def _role(one: _Role) -> SetRole:
    template = one.spec.leader_worker_template
    size = template.size or 1
    why = late.why_late(one.spec.startup_policy, one.metadata.annotations or {}, size)
    leader = template.leader_template or template.worker_template
    return SetRole(one.name, size if why is None else 1, leader.spec.priority_class_name)
