"""Replicas that are somebody else's, or nobody's, and what it takes to bring them into groups of ours. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from gangs import names
from reconciler.mending import fits_later
from reconciler.objects import Pod
from reconciler.replicas import Sight, real_size
from reconciler.rolls import call_roll, kept_away
from reconciler.snapshot import Snapshot
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import Claim, Provider

BY_HAND: Final = "written by hand"
OF_LWS: Final = "of LWS's own Volcano provider"
OF_OTHER: Final = "of someone else"
UNSTAMPED: Final = "admitted without a group"

WHAT_TO_DO: Final[Mapping[str, str]] = {
    BY_HAND: "the keys come off the pod templates, and LWS rolls its replicas over; the object they named stays",
    OF_LWS: "each replica is made anew, once LWS's manager runs without gangSchedulingManagement",
    OF_OTHER: "each replica is made anew, once whoever makes these groups has been turned off",
    UNSTAMPED: "each replica is made anew",
}


class Foundling(msgspec.Struct, frozen=True):
    """One replica in no group of ours.

    Attributes:
        leader: name of its leader pod.
        uid: the leader's UID.
        index: index of the replica.
        why: one of this module's constants.
        group: the group it is in, empty for none.
        provider: name of its scheduler's provider.
        whole: whether all its pods have a node.
    """

    leader: str
    uid: str
    index: int
    why: str
    group: str
    provider: str
    whole: bool


def foundlings(snapshot: Snapshot, configuration: Configuration) -> dict[tuple[str, str], list[Foundling]]:
    """Find the replicas of configured schedulers that are in no group of ours, by namespace and LWS."""
    found: dict[tuple[str, str], list[Foundling]] = {}
    for leader in sorted(snapshot.cache.leader_pods(), key=_order):
        provider = configuration.provider(leader.spec.scheduler_name)
        if provider is None or leader.leaving or leader.finished:
            continue
        kind, meta = snapshot.first(provider.kinds), leader.metadata
        sight = snapshot.cache.sight((meta.namespace, meta.name), kind, age=inf, recreations=0)
        if not isinstance(sight, Sight) or kept_away(sight):
            continue
        if (why := _why(sight, provider, configuration)) is not None:
            whole = sum(pod.bound for pod in sight.pods) >= real_size(sight)
            one = Foundling(meta.name, meta.uid, sight.member.index, *why, provider.name, whole)
            found.setdefault((meta.namespace, sight.member.lws), []).append(one)
    return found


def describe(lws: tuple[str, str], found: Sequence[Foundling]) -> Iterator[str]:
    """Say what was found of an LWS and what adopting it takes."""
    first = found[0]
    yield f"{'/'.join(lws)}: {len(found)} {'replica' if len(found) == 1 else 'replicas'} of {first.provider} to adopt"
    for why in sorted({one.why for one in found}):
        named = ", ".join(f"{one.leader} ({one.group})" if one.group else one.leader for one in found if one.why == why)
        yield f"  {why}: {named}: {WHAT_TO_DO[why]}"


def _order(leader: Pod) -> tuple[str, int, str]:
    name = leader.metadata.name
    return (leader.metadata.namespace, len(name), name)


def _why(sight: Sight, provider: Provider, configuration: Configuration) -> tuple[str, str] | None:
    claim = other_claim(sight.leader, sight.member, provider, sight.member.group)
    if claim is not None:
        return _whose(claim, sight, provider), claim.group
    unstamped = call_roll(sight, provider, configuration).unstamped
    return (UNSTAMPED, "") if unstamped and not fits_later(provider) else None


def _whose(claim: Claim, sight: Sight, provider: Provider) -> str:
    member = sight.member
    if claim.group == names.lws_volcano_group_name(member.lws, member.index, member.revision):
        return OF_LWS
    given = None if sight.lws is None else sight.lws.spec.leader_worker_template
    templates = () if given is None else (given.leader_template, given.worker_template)
    by_hand = (provider.claim(Pod(metadata=one.metadata, spec=one.spec)) for one in templates if one is not None)
    return BY_HAND if any(one is not None and one.group == claim.group for one in by_hand) else OF_OTHER
