"""What groups of several replicas share: an ability of some schedulers."""

from collections.abc import Collection, Container, Mapping
from typing import Protocol, runtime_checkable

import msgspec

from schedulers.contract import GroupKind, Replica


class Shared(msgspec.Struct, frozen=True):
    """An object that the groups of several replicas refer to.

    Attributes:
        kind: its kind.
        name: its name; the namespace is the replicas'.
        fields: its spec.
        marks: labels that all leaders of those replicas bear, and nobody else; it goes when no leader is left.
        of_set: whether it belongs to the DisaggregatedSet; to the LeaderWorkerSet otherwise.
        first: whether groups are refused before it exists.
    """

    kind: GroupKind
    name: str
    fields: Mapping[str, object]
    marks: Mapping[str, str]
    of_set: bool = False
    first: bool = False


class Sharing(msgspec.Struct, frozen=True):
    """What a replica's group shares with others.

    Attributes:
        objects: what has to be there, in the order of their creation.
        reference: fields below the group's spec that refer to them; they can't be changed later.
        waits: whether the group is not to be made yet, because a role of its DisaggregatedSet has not started.
        apart: whether roles are wanted together and can't be.
    """

    objects: tuple[Shared, ...] = ()
    reference: Mapping[str, object] = msgspec.field(default_factory=dict)
    waits: bool = False
    apart: bool = False


@runtime_checkable
class SharesObjects(Protocol):
    """A scheduler whose groups may refer to objects that several of them share."""

    def shared_kinds(self, kind: GroupKind) -> tuple[GroupKind, ...]:
        """List the kinds of such objects, and of objects to read for them, that go with a kind of group object."""

    def share(self, replica: Replica, kind: GroupKind, served: Collection[GroupKind], kept: Container[str]) -> Sharing:
        """Compute what a replica's group shares.

        Args:
            replica: the replica.
            kind: the kind of its group object.
            served: which of `shared_kinds` the cluster serves.
            kept: gated fields of `kind` that the API server keeps.
        """
