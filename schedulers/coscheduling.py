"""Coscheduling plugin of kubernetes-sigs/scheduler-plugins: `scheduling.x-k8s.io` PodGroup, from v0.25.

Sources: `apis/scheduling/v1alpha1/types.go`, `pkg/coscheduling/core/core.go`, `pkg/coscheduling/coscheduling.go`.
"""

from typing import Final

from gangs import intents
from schedulers.contract import (
    Arrival,
    Claim,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Spec,
    Stamp,
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
    words = frozenset({intents.SCHEDULE_TIMEOUT})
    own_keys: dict[str, str] = {}  # noqa: RUF012 - the contract's attribute, never changed

    touch = "lockstep.dev/capacity-grew"
    """A group refused for minResources is looked at again only when a pod is added or the PodGroup written."""

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Label the pod with its PodGroup's name."""
        return Stamp(labels={POD_GROUP: group})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod is labelled with."""
        group = pod.labels.get(POD_GROUP)
        return None if group is None else Claim(f"metadata.labels[{POD_GROUP}]", group)

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
