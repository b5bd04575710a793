"""Apache YuniKorn: no group object, an application whose first pod declares task groups.

YuniKorn makes no application for a gated pod. Once the gate is off, placeholder pods hold the room of all task groups,
and real pods take their places. Sources: apache/yunikorn-k8shim `pkg/cache/{amprotocol,application,utils}.go`,
`pkg/common/utils/utils.go`, `pkg/admission/util.go`; apache/yunikorn-core `pkg/scheduler/objects/application.go`.
"""

import json
from collections.abc import Iterator, Sequence
from math import ceil
from types import MappingProxyType
from typing import Final

from gangs import intents
from gangs.intents import OwnKey
from schedulers.contract import (
    UNSCHEDULABLE,
    Arrival,
    Claim,
    Declaration,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Right,
    Role,
    Spec,
    Stamp,
    Waiting,
)

APP_ID: Final = "yunikorn.apache.org/app-id"
"""Unique over all namespaces; a label counts before an annotation."""
OLD_APP_IDS: Final = ("applicationId", "spark-app-selector")
MADE_UP_BY_YUNIKORN: Final = "autogen"
"""End of the ids that its own webhook makes up."""

TASK_GROUP_NAME: Final = "yunikorn.apache.org/task-group-name"
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
PARAMETERS: Final = "yunikorn.apache.org/schedulingPolicyParameters"
QUEUE: Final = "yunikorn.apache.org/queue"
OLD_QUEUE: Final = "queue"
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"

STALE: Final = "SchedulingGated"
"""Stays on pods when their gate is gone; YuniKorn says Unschedulable on placeholders alone."""

HOLD: Final = 900
"""Seconds after its first placeholder at which an application gives up: the core's own, where none is asked for."""

STYLE: Final = "gangSchedulingStyle=Hard"
"""A replica that gave up fails whole, and LWS makes it anew; Soft would start the part of it that fits."""


class YuniKorn:
    """The `yunikorn` provider."""

    name = "yunikorn"
    title = "YuniKorn"
    scheduler_names = ("yunikorn",)
    kinds: tuple[GroupKind, ...] = ()
    minimum = ""
    rights: tuple[Right, ...] = ()
    late_workers = LateWorkers(
        Arrival.BOUND,
        floor=True,
        promise="placeholders hold the room of late workers, for 15 minutes or the schedule-timeout",
    )
    waiting = Waiting(capacity=STALE, members=STALE, group=STALE, stand_ins=UNSCHEDULABLE)
    words = MappingProxyType({intents.QUEUE: "", intents.SCHEDULE_TIMEOUT: ""})
    nearest = MappingProxyType(
        {
            intents.PRIORITY_CLASS: "the priority class of the pods, which placeholders have too",
            intents.TOPOLOGY: "affinity in the pod templates, which placeholders have too",
        }
    )
    own_keys: intents.OwnKeys = MappingProxyType(
        {intents.QUEUE: (OwnKey(QUEUE, label=True), OwnKey(QUEUE), OwnKey(OLD_QUEUE, label=True))}
    )

    declared = (TASK_GROUPS, PARAMETERS)
    hold = HOLD
    stand_in = APP_ID

    def stamp(self, group: str, *, leader: bool) -> Stamp:
        """Make each incarnation an application of its own, and hold the pod back until its task groups are declared."""
        role = "leader" if leader else "worker"
        return Stamp(labels={APP_ID: group}, annotations={TASK_GROUP_NAME: role}, gated=True)

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the application that a pod is of; a placeholder is nobody's member."""
        return next(_claims(pod), None)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002, D102 - there is no group object
        return Spec({})

    def declare(self, replica: Replica, roles: Sequence[Role], age: float) -> Declaration:
        """Declare a task group for each role, by what one pod of it asks and where it may go.

        A time-out is counted from the creation of the pods, gates or not, so their age is added to it.
        """
        parameters = STYLE
        if replica.intent.schedule_timeout is not None:
            parameters = f"placeholderTimeoutInSeconds={ceil(age) + replica.intent.schedule_timeout} {STYLE}"
        groups = json.dumps([_task_group(role) for role in roles], separators=(",", ":"))
        labels = {} if replica.intent.queue is None else {QUEUE: replica.intent.queue}
        return Declaration(labels, {TASK_GROUPS: groups, PARAMETERS: parameters})


def _claims(pod: PodFacts) -> Iterator[Claim]:
    """Give the claims on a pod in the order in which YuniKorn reads them."""
    if PLACEHOLDER in pod.annotations:
        yield Claim(f"metadata.annotations[{PLACEHOLDER}]", "")
    places = [("labels", pod.labels, APP_ID), ("annotations", pod.annotations, APP_ID)]
    places += [("labels", pod.labels, key) for key in OLD_APP_IDS]
    for where, values, key in places:
        group = values.get(key)
        if group and not group.endswith(MADE_UP_BY_YUNIKORN):
            yield Claim(f"metadata.{where}[{key}]", group)
    if TASK_GROUPS in pod.annotations:
        yield Claim(f"metadata.annotations[{TASK_GROUPS}]", "")


def _task_group(role: Role) -> dict[str, object]:
    group = {"name": role.name, "minMember": role.pods, "minResource": dict(role.requests)}
    return {**group, **({"labels": dict(role.labels)} if role.labels else {}), **role.placement}


PROVIDER: Final[Provider] = YuniKorn()
