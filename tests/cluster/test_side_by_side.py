"""Several schedulers on one cluster: each places its own replicas whole, and no pod carries another's key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from reconciler.objects import Pod
from schedulers.registry import all_providers
from tests.cluster.resources import NODES as NODES_KIND
from tests.cluster.resources import PODS
from tests.cluster.scenarios import ALL, COSCHEDULING, KOORDINATOR, NATIVE, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

NODES = 11
"""One-pod nodes: room for five whole replicas of two, and half of another."""

REPLICAS = 4
"""Of each LWS."""


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep and one-pod nodes."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    crowded_plane.nodes.add([f"n{number}" for number in range(NODES)])
    return crowded_plane


@pytest.mark.parametrize(
    "schedulers", [(NATIVE, COSCHEDULING, KOORDINATOR), ALL], ids=["three schedulers", "and KAI beside them"]
)
def test_c25_created_together_over_capacity_all_place_whole_replicas(
    plane: ControlPlane, schedulers: tuple[Scheduler, ...]
) -> None:
    """The room is used, and none ends in part; each pod is in a group of its own scheduler alone.

    How many are placed is not the point: schedulers that don't know of each other may give one node to two pods.
    """
    for scheduler in schedulers:
        plane.lws.create(scheduler.provider, REPLICAS, 2, scheduler=scheduler.name)
    plane.wait("all pods exist", lambda: pods(plane, schedulers, 2 * REPLICAS))
    plane.wait("the room is used", lambda: free_nodes(plane) <= 1 and not in_part(plane, schedulers), 90)
    plane.holds("whole or absent", lambda: not in_part(plane, schedulers), 5)
    assert NODES // 2 <= whole(plane, schedulers) < REPLICAS * len(schedulers)

    for scheduler in schedulers:
        check_keys(plane, scheduler)


def pods(plane: ControlPlane, schedulers: tuple[Scheduler, ...], each: int) -> bool:
    """Has every LWS so many pods?"""
    return all(len(plane.lws.pods(scheduler.provider)) == each for scheduler in schedulers)


def free_nodes(plane: ControlPlane) -> int:
    """How many nodes have no pod."""
    taken = {pod["spec"].get("nodeName") for pod in plane.api.items(PODS)}
    return sum(node["metadata"]["name"] not in taken for node in plane.api.items(NODES_KIND))


def whole(plane: ControlPlane, schedulers: tuple[Scheduler, ...]) -> int:
    """How many replicas have all their nodes."""
    return sum(len(plane.lws.whole(scheduler.provider, 2)) for scheduler in schedulers)


def in_part(plane: ControlPlane, schedulers: tuple[Scheduler, ...]) -> dict[str, list[int]]:
    """Replicas that have some of their nodes, by LWS."""
    found = {scheduler.provider: plane.lws.in_part(scheduler.provider, 2) for scheduler in schedulers}
    return {name: replicas for name, replicas in found.items() if replicas}


def check_keys(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Check that the pods of one LWS are in groups of their own scheduler that exist, and in nobody else's."""
    groups = {group["metadata"]["name"] for group in plane.api.items(scheduler.groups)}
    found = Counter(claims_of(pod) for pod in plane.lws.pods(scheduler.provider))
    assert found == dict.fromkeys(((scheduler.provider, name) for name in groups), 2)
    assert len(groups) == REPLICAS


def claims_of(pod: Json) -> tuple[str, ...]:
    """Name each provider that would find the pod in a group, and the group."""
    seen = msgspec.convert(pod, Pod)
    claims = {name: provider.claim(seen) for name, provider in all_providers().items()}
    return tuple(part for name, claim in claims.items() if claim for part in (name, claim.group))
