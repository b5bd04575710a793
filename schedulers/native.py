"""kube-scheduler's own gang scheduling: KEP-4671, `scheduling.k8s.io` PodGroup.

Pods refer to the PodGroup by `spec.schedulingGroup.podGroupName`, which can be set at creation only and which an API
server without the gate GenericWorkload drops without a word. Sources: kubernetes/api `scheduling/v1beta1/types.go`,
`scheduling/v1alpha2/types.go` (tag v0.36.0), `core/v1/types.go`.
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
    podgroup_rights,
)

API_GROUP: Final = "scheduling.k8s.io"
V1BETA1: Final = GroupKind(API_GROUP, "v1beta1", "PodGroup", "podgroups")
V1ALPHA2: Final = GroupKind(API_GROUP, "v1alpha2", "PodGroup", "podgroups")

MIN_COUNT: Final = "schedulingPolicy.gang.minCount"


class Native:
    """The `native` provider."""

    name = "native"
    title = "kube-scheduler"
    scheduler_names = ("default-scheduler",)
    kinds = (V1BETA1, V1ALPHA2)
    minimum = MIN_COUNT
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=False,
        promise="the leader may start before there is room for its workers: the PodGroup knows no resources",
    )
    waiting = Waiting(capacity=UNSCHEDULABLE, members="", group="")
    words = MappingProxyType({intents.PRIORITY_CLASS: "priorityClassName"})
    nearest = MappingProxyType(
        {
            intents.QUEUE: "the priority class: kube-scheduler has one queue, in the order of priority",
            intents.SCHEDULE_TIMEOUT: "its own limit of 300 seconds for placed members, which is fixed",
            intents.TOPOLOGY: "affinity terms in the pod templates",
        }
    )
    own_keys = intents.NO_KEYS

    finalizer = "scheduling.k8s.io/podgroup-protection"
    """Put on by the API server, taken off by the controller manager once no pod refers to the PodGroup."""

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Refer to the PodGroup from the pod's spec."""
        return Stamp(scheduling_group=group)

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod already refers to."""
        if pod.scheduling_group is None:
            return None
        return Claim("spec.schedulingGroup.podGroupName", pod.scheduling_group)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:
        """Compute a standalone gang PodGroup.

        kube-scheduler never places a PodGroup whose priority differs from its pods', so the group takes the pods' own
        class unless the user says otherwise. In v1alpha2 nothing can be changed after creation, the minimum included.
        """
        fields: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": replica.minimum}}}
        priority_class = replica.intent.priority_class or replica.priority_class
        if priority_class:
            fields["priorityClassName"] = priority_class
        fixed = ("priorityClassName",) if kind == V1BETA1 else ("priorityClassName", MIN_COUNT)
        return Spec(fields, fixed=fixed)


PROVIDER: Final[Provider] = Native()
