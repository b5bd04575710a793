"""What state a replica is in, derived from objects, scheduling gates and bindings.

Conditions go stale (an old "pod group is not ready" outlives its group), so they only supply the words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gangs import keys, late
from gangs.resources import ResourceError, add, pod_requests, scale, to_quantities
from reconciler.keeping import ours, owned_by_leader
from reconciler.mending import fits_later
from reconciler.objects import Pod
from reconciler.overwriting import overwritten, why_overwritten
from reconciler.replicas import Sight, real_size, whole_requests
from reconciler.rolls import Roll, call_roll, kept_away, opted_out, waits, why_dropped
from reconciler.room import Shortage, shortages
from reconciler.turns import NOBODY, Line, how_many_wait, why_gated
from reconciler.wanted import live_minimum
from schedulers.abilities import Declares
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import GroupKind, Provider

NO_LEADER: Final = "no leader"
MALFORMED: Final = "malformed"
NOT_OURS: Final = "not ours"
ENDING: Final = "ending"
UNSTAMPED: Final = "unstamped"
STAMP_DROPPED: Final = "stamp dropped"
RUNNING: Final = "running"
PLACED: Final = "placed"
IN_PART: Final = "in part"
GATED: Final = "gated"
NO_GROUP: Final = "no group"
WAITS_FOR_MEMBERS: Final = "waits for members"
WAITS_FOR_CAPACITY: Final = "waits for capacity"


class Finding(msgspec.Struct, frozen=True):
    """A state with its reason.

    Attributes:
        state: one of this module's constants.
        reason: one sentence for people.
        short: the resources of which the waiting pods ask more than is free in sum.
        words: what the scheduler last said about a pod that waits.
    """

    state: str
    reason: str
    short: tuple[Shortage, ...] = ()
    words: str = ""


class Facts(msgspec.Struct, frozen=True):
    """What is looked at to judge a replica of ours.

    Attributes:
        sight: its objects.
        provider: its scheduler.
        kind: the group kind that counts, `None` where the cluster serves none.
        roll: its pods by what they carry.
        size: pods as it is really built.
        free: what is free in the cluster in sum, `None` where that is not known.
        turn: why our gate holds its pods, empty where it holds none.
        behind: how many replicas wait for their turn while it holds its own.
        stand_ins: pods that its scheduler has made to hold its room.
    """

    sight: Sight
    provider: Provider
    kind: GroupKind | None
    roll: Roll
    size: int
    free: Mapping[str, int] | None
    turn: str = ""
    behind: int = 0
    stand_ins: Sequence[Pod] = ()

    @property
    def bound(self) -> int:
        """How many of its pods have a node."""
        return sum(pod.bound for pod in self.sight.pods)

    @property
    def unbound(self) -> tuple[Pod, ...]:
        """Its pods that have no node."""
        return tuple(pod for pod in self.sight.pods if not pod.bound)


def judge(
    sight: Sight,
    configuration: Configuration,
    served: Callable[[Sequence[GroupKind]], GroupKind | None],
    free: Mapping[str, int] | None,
    line: Line = NOBODY,
) -> Finding:
    """Find the state of one leader's replica.

    Args:
        sight: its objects.
        configuration: which schedulers are ours.
        served: gives the first of some group kinds that the cluster serves.
        free: what is free in the cluster in sum, `None` where that is not known.
        line: replicas whose gates are opened one after the other.
    """
    provider = configuration.provider(sight.leader.spec.scheduler_name)
    reason = _why_not_ours(sight, provider)
    if provider is None or reason:
        left = any(pod.gated for pod in sight.pods)
        told = f'; gate "{keys.GATE}" is still on its pods, and comes off' if left else ""
        return Finding(NOT_OURS, reason + told)
    roll = call_roll(sight, provider, configuration)
    turn, behind = why_gated(line.places, sight, configuration), how_many_wait(line.places, sight)
    stand_ins = line.stand_ins.get((sight.member.namespace, sight.member.group or ""), ())
    facts = Facts(sight, provider, served(provider.kinds), roll, real_size(sight), free, turn, behind, stand_ins)
    return next(found for rule in RULES if (found := rule(facts)) is not None)


def _why_not_ours(sight: Sight, provider: Provider | None) -> str:
    leader = sight.leader
    if provider is None:
        return f'scheduler "{leader.spec.scheduler_name}" is not configured'
    if kept_away(sight):
        return f"its {'pod template' if opted_out(leader) else 'namespace'} keeps Lockstep away"
    if (claim := overwritten(sight, provider)) is not None:
        return why_overwritten(provider, claim)
    claim = other_claim(leader, sight.member, provider, sight.member.group)
    return "" if claim is None else f'its leader is in group "{claim.group}" of someone else ({claim.path})'


def _ending(facts: Facts) -> Finding | None:
    return Finding(ENDING, "its leader is being deleted") if facts.sight.leader.leaving else None


def _unstamped(facts: Facts) -> Finding | None:
    pods = [pod for pod in facts.roll.unstamped if not (pod.leaving or pod.finished)]
    if not pods:
        return None
    future = "is to be stamped" if fits_later(facts.provider) else f"is placed alone by {facts.provider.title}"
    return Finding(UNSTAMPED, f"pod {pods[0].metadata.name} was admitted without its group and {future}{_more(pods)}")


def _stamp_dropped(facts: Facts) -> Finding | None:
    pods = facts.roll.dropped
    if not pods:
        return None
    why = why_dropped(facts.provider, facts.kind)
    return Finding(STAMP_DROPPED, f"{why}: pod {pods[0].metadata.name} is in no group{_more(pods)}")


def _whole(facts: Facts) -> Finding | None:
    """All pods have a node: what has no node can't hold anything back."""
    if facts.bound < facts.size:
        return None
    running = [pod for pod in facts.sight.pods if _runs(pod)]
    if len(running) >= facts.size:
        return Finding(RUNNING, "all pods are ready")
    return Finding(PLACED, f"all pods have a node, {len(running)} of {facts.size} are ready")


def _in_part(facts: Facts) -> Finding | None:
    if not facts.bound or not facts.unbound:
        return None
    told = [f"{facts.bound} of {facts.size} pods have a node while others wait"]
    if why := _why_late(facts):
        told.append(f"its workers come after its leader ({why})")
    told += _gates(facts)
    short, asks = _blocking(facts)
    return Finding(IN_PART, "; ".join([*told, asks]), short, _words(facts.unbound))


def _gated(facts: Facts) -> Finding | None:
    gates = _gates(facts)
    return Finding(GATED, "; ".join(gates)) if gates else None


def _reserves(facts: Facts) -> Finding | None:
    """See a replica of a scheduler without a group object once its gates are open."""
    if not isinstance(facts.provider, Declares):
        return None
    exist = f"{sum(not pod.finished for pod in facts.roll.members)} of {facts.size} pods exist"
    behind = f"; {facts.behind} replicas wait for their turn behind it" if facts.behind else ""
    if not any(waits(pod) for pod in facts.roll.members):
        why = _why_late(facts) if facts.bound else None
        late = f": its workers come after its leader ({why})" if why else ""
        return Finding(WAITS_FOR_MEMBERS, f"{exist}{late}{behind}")
    placed = [pod for pod in facts.stand_ins if pod.bound]
    held = f"{len(placed)} of its {len(facts.stand_ins)} placeholders have a node and hold it until all have one"
    short, asks = _blocking(msgspec.structs.replace(facts, free=_with_own(facts.free, placed)))
    words = _words([pod for pod in facts.stand_ins if not pod.bound]) or _words(facts.unbound)
    return Finding(WAITS_FOR_CAPACITY, f"{held}{behind}; {asks}", short, words)


def _with_own(free: Mapping[str, int] | None, placed: Sequence[Pod]) -> Mapping[str, int] | None:
    """Count what a replica's own placeholders hold as free for it."""
    return None if free is None else add(free, *(pod_requests(pod.spec, pod.status) for pod in placed))


def _no_group(facts: Facts) -> Finding | None:
    kind, live = facts.kind, facts.sight.group
    if kind is None:
        titles = ", ".join(kind.title for kind in facts.provider.kinds)
        return Finding(NO_GROUP, f"the cluster serves none of {titles}")
    name = f'{kind.title} "{facts.sight.member.group}"'
    if live is None:
        return Finding(NO_GROUP, f"{len(facts.roll.members)} members wait, and there is no {name} yet")
    if not ours(live, facts.sight):
        return Finding(NO_GROUP, f"{name} is someone else's")
    if live.metadata.deletion_timestamp is not None:
        return Finding(NO_GROUP, f"{name} is being deleted")
    if not owned_by_leader(live, facts.sight):
        return Finding(NO_GROUP, f"{name} belongs to a leader that is gone")
    return None


def _waits_for_members(facts: Facts) -> Finding | None:
    live = facts.sight.group
    found = None if live is None else live_minimum(live, facts.provider)
    minimum = facts.size if found is None else found
    members = sum(not pod.finished for pod in facts.roll.members)
    exist = f"{members} of {facts.size} pods exist"
    if members < minimum:
        return Finding(WAITS_FOR_MEMBERS, f"{exist}, and {minimum} are placed together or not at all")
    if facts.bound and (why := _why_late(facts)):
        return Finding(WAITS_FOR_MEMBERS, f"{exist}: its workers come after its leader ({why})")
    return None


def _waits_for_capacity(facts: Facts) -> Finding:
    short, asks = _blocking(facts)
    return Finding(WAITS_FOR_CAPACITY, asks, short, _words(facts.unbound))


RULES: Final[tuple[Callable[[Facts], Finding | None], ...]] = (
    _ending,
    _unstamped,
    _stamp_dropped,
    _whole,
    _in_part,
    _gated,
    _reserves,
    _no_group,
    _waits_for_members,
    _waits_for_capacity,
)
"""The first that finds something counts; the last always does."""


def _blocking(facts: Facts) -> tuple[tuple[Shortage, ...], str]:
    """Say what the pods without a node ask for, against what is free in sum."""
    try:
        whole = whole_requests(facts.sight, facts.size)
        placed = add(*(pod_requests(pod.spec, pod.status) for pod in facts.sight.pods if pod.bound))
    except ResourceError as error:
        return (), f"what it asks is not known: {error}"
    if whole is None:
        return (), "what it asks is not known: the template of its workers is not there"
    asks = add(whole, scale(placed, -1))
    if facts.free is None:
        listed = ", ".join(f"{name} {quantity}" for name, quantity in to_quantities(asks).items())
        return (), f"asks {listed or 'nothing'}; what is free is not known: nodes or pods can't be listed"
    short = shortages(asks, facts.free)
    if not short:
        return (), "asks no more than is free in sum, but a sum is not a placement"
    listed = ", ".join(f"{one.resource} {one.asks}, {one.free} free in sum" for one in short)
    return short, f"asks {listed} (a sum is not a placement)"


def _words(pods: Sequence[Pod]) -> str:
    """Give what the scheduler last said about a pod without a node: the newest `PodScheduled` condition's message."""
    said = [
        (condition.last_transition_time or "", condition.message)
        for pod in pods
        for condition in pod.status.conditions or ()
        if condition.type == "PodScheduled" and condition.status == "False" and condition.message
        # It stays when the gate is gone, until a scheduler says something else.
        if condition.reason != "SchedulingGated" or pod.spec.scheduling_gates
    ]
    return max(said)[1] if said else ""


def _gates(facts: Facts) -> list[str]:
    return sorted(
        {
            facts.turn if name == keys.GATE and facts.turn else f'waits for gate "{name}"'
            for name in gates_of(facts.unbound)
        }
    )


def gates_of(pods: Sequence[Pod]) -> Iterator[str]:
    """Give the scheduling gates of pods that have no node."""
    for pod in pods:
        for gate in pod.spec.scheduling_gates or () if not pod.bound else ():
            yield gate.get("name", "")


def _runs(pod: Pod) -> bool:
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions or ())
    return pod.bound and pod.status.phase == "Running" and ready


def _why_late(facts: Facts) -> str | None:
    lws = facts.sight.lws
    if lws is None:
        return None
    return late.why_late(lws.spec.startup_policy, lws.metadata.annotations or {}, facts.size)


def _more(pods: Sequence[Pod]) -> str:
    return "" if len(pods) == 1 else f" ({len(pods)} pods)"
