"""kube-scheduler's own gang scheduling: KEP-4671, `scheduling.k8s.io`, Kubernetes 1.35 to 1.37.

Pods refer to their group by `spec.schedulingGroup` (1.35: `spec.workloadRef`), which can be set at creation only and
which an API server that does not know it, or has the gate GenericWorkload off, drops without a word. Sources:
`native_objects.py`; kubernetes/api `core/v1/types.go`; kubernetes/kubernetes `pkg/scheduler/schedule_one_podgroup.go`.
"""

from collections.abc import Collection, Container, Mapping
from types import MappingProxyType
from typing import Final

from gangs import intents, names
from schedulers.contract import (
    UNSCHEDULABLE,
    Arrival,
    Claim,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Right,
    Spec,
    Stamp,
    Waiting,
    WorkloadReference,
)
from schedulers.native_objects import (
    API_GROUP,
    DISAGGREGATED,
    GANG,
    GANG_OF_1_35,
    TEMPLATE,
    V1ALPHA1,
    V1ALPHA2,
    V1ALPHA3,
    V1BETA1,
    group_spec,
    probe_fields,
    refusal,
    why_dropped,
)
from schedulers.native_sharing import OPTIONS, Choices, shared_kinds, sharing
from schedulers.options import Option
from schedulers.sharing import Sharing


class Native:
    """The `native` provider."""

    name = "native"
    title = "kube-scheduler"
    scheduler_names = ("default-scheduler",)
    kinds = (V1BETA1, V1ALPHA3, V1ALPHA2, V1ALPHA1)
    minimum = GANG
    rights = (
        Right(API_GROUP, ("podgroups",), ("get", "list", "watch", "create", "patch")),
        Right(API_GROUP, ("workloads", "compositepodgroups"), ("get", "list", "watch", "create", "patch", "delete")),
        Right(DISAGGREGATED.api_group, (DISAGGREGATED.plural,), ("get", "list", "watch")),
    )
    late_workers = LateWorkers(
        Arrival.EXIST,
        floor=False,
        promise="the leader may start before there is room for its workers: the PodGroup knows no resources",
    )
    waiting = Waiting(capacity=UNSCHEDULABLE, members="", group="")
    words = MappingProxyType(
        {intents.PRIORITY_CLASS: "priorityClassName", intents.TOPOLOGY: "schedulingConstraints.topology"}
    )
    nearest = MappingProxyType(
        {
            intents.QUEUE: "the priority class: kube-scheduler has one queue, in the order of priority",
            intents.SCHEDULE_TIMEOUT: "its own limit of 300 seconds for placed members, which is fixed",
        }
    )
    own_keys = intents.NO_KEYS
    options: Mapping[str, Option] = OPTIONS

    claims_per_replica = True
    finalizer = "scheduling.k8s.io/podgroup-protection"
    """Put on by the API server, taken off by the controller manager once no pod refers to the PodGroup."""

    def __init__(self, choices: Choices = Choices()) -> None:  # noqa: B008 - frozen
        """Take what the administrator chose."""
        self._choices = choices

    def with_options(self, chosen: Mapping[str, str]) -> Provider:
        """Give the provider with some choices."""
        return Native(Choices(**chosen))

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Refer to the group from the pod's spec, in the words of one version or of both."""
        old = WorkloadReference(group, TEMPLATE, names.index_in(group))
        return Stamp(
            scheduling_group=None if self._choices.podReference == "workloadRef" else group,
            workload_ref=None if self._choices.podReference == "schedulingGroup" else old,
        )

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the group that the pod already refers to."""
        if pod.scheduling_group is not None:
            return Claim("spec.schedulingGroup.podGroupName", pod.scheduling_group)
        return None if pod.workload_ref is None else Claim("spec.workloadRef.name", pod.workload_ref)

    def why_dropped(self, kind: GroupKind | None) -> str:
        """Say whether the API server does not know the stamp, or has its gate off."""
        return why_dropped(self._choices.podReference, kind)

    def minimum_in(self, kind: GroupKind) -> str:
        """Give the path of `minCount`."""
        return GANG_OF_1_35 if kind == V1ALPHA1 else GANG

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:
        """Compute a gang that is preempted whole, with the pods' own priority class."""
        return group_spec(replica, kind)

    def refusal(self, word: str, replica: Replica, kind: GroupKind) -> str | None:
        """Refuse a class that isn't the pods', and a topology that is only preferred."""
        return refusal(word, replica, kind)

    def probe(self, kind: GroupKind) -> Mapping[str, object] | None:
        """Give a PodGroup with every field that depends on a gate."""
        return probe_fields(kind)

    def shared_kinds(self, kind: GroupKind) -> tuple[GroupKind, ...]:
        """List the kinds of Workload and CompositePodGroup, and of what is read for them."""
        return shared_kinds(kind, self._choices)

    def share(self, replica: Replica, kind: GroupKind, served: Collection[GroupKind], kept: Container[str]) -> Sharing:
        """Compute Workload and CompositePodGroups."""
        return sharing(replica, kind, self._choices, served, kept)


PROVIDER: Final[Provider] = Native()
