"""Koordinator from v1.3: `scheduling.sigs.k8s.io` PodGroup.

Its other way, annotations on the pods alone, is not used: a gang that misses its moment there has no object to be
woken by. Sources: koordinator-sh/koordinator `apis/extension/coscheduling.go`,
`pkg/scheduler/plugins/coscheduling/core/core.go`, `gang.go`, `gang_cache.go` (tag v1.6.0).
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
    claim_by_annotation,
    claim_by_label,
    podgroup_rights,
)

API_GROUP: Final = "scheduling.sigs.k8s.io"
V1ALPHA1: Final = GroupKind(API_GROUP, "v1alpha1", "PodGroup", "podgroups")

POD_GROUP: Final = "pod-group.scheduling.sigs.k8s.io"
GANG_NAME: Final = "gang.scheduling.koordinator.sh/name"
MATCH_POLICY: Final = "gang.scheduling.koordinator.sh/match-policy"
WHOLE: Final = "waiting-and-running"
ALONE: Final = "once-satisfied"
"""By default a gang of which a pod was bound is no gang any more, and each pod is placed as it fits."""

TIMEOUT: Final = 60
"""Seconds that placed members wait for the rest; without the field the plugin's argument counts, 600."""


class Koordinator:
    """The `koordinator` provider."""

    name = "koordinator"
    title = "Koordinator"
    scheduler_names = ("koord-scheduler",)
    kinds = (V1ALPHA1,)
    minimum = "minMember"
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=False,
        promise="the leader may start before there is room for its workers, which are placed one by one",
    )
    waiting = Waiting(capacity=UNSCHEDULABLE, members="", group="")
    words = MappingProxyType({intents.SCHEDULE_TIMEOUT: "scheduleTimeoutSeconds"})
    nearest = MappingProxyType(
        {
            intents.QUEUE: "an ElasticQuota, by the label quota.scheduling.koordinator.sh/name in both pod templates",
            intents.PRIORITY_CLASS: "spec.priorityClassName in both pod templates: a group goes by its pods' priority",
            intents.TOPOLOGY: "affinity terms in the pod templates: its topologies, from v1.7, are layers, not keys",
        }
    )
    own_keys = intents.NO_KEYS

    touch = "lockstep.dev/capacity-grew"
    roll_call = "lockstep.dev/members"
    """When the last pod is looked at before it is counted, all pods of the gang are left out until a write."""
    regrouped = "lockstep.dev/group-uid"

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Label the pod with its PodGroup's name."""
        return Stamp(labels={POD_GROUP: group})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the gang that the pod names, by label or, which counts less, by annotation."""
        return claim_by_label(pod, POD_GROUP) or claim_by_annotation(pod, GANG_NAME)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Compute minimum and time-out; the resources are for people and tools, its scheduler does not read them.

        Once a pod has a node, the others are placed as they fit. Until v1.7 a refused gang is tried again when as many
        pods as it has were tried in one cycle, and those with a node are never tried: it would wait for ever.
        """
        fields: dict[str, object] = {
            "minMember": replica.minimum,
            "minResources": dict(replica.requests),
            "scheduleTimeoutSeconds": replica.intent.schedule_timeout or TIMEOUT,
        }
        return Spec(fields, quantities=("minResources",), annotations={MATCH_POLICY: ALONE if replica.bound else WHOLE})


PROVIDER: Final[Provider] = Koordinator()
