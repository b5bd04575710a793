"""Coscheduling plugin of kubernetes-sigs/scheduler-plugins: `scheduling.x-k8s.io` PodGroup, from v0.25.

Sources: `apis/scheduling/v1alpha1/types.go`, `pkg/coscheduling/core/core.go`, `pkg/coscheduling/coscheduling.go`.
"""

from types import MappingProxyType
from typing import Final

from gangs import intents
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
    claim_by_label,
    podgroup_rights,
)

API_GROUP: Final = "scheduling.x-k8s.io"
V1ALPHA1: Final = GroupKind(API_GROUP, "v1alpha1", "PodGroup", "podgroups")

POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"

TIMEOUT: Final = 60
"""Seconds that placed members wait for the rest; without the field the plugin's argument counts, 10 in its chart."""


class Coscheduling:
    """The `coscheduling` provider."""

    name = "coscheduling"
    title = "Coscheduling (scheduler-plugins)"
    scheduler_names = ("scheduler-plugins-scheduler",)
    kinds = (V1ALPHA1,)
    minimum = "minMember"
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=True,
        promise="the leader starts only when the cluster's free sum covers the whole replica; the room is not held",
    )
    waiting = Waiting(
        capacity=UNSCHEDULABLE,
        members=UNSCHEDULABLE,
        group=UNSCHEDULABLE,
        remark="pods that wait for members or their PodGroup look as if room were missing: nodes may come for nothing",
    )
    words = MappingProxyType({intents.SCHEDULE_TIMEOUT: "scheduleTimeoutSeconds"})
    nearest = MappingProxyType(
        {
            intents.QUEUE: "an ElasticQuota of the namespace",
            intents.PRIORITY_CLASS: "spec.priorityClassName in both pod templates: a group goes by its pods' priority",
            intents.TOPOLOGY: "affinity terms in the pod templates",
        }
    )
    own_keys = intents.NO_KEYS

    touch = "lockstep.dev/capacity-grew"
    """A group refused for minResources is looked at again only when a pod is added or the PodGroup written."""

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Label the pod with its PodGroup's name."""
        return Stamp(labels={POD_GROUP: group})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod is labelled with."""
        return claim_by_label(pod, POD_GROUP)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Compute minimum, resources of the whole replica, and how long placed members wait."""
        return Spec(
            {
                "minMember": replica.minimum,
                "minResources": dict(replica.requests),
                "scheduleTimeoutSeconds": replica.intent.schedule_timeout or TIMEOUT,
            },
            quantities=("minResources",),
        )


PROVIDER: Final[Provider] = Coscheduling()
