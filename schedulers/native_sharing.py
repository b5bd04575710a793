"""What the native groups of several replicas share: the Workload of their revision, the CompositePodGroups of roles.

Sources: `native_objects.py`; KEP-4671 and KEP-6012; kubernetes/kubernetes
`pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go` (v1.37.2) for what composite groups mean.
"""

from collections.abc import Collection, Container, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from gangs import keys, names
from schedulers.contract import GroupKind, Replica, Roles
from schedulers.native_objects import (
    COMPOSITE,
    DISAGGREGATED,
    PARENT,
    TEMPLATE,
    V1ALPHA1,
    V1ALPHA2,
    controller_of,
    gates_of,
    reference,
    template_fields,
    workload_kind,
)
from schedulers.options import Option
from schedulers.sharing import Shared, Sharing

MOST_ROLES: Final = 8
"""Templates that a list of a Workload may have."""

ROOT: Final = "roles"
"""Name of the template of a DisaggregatedSet's composite group."""

OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        "podReference": Option(
            "how pods name their group: 1.36 and later, 1.35, or both while a cluster moves from 1.35 to 1.36",
            ("schedulingGroup", "workloadRef", "both"),
        ),
        "groups": Option(
            "PodGroups that stand alone, or that name the template of one Workload a revision",
            ("standalone", "workload"),
        ),
        "roles": Option(
            "roles of a DisaggregatedSet start apart, or the first replicas of all roles or none (CompositePodGroup)",
            ("apart", "together"),
        ),
    }
)


class Choices(msgspec.Struct, frozen=True):
    """What an administrator chose, by the names of `OPTIONS`; the defaults stand first there."""

    podReference: str = OPTIONS["podReference"].choices[0]  # noqa: N815 - the configuration's spelling
    groups: str = OPTIONS["groups"].choices[0]
    roles: str = OPTIONS["roles"].choices[0]


def shared_kinds(kind: GroupKind, choices: Choices) -> tuple[GroupKind, ...]:
    """List the kinds that are written, or read, beside a kind of group object."""
    if kind == V1ALPHA1:
        return ()
    together = choices.roles == "together" and kind != V1ALPHA2
    workloads = (workload_kind(kind),) if together or choices.groups == "workload" else ()
    return (*workloads, COMPOSITE, DISAGGREGATED) if together else workloads


def sharing(
    replica: Replica, kind: GroupKind, choices: Choices, served: Collection[GroupKind], kept: Container[str]
) -> Sharing:
    """Compute what a replica's group shares with others; it stands alone where the cluster lacks what that takes.

    kube-scheduler places all groups of one role that it can before it looks at the next, and gives all up when there is
    no room left for that one (seen on 1.37.2). So the composite holds the first replica of each role and no other; the
    others are gangs of their own, and wait until every role has started.
    """
    wanted, roles, apart = shared_kinds(kind, choices), replica.roles, False
    if workload_kind(kind) not in served or workload_kind(kind) not in wanted:
        return Sharing()
    if COMPOSITE in wanted and roles is not None:
        apart = COMPOSITE not in served or PARENT.field not in kept or not fit_together(roles)
        if not apart and replica.index == 0:
            return _of_roles(replica, roles, kind, kept)
        if not apart and not roles.started:
            return Sharing(waits=True)
    if choices.groups == "workload" and _fits_template(replica):
        return msgspec.structs.replace(_of_revision(replica, kind, kept), apart=apart)
    return Sharing(apart=apart)


def fit_together(roles: Roles) -> bool:
    """Tell whether roles can be one composite group: the scheduler wants one priority for all pods of it."""
    return len(roles.all) <= MOST_ROLES and len({role.priority_class for role in roles.all}) == 1


def _fits_template(replica: Replica) -> bool:
    """Tell whether a replica is built as its revision says: LWS 0.8 builds old revisions with the live size."""
    expected = replica.template_size in (None, replica.size)
    return expected and (replica.late is not None or replica.minimum == replica.size)


def _of_revision(replica: Replica, kind: GroupKind, kept: Container[str]) -> Sharing:
    name = names.shared_name(replica.namespace, replica.lws, "workload", replica.revision)
    minimum = replica.size if replica.late is None else 1
    fields = {"controllerRef": controller_of(replica), "podGroupTemplates": [_template(replica, kind, minimum, kept)]}
    marks = {keys.LWS_NAME: replica.lws, keys.REVISION: replica.revision}
    workload = Shared(workload_kind(kind), name, fields, marks, first=kind == V1ALPHA2)
    return Sharing((workload,), reference(kind, name, TEMPLATE))


def _template(
    replica: Replica, kind: GroupKind, minimum: int, kept: Container[str], name: str = TEMPLATE
) -> dict[str, object]:
    """Compute a template without what is dropped, and without claims, which are each replica's own."""
    dropped = {one.field for one in gates_of(kind) if (one.shown_by or one.field) not in kept}
    fields = template_fields(replica, kind, minimum)
    return {"name": name, **{key: fields[key] for key in fields if key not in dropped and key != "resourceClaims"}}


def _of_roles(replica: Replica, roles: Roles, kind: GroupKind, kept: Container[str]) -> Sharing:
    """Compute one composite group over the first replicas of all roles."""
    rest = tuple(roles.marks[key] for key in sorted(roles.marks))
    workload, root = (names.shared_name(replica.namespace, roles.name, what, *rest) for what in ("workload", ROOT))
    policy = {"gang": {"minGroupCount": len(roles.all)}}
    of_all: dict[str, object] = {"schedulingPolicy": policy}
    if replica.priority_class:
        of_all["priorityClassName"] = replica.priority_class
    leaves = [
        _template(replica, kind, role.minimum, kept, f"{TEMPLATE}-{number}") for number, role in enumerate(roles.all)
    ]
    about = {"apiGroup": DISAGGREGATED.api_group, "kind": DISAGGREGATED.kind, "name": roles.name}
    template = {"name": ROOT, **of_all, "podGroupTemplates": leaves}
    fields = {"controllerRef": about, "compositePodGroupTemplates": [template]}
    objects = (
        Shared(workload_kind(kind), workload, fields, roles.marks, of_set=True),
        Shared(COMPOSITE, root, {**reference(kind, workload, ROOT), **of_all}, roles.marks, of_set=True),
    )
    number = [role.name for role in roles.all].index(roles.role)
    return Sharing(objects, {PARENT.field: root, **reference(kind, workload, f"{TEMPLATE}-{number}")})
