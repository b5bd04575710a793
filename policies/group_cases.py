"""What the rules about group objects look at first."""

from typing import Final

import msgspec

from policies.registry import Case
from policies.replicas import Replica, minimum_of, replica_of_group
from policies.shapes import Group
from policies.snapshot import group_kind, provider_of_kind
from schedulers.contract import Provider
from schedulers.registry import all_providers

GROUP_KINDS: Final = tuple(sorted(group_kind(provider) for provider in all_providers().values() if provider.kinds))
"""The kinds of group object of every scheduler."""


class SeenGroup(msgspec.Struct, frozen=True):
    """A group object whose replica and minimum are known.

    Attributes:
        group: the object.
        provider: whose it is.
        replica: for which replica.
        size: of the replica.
        minimum: as it stands in the object.
        path: field path of the minimum.
    """

    group: Group
    provider: Provider
    replica: Replica
    size: int
    minimum: int
    path: str


def judged_group(case: Case) -> SeenGroup | None:
    """Find the replica of the group object under review; `None` when it is none of an LWS, or too little is known."""
    group, provider = case.thing, provider_of_kind(case.subject.kind)
    if not isinstance(group, Group) or provider is None or group.leaving:
        return None
    replica = replica_of_group(group, provider, case.snapshot)
    minimum = minimum_of(group, provider)
    if replica is None or replica.size is None or minimum is None:
        return None
    return SeenGroup(group, provider, replica, replica.size, minimum, f"spec.{provider.minimum}")
