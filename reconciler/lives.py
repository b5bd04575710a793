"""What is remembered of leaders between reconciles."""

from collections.abc import Callable
from typing import Final

import msgspec

from reconciler.clocks import Clock
from reconciler.objects import Pod
from reconciler.store import Key

LONGEST_MEMORY: Final = 3600.0


class Life(msgspec.Struct):
    """What is remembered of one leader.

    Attributes:
        uid: its UID.
        seen: when it was first seen, by the monotonic clock.
        recreations: how often a leader of this name has been deleted for want of a stamp.
    """

    uid: str
    seen: float
    recreations: int = 0


class Lives:
    """The leaders by namespace and name."""

    def __init__(self, clock: Clock) -> None:
        """Remember nothing."""
        self._clock = clock
        self._lives: dict[Key, Life] = {}

    def of(self, key: Key, leader: Pod) -> Life:
        """Give what is known of a leader; a new one takes over how often its name was recreated."""
        life = self._lives.get(key)
        if life is None or life.uid != leader.metadata.uid:
            recreations = 0 if life is None else life.recreations
            life = self._lives[key] = Life(leader.metadata.uid, self._clock.now(), recreations)
        return life

    def age(self, key: Key) -> float:
        """Give the seconds since a leader was first seen."""
        life = self._lives.get(key)
        return 0.0 if life is None else self._clock.now() - life.seen

    def recreated(self, key: Key) -> None:
        """Count that a leader is deleted for want of a stamp."""
        life = self._lives.get(key)
        if life is not None:
            life.recreations += 1

    def end(self, key: Key) -> None:
        """Forget a leader; how often it was recreated is kept until its successor is stamped or it stays away."""
        life = self._lives.get(key)
        if life is not None and not life.recreations:
            del self._lives[key]

    def tidy(self, lives: Callable[[Key], bool]) -> None:
        """Forget leaders that have long been gone; `lives` tells whether there is one of that name."""
        now = self._clock.now()
        for key, life in list(self._lives.items()):
            if now - life.seen > LONGEST_MEMORY and not lives(key):
                self._lives.pop(key, None)
