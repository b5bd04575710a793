"""Gödel (kubewharf/godel-scheduler, read at 90de2d0; there are no releases): `scheduling.godel.kubewharf.io` PodGroup.

Sources: `pkg/framework/api/unit.go`, `pkg/dispatcher/internal/queue/unit.go`, `pkg/binder/controller/podgroup.go`,
`pkg/scheduler/core/unit_scheduler/unit_scheduler.go`, `manifests/base/crds/`.
"""

from types import MappingProxyType
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
    Waiting,
    claim_by_annotation,
    claim_by_label,
    podgroup_rights,
)

API_GROUP: Final = "scheduling.godel.kubewharf.io"
V1ALPHA1: Final = GroupKind(API_GROUP, "v1alpha1", "PodGroup", "podgroups")

POD_GROUP: Final = "godel.bytedance.com/pod-group-name"
"""The schedulers read the annotation of this name, the PodGroup controller lists by the label: a pod needs both."""

TIMEOUT: Final = 365 * 24 * 3600
"""Seconds. Counted from the PodGroup's creation, not from room: after it the phase is Timeout, which is final, and the
pods are never placed. Without the field it is 300, so a replica that waits for capacity would be lost."""

REASON: Final = "SchedulingFailed"
"""What the scheduler writes where kube-scheduler writes Unschedulable."""


class Godel:
    """The `godel` provider."""

    name = "godel"
    title = "Gödel"
    scheduler_names = ("godel-scheduler",)
    kinds = (V1ALPHA1,)
    minimum = "minMember"
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=False,
        promise="the leader may start before there is room for its workers, and they are placed one by one: a PodGroup "
        "that was placed once is no gang any more",
    )
    waiting = Waiting(
        capacity=REASON,
        members="",
        group="",
        remark=f'no autoscaler makes room: pods that fit nowhere carry the reason "{REASON}"',
    )
    words = MappingProxyType(
        {
            intents.PRIORITY_CLASS: "priorityClassName",
            intents.SCHEDULE_TIMEOUT: "scheduleTimeoutSeconds",
            intents.TOPOLOGY: "affinity.podGroupAffinity",
        }
    )
    nearest = MappingProxyType({intents.QUEUE: "the priority class, by which waiting PodGroups are put in order"})
    own_keys = intents.NO_KEYS

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Name the PodGroup twice: for the schedulers and for the PodGroup controller."""
        return Stamp(labels={POD_GROUP: group}, annotations={POD_GROUP: group})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod names; the annotation is what places it."""
        return claim_by_annotation(pod, POD_GROUP) or claim_by_label(pod, POD_GROUP)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Compute minimum, timeout, priority class and the domain to stay within."""
        intent = replica.intent
        fields: dict[str, object] = {
            "minMember": replica.minimum,
            "scheduleTimeoutSeconds": intent.schedule_timeout or TIMEOUT,
        }
        if replica.asked_priority_class:
            fields["priorityClassName"] = replica.asked_priority_class
        if intent.topology:
            how = "required" if intent.topology.required else "preferred"
            fields["affinity"] = {"podGroupAffinity": {how: [{"topologyKey": intent.topology.key}]}}
        return Spec(fields)


PROVIDER: Final[Provider] = Godel()
