"""Opens gates: reads the line out of the cache, and remembers what the watch doesn't show yet."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from reconciler.actions import LookAgain, OpenGate
from reconciler.cache import Cache
from reconciler.contract import ApiError, CallFailed, Conflict, NotFound, TooManyRequests
from reconciler.gates import open_gates
from reconciler.replicas import Sight
from reconciler.store import Key
from reconciler.turns import Turns, line_up, take_turns
from schedulers.configuration import Configuration
from schedulers.contract import Provider

SERVERS_FAULT: Final = 500
"""Status from which on an error doesn't say that nothing was written."""

PASSED_OVER: Final = 60.0
"""Seconds for which a replica that the API server refuses to have opened holds up nobody."""

Work = tuple[Key, OpenGate]
"""The leader, and the gate of one pod of its replica."""


class Gatekeeper:
    """Opens the gates of one scheduler. Not thread-safe: all its calls come from one thread at a time.

    What it remembers only spares writes and bridges the moment until the watch has caught up; whose turn it is follows
    from the pods.
    """

    def __init__(self, provider: Provider, cache: Cache, configuration: Configuration) -> None:
        """Take the scheduler's provider, which `Declares`."""
        self._cache, self._configuration = cache, configuration
        self._names = [name for name, of in configuration.schedulers.items() if of == provider.name]
        self._tried: dict[str, str] = {}
        self._opened: set[str] = set()
        self._refused: dict[str, float] = {}
        self._now = 0.0

    def look(self, ages: Callable[[Key], float], now: float) -> tuple[list[Work], LookAgain | None]:
        """Find what is to be opened now, and when to look again though nothing changes.

        Args:
            ages: gives the seconds since a leader was first seen.
            now: seconds since 1970.
        """
        sights = list(self._sights(ages, now))
        self._catch_up(sights)
        self._now = now
        self._refused = {uid: until for uid, until in self._refused.items() if until > now}
        line = line_up(sights, self._configuration, set(self._tried.values()), self._refused)
        turns = take_turns(line, self._configuration)
        again = None if turns.again is None else LookAgain(turns.again.seconds, turns.again.reason)
        return list(self._work(turns)), again

    def tried(self, work: Work, error: CallFailed | None) -> None:
        """Note what became of a gate.

        A refused one is closed, and its replica passed over for a while; where there was no answer, the turn counts as
        taken.
        """
        if error is None:
            self._opened.add(_uid(work))
        elif isinstance(error, ApiError) and error.status < SERVERS_FAULT:
            leader = self._tried.pop(_uid(work), "")
            if not isinstance(error, Conflict | NotFound | TooManyRequests):
                self._refused[leader] = self._now + PASSED_OVER

    def _sights(self, ages: Callable[[Key], float], now: float) -> Iterator[Sight]:
        for name in self._names:
            for key in self._cache.leaders_at_gate(name):
                sight = self._cache.sight(key, None, age=ages(key), recreations=0, now=now)
                if isinstance(sight, Sight):
                    yield sight

    def _catch_up(self, sights: list[Sight]) -> None:
        """Forget pods that the watch shows without our gate, or not any more."""
        gated = {pod.metadata.uid for sight in sights for pod in sight.pods if pod.gated}
        self._tried = {uid: leader for uid, leader in self._tried.items() if uid in gated}
        self._opened &= gated

    def _work(self, turns: Turns) -> Iterator[Work]:
        for opening in turns.openings:
            leader = opening.place.standing.sight.leader.metadata
            for action in open_gates(opening.place.standing, opening.replica):
                work = ((leader.namespace, leader.name), action)
                if _uid(work) not in self._opened:
                    self._tried[_uid(work)] = leader.uid
                    yield work


def _uid(work: Work) -> str:
    metadata = work[1].body["metadata"]
    assert isinstance(metadata, Mapping)  # noqa: S101 - made by `gates.opening`
    return str(metadata["uid"])
