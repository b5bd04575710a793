"""What to do about one replica, given what the cache shows.

Pure and level-triggered: the same sight gives the same answer, whatever happened before.
"""

from collections.abc import Iterator

import msgspec

from gangs.members import looks_nested
from reconciler.actions import Action, Say
from reconciler.claims import Served, keep_claim
from reconciler.gates import tend_gates
from reconciler.keeping import keep_group
from reconciler.mending import mend_unstamped
from reconciler.objects import Pod
from reconciler.overwriting import overwritten, say_overwritten
from reconciler.replicas import Sight
from reconciler.rolls import Roll, call_roll, kept_away, opted_out, waits, why_dropped
from schedulers.abilities import Declares
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import Claim, GroupKind, Provider


class Outcome(msgspec.Struct, frozen=True):
    """What is to be done about a replica, and what is to be counted of it.

    Attributes:
        actions: in order.
        provider: name of its provider, empty for none.
        unstamped: pods that were admitted without their group.
        dropped: pods whose stamp the API server has dropped.
        waiting: whether members of an existing group wait for their scheduler.
    """

    actions: tuple[Action, ...] = ()
    provider: str = ""
    unstamped: int = 0
    dropped: int = 0
    waiting: bool = False


def decide(sight: Sight, configuration: Configuration, served: Served) -> Outcome:
    """Decide what to do about one live leader's replica.

    Args:
        sight: what the cache holds about it.
        configuration: which schedulers are ours, what to repair.
        served: which group kinds the cluster has.
    """
    outcome = _decide(sight, configuration, served)
    if sight.leader.leaving or sight.leader.finished:
        return outcome
    tended = tuple(tend_gates(sight, configuration))
    return msgspec.structs.replace(outcome, actions=(*outcome.actions, *tended)) if tended else outcome


def _decide(sight: Sight, configuration: Configuration, served: Served) -> Outcome:
    leader = sight.leader
    provider = configuration.provider(leader.spec.scheduler_name)
    if provider is None or leader.leaving or leader.finished or kept_away(sight):
        return Outcome()
    if (claim := overwritten(sight, provider)) is not None:
        return Outcome((say_overwritten(provider, claim),), provider.name)
    claim = other_claim(leader, sight.member, provider, sight.member.group)
    if claim is not None:
        return Outcome((_stand_down(provider, claim),), provider.name)
    roll = call_roll(sight, provider, configuration)
    return Outcome(
        actions=(
            *mend_unstamped(sight, provider, configuration, roll),
            *_say_strange(roll, provider, served(provider.kinds)),
            *_say_nested(sight),
            *_keep(sight, provider, configuration, roll, served),
            *keep_claim(sight, served),
        ),
        provider=provider.name,
        unstamped=len(roll.unstamped),
        dropped=len(roll.dropped),
        waiting=any(waits(pod) or pod.gated for pod in roll.members)
        if isinstance(provider, Declares)
        else sight.group is not None and any(waits(pod) for pod in roll.members),
    )


def _keep(
    sight: Sight, provider: Provider, configuration: Configuration, roll: Roll, served: Served
) -> Iterator[Action]:
    if not roll.members or isinstance(provider, Declares):
        return
    kind = served(provider.kinds)
    if kind is None:
        titles = ", ".join(kind.title for kind in provider.kinds)
        yield Say("GroupKindNotServed", f"the cluster serves none of {titles}: no group is made", provider.name)
        return
    yield from keep_group(sight, provider, configuration, roll, kind)


def _stand_down(provider: Provider, claim: Claim) -> Say:
    """Say that someone else's group is in charge; once for each LWS."""
    message = f"pods carry {claim.path} of someone else: no {provider.name} groups are made for them"
    return Say("GroupOfOther", message, provider.name, type="Normal")


def _say_strange(roll: Roll, provider: Provider, kind: GroupKind | None) -> Iterator[Action]:
    """Say that the API server has dropped stamps (once for each LWS), or that workers don't follow their leader."""
    if roll.dropped:
        yield Say("StampDropped", f"{why_dropped(provider, kind)}: pods are placed one by one", provider.name)
    for pod in roll.strangers:
        what = "is opted out" if opted_out(pod) else "is of another scheduler or group"
        message = f"pod {_title(pod)}: {what}, unlike its leader, which is in {provider.name}'s"
        yield Say("NotWithItsLeader", message, pod.metadata.uid)


def _say_nested(sight: Sight) -> Iterator[Action]:
    """Say that workers look like leaders: LWS then nests sets in sets (kubernetes-sigs/lws#391)."""
    for pod in sight.workers:
        if looks_nested(pod.labels, pod.annotations):
            message = f"pod {_title(pod)}: has the leader's worker-index and is a worker; no group is made for it"
            yield Say("WorkerLooksLikeLeader", message, pod.metadata.uid)


def _title(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
