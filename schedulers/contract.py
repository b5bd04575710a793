"""What Lockstep has to know about a scheduler: the contract of a provider.

A provider is pure: it computes stamps and specs from values. One handler in `webhook` and one in `reconciler` read,
compare and write for all of them.
"""

import enum
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from gangs.intents import Intent, OwnKeys


class GroupKind(msgspec.Struct, frozen=True):
    """A kind of group object as the API server names it."""

    api_group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        """`apiVersion` of objects of this kind."""
        return f"{self.api_group}/{self.version}"

    @property
    def title(self) -> str:
        """Name for people: `podgroups.scheduling.k8s.io/v1beta1`."""
        return f"{self.plural}.{self.api_group}/{self.version}"


class Right(msgspec.Struct, frozen=True):
    """One RBAC rule."""

    api_group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class WorkloadReference(msgspec.Struct, frozen=True):
    """`spec.workloadRef` of a pod: how Kubernetes 1.35 spells membership.

    Attributes:
        name: the Workload.
        pod_group: one of its `podGroups`.
        replica_key: tells replicas apart that share that pod group; each is a gang of its own.
    """

    name: str
    pod_group: str
    replica_key: str


class Stamp(msgspec.Struct, frozen=True):
    """What makes a pod a member of its group, beside our own label.

    Attributes:
        labels: labels to set.
        annotations: annotations to set.
        scheduling_group: `spec.schedulingGroup.podGroupName`; can be set at creation only.
        workload_ref: `spec.workloadRef`; can be set at creation only.
        gated: whether our scheduling gate holds the pod back until the reconciler opens it; set at creation only.
    """

    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    scheduling_group: str | None = None
    workload_ref: WorkloadReference | None = None
    gated: bool = False

    @property
    def fits_later(self) -> bool:
        """Whether a pod that exists can still be stamped."""
        return self.scheduling_group is None and self.workload_ref is None and not self.gated


class Claim(msgspec.Struct, frozen=True):
    """A membership that a pod already has.

    Attributes:
        path: field path of the membership.
        group: the group it names.
    """

    path: str
    group: str


class PodFacts(Protocol):
    """What a provider may look at on a pod."""

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """`metadata.annotations`."""

    @property
    def scheduling_group(self) -> str | None:
        """`spec.schedulingGroup.podGroupName`."""

    @property
    def workload_ref(self) -> str | None:
        """`spec.workloadRef.name`."""


class Arrival(enum.Enum):
    """When late workers count as arrived, so that the minimum may be raised to the size."""

    EXIST = "exist"
    BOUND = "bound"


class LateWorkers(msgspec.Struct, frozen=True):
    """How a scheduler treats replicas whose workers come late.

    Attributes:
        arrival: when the minimum is raised.
        floor: whether the whole replica's resources are asked for before the leader starts.
        promise: one sentence for users.
    """

    arrival: Arrival
    floor: bool
    promise: str


UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of `PodScheduled=False` for which Cluster Autoscaler and Karpenter make nodes; for no other."""


class Waiting(msgspec.Struct, frozen=True):
    """What an autoscaler sees of a replica that waits: the reason of its pods' condition `PodScheduled=False`.

    Attributes:
        capacity: all pods exist and have their group, and there is no room; empty for no condition at all.
        members: fewer pods exist than are placed together; empty for no condition at all.
        group: the pods wait for us, that is for their group object or our gate; empty for no condition at all.
        stand_ins: the reason on pods that the scheduler makes to hold the room; empty for no such pods.
        remark: what the reasons hide or show wrongly, a phrase without a full stop; empty where a waiting replica looks
            right (`looks_right`).
    """

    capacity: str
    members: str
    group: str
    stand_ins: str = ""
    remark: str = ""

    @property
    def looks_right(self) -> bool:
        """Whether room is asked for when it is missing, and only then."""
        asks = UNSCHEDULABLE in (self.capacity, self.stand_ins)
        return asks and UNSCHEDULABLE not in (self.members, self.group)


class Replica(msgspec.Struct, frozen=True):
    """One incarnation of a replica, as far as a group object depends on it.

    Attributes:
        namespace: namespace of its pods.
        lws: name of the LeaderWorkerSet.
        index: index of the replica.
        revision: template revision hash it is built from.
        group: name of its group.
        size: pods as it is really built.
        minimum: pods to place together now; see `gangs.late.minimum`.
        requests: resource name -> requests of the whole replica as quantities.
        late: the field that makes its workers late, `None` when they come with the leader.
        priority_class: `spec.priorityClassName` of its pods, empty for none.
        intent: the user's words.
        own: settings of the scheduler's own that have no word; see `OwnSettings`.
        bound: how many of its pods have a node.
        preemption_policy: `spec.preemptionPolicy` of its pods, empty for none.
        template_size: pods as its revision has it, `None` where that is not known; `size` may differ from it.
        roles: the DisaggregatedSet that its LeaderWorkerSet is a role of, `None` for none.
        claims: ResourceClaims that all its pods share: name in the pods -> name of the ResourceClaim.
    """

    namespace: str
    lws: str
    index: int
    revision: str
    group: str
    size: int
    minimum: int
    requests: Mapping[str, str]
    late: str | None
    priority_class: str
    intent: Intent
    own: Mapping[str, str] = msgspec.field(default_factory=dict)
    bound: int = 0
    preemption_policy: str = ""
    template_size: int | None = None
    roles: "Roles | None" = None
    claims: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def asked_priority_class(self) -> str:
        """The priority class that a group is to have: the user's word, else its pods' own; empty for none."""
        return self.intent.priority_class or self.priority_class


class SetRole(msgspec.Struct, frozen=True):
    """A role of a DisaggregatedSet, which is a LeaderWorkerSet.

    Attributes:
        name: of the role.
        minimum: pods of a replica that its group is made with: the size, 1 where workers come late.
        priority_class: of its pods as their templates have it, empty for none.
    """

    name: str
    minimum: int
    priority_class: str


class Roles(msgspec.Struct, frozen=True):
    """One slice of one revision of a DisaggregatedSet: several LeaderWorkerSets that need each other.

    Attributes:
        name: name of the DisaggregatedSet.
        marks: labels that the pods of the slice and revision bear.
        role: name of the role that is looked at.
        all: every role, in order.
        started: whether each role has a replica that is placed whole.
    """

    name: str
    marks: Mapping[str, str]
    role: str
    all: tuple[SetRole, ...]
    started: bool = False


class GatedField(msgspec.Struct, frozen=True):
    """A field that API servers drop without a word unless a feature gate is on.

    Attributes:
        field: its name, directly below `spec`.
        gate: name of the gate.
        nearest: the nearest thing that there is without the field, a phrase.
        shown_by: the field whose survival shows that the gate is on, where it isn't the field itself.
    """

    field: str
    gate: str
    nearest: str = "none"
    shown_by: str = ""


class Role(msgspec.Struct, frozen=True):
    """Pods of a replica that are alike.

    Attributes:
        name: `leader` or `worker`.
        pods: how many there are once the replica is whole.
        requests: resource name -> requests of one pod as quantities.
        placement: the fields of a pod's spec that say where it may go, as JSON; only those that are set.
        labels: labels that the terms of its affinity look for.
    """

    name: str
    pods: int
    requests: Mapping[str, str]
    placement: Mapping[str, object] = {}
    labels: Mapping[str, str] = {}


class Declaration(msgspec.Struct, frozen=True):
    """What a scheduler without a group object has to find on every pod before it sees the first.

    Attributes:
        labels: labels to set where a pod has none of that key.
        annotations: annotations to set.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Spec(msgspec.Struct, frozen=True):
    """Spec of a group object.

    Attributes:
        fields: the fields we own, and nothing else.
        fixed: dotted paths below `spec` that can't be changed after creation, or that others may rewrite: written
            once, never repaired.
        quantities: dotted paths of maps whose values are quantities, compared by value.
        annotations: annotations of the object that belong to its spec.
        gated: which of the fields are not kept by every API server.
    """

    fields: Mapping[str, object]
    fixed: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    gated: tuple[GatedField, ...] = ()


class Provider(Protocol):
    """Our knowledge of one scheduler."""

    @property
    def name(self) -> str:
        """The scheduler's short name, which is the module's name."""

    @property
    def title(self) -> str:
        """The scheduler's name for people."""

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """`spec.schedulerName` values that mean it when nothing else is configured."""

    @property
    def kinds(self) -> tuple[GroupKind, ...]:
        """Kinds of group object, the preferred one first; the first that the cluster serves is used."""

    @property
    def minimum(self) -> str:
        """Dotted path below `spec` of a group object's minimum."""

    @property
    def rights(self) -> tuple[Right, ...]:
        """What the reconciler needs for it."""

    @property
    def late_workers(self) -> LateWorkers:
        """What it can promise for late workers."""

    @property
    def waiting(self) -> Waiting:
        """What an autoscaler sees of its replicas that wait."""

    @property
    def words(self) -> Mapping[str, str]:
        """Intent word that it honours -> dotted path below `spec` that says it; empty where the pods say it."""

    @property
    def nearest(self) -> Mapping[str, str]:
        """Intent word that it does not honour -> the nearest thing that it has, a phrase without a full stop."""

    @property
    def own_keys(self) -> OwnKeys:
        """Intent word -> the scheduler's own keys."""

    def stamp(self, group: str, *, leader: bool) -> Stamp:
        """Compute the stamp of a member of `group`."""

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the membership that a pod already has with this scheduler, whoever wrote it."""

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:
        """Compute the group object's spec for a replica, in the terms of `kind`."""


def claim_by_label(pod: PodFacts, key: str) -> Claim | None:
    """Find the membership that a label of a pod names."""
    return None if key not in pod.labels else Claim(f"metadata.labels[{key}]", pod.labels[key])


def claim_by_annotation(pod: PodFacts, key: str) -> Claim | None:
    """Find the membership that an annotation of a pod names."""
    return None if key not in pod.annotations else Claim(f"metadata.annotations[{key}]", pod.annotations[key])


def podgroup_rights(api_group: str) -> tuple[Right, ...]:
    """Give the rights on `podgroups` of an API group that every reconciler of PodGroups needs."""
    return (Right(api_group, ("podgroups",), ("get", "list", "watch", "create", "patch")),)
