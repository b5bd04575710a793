"""Wakes what its scheduler forgets: writes on waiting groups when capacity may have grown.

Seen on scheduler-plugins v0.34.1-devel: a group refused for minResources slept 293 s through a new node, and was bound
0.3 s after its PodGroup was written.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gangs.quantities import QuantityError, parse_quantity
from reconciler.objects import Node
from reconciler.store import Key

DELAYS: Final = (0.2, 2.5)
"""Seconds after growth at which waiting groups are touched: at once, and again for a scheduler that saw it later."""

APART: Final = 1.0
"""Fewest seconds between two rounds."""


def grew(old: Node | None, new: Node | None) -> bool:
    """Tell whether a node's change may have made room."""
    if new is None or new.spec.unschedulable:
        return False
    if old is None or old.spec.unschedulable or _kept_away(old) - _kept_away(new):
        return True
    have, had = new.status.allocatable or {}, old.status.allocatable or {}
    return any(_amount(value) > _amount(had.get(name, "0")) for name, value in have.items())


def _kept_away(node: Node) -> set[tuple[str, str, str]]:
    """Give a node's taints; GPU nodes keep one for good, so each counts by itself."""
    return {(taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")) for taint in node.spec.taints or ()}


def _amount(text: str) -> int:
    try:
        return parse_quantity(text)
    except QuantityError:
        return 0


class Waiting(msgspec.Struct, frozen=True):
    """A group that waits.

    Attributes:
        created: creation time of its leader, to go by age.
        key: namespace and name of the leader pod.
        group: name of the group object.
        provider: whose it is.
    """

    created: str
    key: Key
    group: str
    provider: str


class Rounds:
    """When to touch waiting groups: coalesced, so that a hundred new nodes are a few rounds. Not thread-safe."""

    def __init__(self) -> None:
        """Start with nothing due."""
        self._due: list[float] = []
        self._last = float("-inf")

    def growth(self, now: float) -> None:
        """Note that capacity may have grown: rounds follow."""
        for delay in DELAYS:
            self._add(max(now + delay, self._last + APART))

    def _add(self, moment: float) -> None:
        """Add a round, later by what it must be apart from the one before it, unless the one after it will do."""
        for due in self._due:
            if moment <= due < moment + APART:
                return
            if due < moment < due + APART:
                moment = due + APART
        self._due = sorted([*self._due, moment])

    def next_due(self) -> float | None:
        """Say when the next round is due."""
        return self._due[0] if self._due else None

    def take(self, now: float) -> bool:
        """Take all rounds that are due; tells whether there was one."""
        if now < self._last + APART:
            return False
        due = [moment for moment in self._due if moment <= now]
        self._due = self._due[len(due) :]
        self._last = now if due else self._last
        return bool(due)


def oldest_first(waiting: Mapping[Key, Waiting]) -> list[Waiting]:
    """Order waiting groups by the age of their leaders."""
    return sorted(waiting.values(), key=lambda group: (group.created, group.key))
