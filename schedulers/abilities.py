"""Abilities that some schedulers have, each a small protocol beside the contract that all of them keep."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from schedulers.contract import Declaration, GroupKind, Provider, Replica, Role


@runtime_checkable
class ForgetsWaiting(Protocol):
    """A scheduler that doesn't look again at a waiting group when capacity grows, unless its object is written.

    Attributes:
        touch: annotation on the group object to write.
    """

    touch: str


@runtime_checkable
class MissesMembers(Protocol):
    """A scheduler that may overlook that a replica is complete, until its object is written.

    Attributes:
        roll_call: annotation on the group object to write.
    """

    roll_call: str


@runtime_checkable
class LosesMembers(Protocol):
    """A scheduler that forgets the members of a group object that is deleted, until the pods are written.

    Attributes:
        regrouped: annotation on the pods to write.
    """

    regrouped: str


@runtime_checkable
class OverwritesStamps(Protocol):
    """A scheduler some versions of which put stamped pods into groups of their own.

    Attributes:
        way_out: what makes it leave stamps alone, one phrase.
    """

    way_out: str


@runtime_checkable
class OwnSettings(Protocol):
    """A scheduler with settings of a group for which there is no word.

    Attributes:
        settings: its own labels or annotations, read over the levels of the words.
    """

    settings: tuple[str, ...]


@runtime_checkable
class SharesClaims(Protocol):
    """A scheduler that places pods which share a ResourceClaim together.

    One that holds each placed pod back until all are placed can't: a claim that the first pod has chosen devices for is
    closed to the second until the first is bound.

    Attributes:
        claims_per_replica: whether it is so.
    """

    claims_per_replica: bool


@runtime_checkable
class HoldsDeleted(Protocol):
    """A scheduler whose finalizer keeps a deleted group object while pods refer to it.

    Attributes:
        finalizer: taken off when an object that is still needed was deleted, so that it can be made anew.
    """

    finalizer: str


@runtime_checkable
class DropsFields(Protocol):
    """A scheduler whose group objects have fields that API servers drop without a word; see `GatedField`."""

    @property
    def kinds(self) -> tuple[GroupKind, ...]:
        """Kinds of its group objects, as every provider has them."""

    def probe(self, kind: GroupKind) -> Mapping[str, object] | None:
        """Give the spec of a group with every such field, for a dry run that shows which are kept; `None` for none."""


@runtime_checkable
class SpellsByVersion(Protocol):
    """A scheduler whose kinds of group object have their minimum in different places."""

    def minimum_in(self, kind: GroupKind) -> str:
        """Give the dotted path of the minimum in objects of a kind; a number is an index of a list."""


@runtime_checkable
class RefusesWords(Protocol):
    """A scheduler that can honour a word for some replicas only."""

    def refusal(self, word: str, replica: Replica, kind: GroupKind) -> str | None:
        """Say why a word that is set is not honoured, with the nearest thing, as a phrase; `None` when it is."""


@runtime_checkable
class LosesStamps(Protocol):
    """A scheduler whose stamp some API servers drop without a word."""

    def why_dropped(self, kind: GroupKind | None) -> str:
        """Say why the API server that serves `kind` drops the stamp, as a clause."""


@runtime_checkable
class HasQueues(Protocol):
    """A scheduler whose queues are objects that have to exist.

    Attributes:
        queues: their kind, which knows no namespaces.
    """

    queues: GroupKind


def minimum_path(provider: Provider, kind: GroupKind) -> str:
    """Give the dotted path of the minimum in objects of a kind."""
    return provider.minimum_in(kind) if isinstance(provider, SpellsByVersion) else provider.minimum


@runtime_checkable
class Declares(Protocol):
    """A scheduler without a group object: the numbers of the whole replica have to stand on its pods.

    A leader doesn't carry its workers' template, so its pods are stamped with our gate, and the reconciler, which knows
    it, writes the declaration on every pod and takes the gate off.

    Attributes:
        declared: annotations of a declaration. They come off once the replica is whole.
        hold: seconds for which the scheduler holds the room of members that don't come, without a word about it.
        stand_in: label under which the pods that it makes to hold the room carry the group.
    """

    declared: tuple[str, ...]
    hold: int
    stand_in: str

    def declare(self, replica: Replica, roles: Sequence[Role], age: float) -> Declaration:
        """Compute what is written on every pod of a replica when its gates are opened.

        Args:
            replica: the replica.
            roles: its pods; each role has at least one.
            age: seconds since the oldest of its pods was created.
        """
