"""When capacity may have grown, and when waiting groups are touched for it."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity import APART, DELAYS, Rounds, Waiting, grew, oldest_first
from reconciler.objects import Metadata, Node, NodeSpec, NodeStatus

GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node(*taints: dict[str, str], unschedulable: bool = False, **allocatable: str) -> Node:
    """A node with a GPU unless said otherwise."""
    spec = NodeSpec(unschedulable=unschedulable, taints=list(taints) or None)
    return Node(Metadata(name="n1"), spec, NodeStatus({"cpu": "8", "gpu": "1"} | allocatable))


CHANGES: dict[str, tuple[Node | None, Node | None, bool]] = {
    "added": (None, node(), True),
    "added, cordoned": (None, node(unschedulable=True), False),
    "gone": (node(), None, False),
    "the same": (node(), node(), False),
    "made schedulable": (node(unschedulable=True), node(), True),
    "cordoned": (node(), node(unschedulable=True), False),
    "larger": (node(gpu="1"), node(gpu="2"), True),
    "larger and cordoned": (node(gpu="1"), node(unschedulable=True, gpu="2"), False),
    "smaller": (node(gpu="2"), node(gpu="1"), False),
    "the same amount, written otherwise": (node(cpu="8"), node(cpu="8000m"), False),
    "a resource more": (node(), node(rdma="1"), True),
    "an amount that is none": (node(), node(rdma="x"), False),
    "its last taint gone": (node(NOT_READY), node(), True),
    "one of two taints gone": (node(GPU_TAINT, NOT_READY), node(GPU_TAINT), True),
    "another taint": (node(NOT_READY), node(GPU_TAINT), True),
    "a taint more": (node(GPU_TAINT), node(GPU_TAINT, NOT_READY), False),
    "the same taint, later": (node(GPU_TAINT), node(GPU_TAINT | {"timeAdded": "x"}), False),
}


@pytest.mark.parametrize(("old", "new", "more"), CHANGES.values(), ids=CHANGES.keys())
def test_growth_is_what_may_have_made_room(old: Node | None, new: Node | None, *, more: bool) -> None:
    """A GPU node keeps a taint for good: that it became ready shows in another one."""
    assert grew(old, new) is more


def rounds_of(growths: list[float], until: float) -> list[float]:
    """Let time pass in steps of 0.1 s; gives the times of the rounds."""
    rounds, found = Rounds(), []
    pending = sorted(growths)
    for tick in range(round(until * 10) + 1):
        now = tick / 10
        while pending and pending[0] <= now:
            rounds.growth(pending.pop(0))
        if rounds.take(now):
            found.append(now)
    assert rounds.next_due() is None
    return found


def test_growth_is_followed_by_two_rounds() -> None:
    """At once, and again for a scheduler that saw the node later."""
    assert rounds_of([0.0], 10) == [0.2, 2.5]


def test_a_hundred_nodes_are_a_few_rounds() -> None:
    """Coalesced, and a second apart."""
    found = rounds_of([i / 100 for i in range(100)], 10)
    assert len(found) <= 5
    assert found[0] == 0.2


@given(st.lists(st.floats(0, 20, allow_nan=False), max_size=60))
def test_every_growth_is_answered_in_time_and_rounds_are_apart(growths: list[float]) -> None:
    """After each growth a round comes soon and another one later, and never two within a second."""
    found = rounds_of(growths, 30)
    assert all(later - earlier >= APART - 1e-9 for earlier, later in itertools.pairwise(found))
    for growth in growths:
        for delay in DELAYS:
            assert any(growth + delay <= moment <= growth + delay + 2 * APART + 0.2 for moment in found)


def test_a_round_that_will_do_is_not_joined_by_another() -> None:
    """The second round of the first growth is the first one of the second growth."""
    assert rounds_of([0.0, 1.9], 10) == [0.2, 2.5, 4.4]


def test_rounds_stay_apart_though_somebody_came_late() -> None:
    """The first was taken late, so the next one waits."""
    rounds = Rounds()
    rounds.growth(0.0)
    assert rounds.take(2.4)
    assert not rounds.take(2.5)
    assert not rounds.take(3.3)
    assert rounds.take(3.4)


def test_nothing_is_due_without_growth() -> None:
    """No round, ever."""
    assert rounds_of([], 5) == []


def test_the_next_round_is_known() -> None:
    """So that nobody has to look in vain."""
    rounds = Rounds()
    rounds.growth(5.0)
    assert rounds.next_due() == 5.2


def test_the_oldest_waits_no_longer_than_the_youngest() -> None:
    """By the creation of their leaders; within one second by name."""
    rows: list[Any] = [("2026-01-01T00:00:02Z", "a"), ("2026-01-01T00:00:01Z", "c"), ("2026-01-01T00:00:01Z", "b")]
    waiting = {("ns", name): Waiting(created, ("ns", name), f"{name}-group", "coscheduling") for created, name in rows}
    assert [group.key[1] for group in oldest_first(waiting)] == ["b", "c", "a"]
