"""Whose gates are opened: one replica at a time over all nodes of a scheduler, the oldest first.

Two replicas that are opened at once may each get a part of the room that only one of them can use, and then both wait
for ever: seen with YuniKorn in four of six tries, also over queues. So the next is opened when the one before is whole,
or gone. A replica that can't be opened yet is passed over; it holds nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from gangs.resources import ResourceError
from reconciler.gates import Standing, read_whole, standing_of
from reconciler.objects import Pod
from reconciler.replicas import NotYet, Sight
from reconciler.store import Key
from schedulers.configuration import Configuration
from schedulers.contract import Replica

NEVER: Final = 0.0


class Place(msgspec.Struct, frozen=True):
    """One replica's place in the line.

    Attributes:
        age: what it is put in order by: creation of its leader, namespace, LWS, index.
        standing: where it stands.
        begun: whether this process has begun to open it, though the cache may not show it yet.
        refused: whether the API server has just refused to have it opened.
    """

    age: tuple[str, str, str, int]
    standing: Standing
    begun: bool = False
    refused: bool = False

    @property
    def holds(self) -> bool:
        """Whether it holds the turn."""
        return self.standing.holds_turn or (self.begun and not self.standing.whole)

    @property
    def title(self) -> str:
        """Name of its leader for people."""
        metadata = self.standing.sight.leader.metadata
        return f"{metadata.namespace}/{metadata.name}"


class Line(msgspec.Struct, frozen=True):
    """Everyone whose gates are opened one after the other.

    Attributes:
        places: in order.
        stand_ins: namespace and group -> the pods that its scheduler has made to hold its room.
    """

    places: tuple[Place, ...] = ()
    stand_ins: Mapping[Key, Sequence[Pod]] = {}


NOBODY: Final = Line()


class Opening(msgspec.Struct, frozen=True):
    """A replica whose gates are to be opened now."""

    place: Place
    replica: Replica


class Turns(msgspec.Struct, frozen=True):
    """What is to be opened, and when to look again though nothing changes; `None` for never."""

    openings: tuple[Opening, ...] = ()
    again: NotYet | None = None


def line_up(
    sights: Iterable[Sight], configuration: Configuration, begun: Collection[str] = (), refused: Collection[str] = ()
) -> list[Place]:
    """Put the replicas of one scheduler in line.

    Args:
        sights: all of them that have not been placed; others do no harm.
        configuration: whose they are.
        begun: UIDs of leaders whose replicas this process has begun to open.
        refused: UIDs of leaders whose replicas the API server has just refused to have opened.
    """
    places = _places(sights, configuration, begun, refused)
    return sorted(places, key=lambda place: place.age)


def _places(
    sights: Iterable[Sight], configuration: Configuration, begun: Collection[str], refused: Collection[str]
) -> Iterable[Place]:
    for sight in sights:
        leader = sight.leader
        if leader.leaving or leader.finished:
            continue
        standing = standing_of(sight, configuration)
        if standing is not None and standing.members:
            age = (leader.metadata.creation_timestamp, sight.member.namespace, sight.member.lws, sight.member.index)
            uid = leader.metadata.uid
            yield Place(age, standing, uid in begun, uid in refused)


def take_turns(line: Sequence[Place], configuration: Configuration) -> Turns:
    """Find whose gates are to be opened now: of those that hold the turn, else of the oldest that can be opened."""
    holders = [place for place in line if place.holds]
    soonest: NotYet | None = None
    openings = []
    for place in holders or line:
        if not place.standing.gated or (place.refused and not holders):
            continue
        found = _whole(place, configuration)
        if isinstance(found, NotYet):
            if found.seconds and (soonest is None or found.seconds < soonest.seconds):
                soonest = found
            continue
        openings.append(Opening(place, found))
        if not holders:
            break
    return Turns(tuple(openings), soonest)


def _whole(place: Place, configuration: Configuration) -> Replica | NotYet:
    try:
        return read_whole(place.standing, configuration)
    except ResourceError as error:
        return NotYet(str(error), NEVER)


def why_gated(line: Sequence[Place], sight: Sight, configuration: Configuration) -> str:
    """Say why a replica's gates are closed; empty for one that has none, or is not in the line."""
    own, others = _own(line, sight)
    if own is None or not own.standing.gated:
        return ""
    found = _whole(own, configuration)
    if isinstance(found, NotYet) and not own.holds:
        return f"its gate waits: {found.reason}"
    first = next((place for place in others if place.holds), None)
    first = first or next((place for place in others if place.age < own.age and _can_go(place, configuration)), None)
    return "its gate is being opened" if own.holds or first is None else f"waits for its turn behind {first.title}"


def how_many_wait(line: Sequence[Place], sight: Sight) -> int:
    """Count the replicas that wait for their turn while this one holds it."""
    own, others = _own(line, sight)
    if own is None or not own.holds:
        return 0
    return sum(bool(place.standing.gated) and not place.holds for place in others)


def _own(line: Sequence[Place], sight: Sight) -> tuple[Place | None, list[Place]]:
    """Find a replica's place, and those of the others of its scheduler."""
    uid = sight.leader.metadata.uid
    own = next((place for place in line if place.standing.sight.leader.metadata.uid == uid), None)
    if own is None:
        return None, []
    name = own.standing.provider.name
    return own, [place for place in line if place is not own and place.standing.provider.name == name]


def _can_go(place: Place, configuration: Configuration) -> bool:
    return bool(place.standing.gated) and not isinstance(_whole(place, configuration), NotYet)
