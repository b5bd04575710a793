"""Gates of replicas under a scheduler without a group object (`schedulers.contract.Declares`): where each one stands.

All is derived from the pods, so that a reconciler that died in the middle of anything is carried on by the next one.
A replica is opened when its first pod has no gate of ours any more, and it holds the turn until it is whole: see
`reconciler.turns`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from gangs import keys
from gangs.resources import ResourceError
from reconciler.actions import Action, LookAgain, OpenGate, PatchPod, Say
from reconciler.keeping import say_words
from reconciler.objects import Pod
from reconciler.parts import roles_of
from reconciler.replicas import NotYet, Sight, read_replica, real_size
from reconciler.rolls import Roll, call_roll, kept_away
from schedulers.abilities import Declares
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import Declaration, Provider, Replica

NOTHING: Final = Declaration({}, {})


class Standing(msgspec.Struct, frozen=True):
    """Where one replica stands.

    Attributes:
        sight: its objects.
        provider: its scheduler, which `Declares`.
        roll: its pods by what they carry.
        members: those of its members that live.
        needed: how many members it has when all are there.
    """

    sight: Sight
    provider: Provider
    roll: Roll
    members: tuple[Pod, ...]
    needed: int

    @property
    def gated(self) -> tuple[Pod, ...]:
        """Members that our gate holds, the leader first."""
        return tuple(pod for pod in self.members if pod.gated)

    @property
    def open(self) -> tuple[Pod, ...]:
        """Members that wait for their scheduler."""
        return tuple(pod for pod in self.members if not pod.gated and not pod.bound)

    @property
    def declared(self) -> tuple[Pod, ...]:
        """Members without our gate that carry the declaration."""
        return tuple(pod for pod in self.members if not pod.gated and declares(pod, self.provider))

    @property
    def whole(self) -> bool:
        """Whether every member is there and has a node."""
        return len(self.members) >= self.needed and all(pod.bound for pod in self.members)

    @property
    def settled(self) -> bool:
        """Whether it was whole once: a placed member has lost its declaration, or nobody ever gave it one.

        Its scheduler reserves nothing for such a replica any more; a member that is made anew is placed by itself.
        """
        return any(pod.bound and not declares(pod, self.provider) for pod in self.members)

    @property
    def holds_turn(self) -> bool:
        """Whether it has been opened and is not whole: some of its room may be held, and some not."""
        return bool(self.open) or (bool(self.declared) and not self.settled and not self.whole)


def declares(pod: Pod, provider: Provider) -> bool:
    """Tell whether a pod carries a declaration."""
    return isinstance(provider, Declares) and any(key in pod.annotations for key in provider.declared)


def standing_of(sight: Sight, configuration: Configuration) -> Standing | None:
    """See where a replica stands; `None` for one whose gates are nobody's business."""
    leader = sight.leader
    provider = configuration.provider(leader.spec.scheduler_name)
    if provider is None or not isinstance(provider, Declares) or kept_away(sight):
        return None
    if other_claim(leader, sight.member, provider, sight.member.group) is not None:
        return None
    roll = call_roll(sight, provider, configuration)
    members = tuple(pod for pod in roll.members if not (pod.leaving or pod.finished))
    return Standing(sight, provider, roll, members, max(1, real_size(sight) - strangers_in(roll)))


def strangers_in(roll: Roll) -> int:
    """Count the pods of a replica that are no members, and stay none: one that goes is made anew, as a member."""
    others = (*roll.dropped, *roll.strangers, *roll.unstamped)
    return sum(not (pod.leaving or pod.finished) for pod in others)


def read_whole(standing: Standing, configuration: Configuration) -> Replica | NotYet:
    """Compute the replica as its declaration says it, or say why its gates have to wait.

    Its pods have to be there, but for late ones, and no gate of anybody else may hold them: opened before that it
    would hold the turn, and room, for pods that can't come.

    Raises:
        gangs.resources.ResourceError: when a template asks for something that is no quantity.
    """
    found = read_replica(
        standing.sight, standing.provider, configuration.defaults, strangers=strangers_in(standing.roll)
    )
    if isinstance(found, NotYet):
        return found
    there = len(standing.members)
    if found.late is None and not standing.settled and there < standing.needed:
        return NotYet(f"{there} of {standing.needed} pods exist", 0.0)
    others = sorted({name for pod in standing.gated for name in other_gates(pod)})
    return NotYet(f'gate "{others[0]}" holds its pods', 0.0) if others else found


def other_gates(pod: Pod) -> Iterator[str]:
    """Give the gates of a pod that are not ours."""
    for gate in pod.spec.scheduling_gates or ():
        if gate.get("name") != keys.GATE:
            yield gate.get("name", "")


def open_gates(standing: Standing, replica: Replica) -> Iterator[OpenGate]:
    """Open the gates of a replica: on every pod the same declaration, whichever of them is seen first."""
    declaration = declaration_for(standing, replica)
    for pod in standing.gated:
        labels = {key: value for key, value in declaration.labels.items() if key not in pod.labels}
        yield OpenGate(pod.metadata.namespace, pod.metadata.name, opening(pod, labels, declaration.annotations))


def declaration_for(standing: Standing, replica: Replica) -> Declaration:
    """Compute what is written on the pods of a replica that are still gated.

    What its first pods were opened with stays, for it is what the scheduler has read. A replica that was whole once
    gets nothing: its scheduler would reserve its room a second time after a restart.
    """
    provider = standing.provider
    assert isinstance(provider, Declares)  # noqa: S101 - `standing_of` has looked
    if standing.settled:
        return NOTHING
    roles = roles_of(standing.sight, standing.members, standing.needed)
    fresh = provider.declare(replica, roles, age_of(standing))
    if not standing.declared:
        return fresh
    first = standing.declared[0].annotations
    return Declaration(fresh.labels, {key: first[key] for key in provider.declared if key in first})


def age_of(standing: Standing) -> float:
    """Give the seconds since the oldest pod of a replica was created."""
    return max(0.0, standing.sight.now - min(_seconds(pod.metadata.creation_timestamp) for pod in standing.members))


def opening(pod: Pod, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, object]:
    """Build the strategic merge patch that takes our gate off; gates of others stay, whatever becomes of them."""
    metadata: dict[str, object] = {"uid": pod.metadata.uid}
    metadata |= {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"metadata": metadata, "spec": {"schedulingGates": [{"$patch": "delete", "name": keys.GATE}]}}


def tend_gates(sight: Sight, configuration: Configuration) -> Iterator[Action]:
    """Do for one replica what depends on no other: take back declarations, and gates that nobody opens; say words."""
    standing = standing_of(sight, configuration)
    yield from release(sight, standing)
    if standing is None:
        return
    try:
        replica = read_replica(sight, standing.provider, configuration.defaults, strangers=strangers_in(standing.roll))
    except ResourceError as error:
        yield Say("BadTemplate", f"no gate is opened: {error}", str(error))
        return
    yield from take_back(standing, replica)
    if isinstance(replica, Replica):
        yield from say_words(sight, standing.provider, configuration, replica)


def release(sight: Sight, standing: Standing | None) -> Iterator[Action]:
    """Take our gate off pods that are in nobody's line: their scheduler was taken out of the configuration, say."""
    tended = () if standing is None else standing.members
    for pod in sight.pods:
        if pod.gated and not (pod.leaving or pod.finished or pod in tended):
            yield OpenGate(pod.metadata.namespace, pod.metadata.name, opening(pod, {}, {}))
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            message = f"pod {name}: its gate is taken off without a gang, for it is in no group of a scheduler of ours"
            yield Say("GateReleased", message, pod.metadata.uid)


def take_back(standing: Standing, replica: Replica | NotYet) -> Iterator[Action]:
    """Take the declaration off once the replica is whole, or the room of missing members is held no more.

    With it a restart of the scheduler would reserve the room again, or kill the running replica.
    """
    provider = standing.provider
    assert isinstance(provider, Declares)  # noqa: S101 - `standing_of` has looked
    if not standing.declared:
        return
    if not (standing.whole or standing.settled):
        if standing.open or standing.gated:
            return
        left = held_until(standing, replica) - standing.sight.now
        if left > 0:
            yield LookAgain(left, "room is held for members that have not come")
            return
    for pod in standing.declared:
        annotations = {key: None for key in provider.declared if key in pod.annotations}
        body = {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}}
        yield PatchPod(pod.metadata.namespace, pod.metadata.name, body)


def held_until(standing: Standing, replica: Replica | NotYet) -> float:
    """Give the moment, in seconds since 1970, from which no room is held for members that have not come."""
    provider = standing.provider
    assert isinstance(provider, Declares)  # noqa: S101 - `standing_of` has looked
    asked = replica.intent.schedule_timeout if isinstance(replica, Replica) else None
    return max(map(_placed_at, standing.members)) + (provider.hold if asked is None else asked)


def _placed_at(pod: Pod) -> float:
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            return _seconds(condition.last_transition_time)
    return _seconds(pod.metadata.creation_timestamp)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
