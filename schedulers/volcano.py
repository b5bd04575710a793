"""Volcano from v1.12: `scheduling.volcano.sh` PodGroup.

Sources: volcano-sh/volcano `pkg/scheduler/api/job_info.go`, `pkg/controllers/podgroup/pg_controller.go`,
`staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go`.
"""

from types import MappingProxyType
from typing import Final

from gangs import intents
from gangs.intents import OwnKey
from schedulers.contract import (
    UNSCHEDULABLE,
    Arrival,
    Claim,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Spec,
    Stamp,
    Waiting,
    claim_by_annotation,
    podgroup_rights,
)

API_GROUP: Final = "scheduling.volcano.sh"
V1BETA1: Final = GroupKind(API_GROUP, "v1beta1", "PodGroup", "podgroups")

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
DEFAULT_QUEUE: Final = "default"


class Volcano:
    """The `volcano` provider."""

    name = "volcano"
    title = "Volcano"
    scheduler_names = ("volcano",)
    kinds = (V1BETA1,)
    minimum = "minMember"
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=True,
        promise="the leader starts only when queue and cluster sums cover the whole replica; the room is not held",
    )
    waiting = Waiting(
        capacity=UNSCHEDULABLE,
        members=UNSCHEDULABLE,
        group="",
        remark="pods that wait for members look as if room were missing: nodes may come for nothing",
    )
    words = MappingProxyType(
        {
            intents.QUEUE: "queue",
            intents.PRIORITY_CLASS: "priorityClassName",
            intents.TOPOLOGY: "networkTopology.highestTierName",
        }
    )
    nearest = MappingProxyType(
        {
            intents.SCHEDULE_TIMEOUT: "sla-waiting-time of its sla plugin, after which a waiting group goes first",
        }
    )
    own_keys: intents.OwnKeys = MappingProxyType({intents.QUEUE: (OwnKey(QUEUE_NAME),)})

    queues = GroupKind(API_GROUP, "v1beta1", "Queue", "queues")

    def stamp(self, group: str, *, leader: bool) -> Stamp:
        """Name the PodGroup, and the role so that one role's failure isn't remembered for the other.

        The annotation has to be there at creation: Volcano's podgroup controller gives a pod without it a group of
        its own.
        """
        return Stamp(annotations={GROUP_NAME: group, TASK_SPEC: "leader" if leader else "worker"})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod's annotation names."""
        return claim_by_annotation(pod, GROUP_NAME)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Compute minimum, resources of the whole replica, queue and priority class.

        The queue is written once: Volcano's webhook lets a namespace annotation rewrite it, even when it is explicit.
        Volcano's label discoverer names each tier of HyperNodes by the node label that makes it, so a node label key is
        the tier's name (`pkg/controllers/hypernode/discovery/label/label.go`); before v1.14 the field is pruned, so it
        is written once too.
        """
        fields: dict[str, object] = {
            "minMember": replica.minimum,
            "minResources": dict(replica.requests),
            "queue": replica.intent.queue or DEFAULT_QUEUE,
        }
        if replica.asked_priority_class:
            fields["priorityClassName"] = replica.asked_priority_class
        fixed: tuple[str, ...] = ("queue",)
        if topology := replica.intent.topology:
            fields["networkTopology"] = {
                "mode": "hard" if topology.required else "soft",
                "highestTierName": topology.key,
            }
            fixed = ("queue", "networkTopology")
        return Spec(fields, fixed=fixed, quantities=("minResources",))


PROVIDER: Final[Provider] = Volcano()
