"""What Lockstep has to know about a scheduler: the contract of a provider.

A provider is pure: it computes stamps and specs from values. One handler in `webhook` and one in `reconciler` read,
compare and write for all of them.
"""

import enum
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from gangs.intents import Intent


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


class Stamp(msgspec.Struct, frozen=True):
    """What makes a pod a member of its group, beside our own label.

    Attributes:
        labels: labels to set.
        annotations: annotations to set.
        scheduling_group: `spec.schedulingGroup.podGroupName`; can be set at creation only.
    """

    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    scheduling_group: str | None = None

    @property
    def fits_later(self) -> bool:
        """Whether a pod that exists can still be stamped."""
        return self.scheduling_group is None


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


class Spec(msgspec.Struct, frozen=True):
    """Spec of a group object.

    Attributes:
        fields: the fields we own, and nothing else.
        fixed: dotted paths below `spec` that can't be changed after creation, or that others may rewrite: written
            once, never repaired.
        quantities: dotted paths of maps whose values are quantities, compared by value.
    """

    fields: Mapping[str, object]
    fixed: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()


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
    def words(self) -> frozenset[str]:
        """Intent words that it honours."""

    @property
    def own_keys(self) -> Mapping[str, str]:
        """Intent word -> the scheduler's own annotation."""

    def stamp(self, group: str, *, leader: bool) -> Stamp:
        """Compute the stamp of a member of `group`."""

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the membership that a pod already has with this scheduler, whoever wrote it."""

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:
        """Compute the group object's spec for a replica, in the terms of `kind`."""


@runtime_checkable
class ForgetsWaiting(Protocol):
    """A scheduler that doesn't look again at a waiting group when capacity grows, unless its object is written.

    Attributes:
        touch: annotation on the group object to write.
    """

    touch: str


@runtime_checkable
class HoldsDeleted(Protocol):
    """A scheduler whose finalizer keeps a deleted group object while pods refer to it.

    Attributes:
        finalizer: taken off when an object that is still needed was deleted, so that it can be made anew.
    """

    finalizer: str


def podgroup_rights(api_group: str) -> tuple[Right, ...]:
    """Give the rights on `podgroups` of an API group that every reconciler of PodGroups needs."""
    return (Right(api_group, ("podgroups",), ("get", "list", "watch", "create", "patch")),)
