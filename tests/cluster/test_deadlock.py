"""The main job: replicas are placed whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.scenarios import EVERY_SCHEDULER, ON_ALL, POD_BY_POD, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane, PlaneFactory
    from tests.cluster.lockstep import LockstepFactory

NODES = ["n1", "n2", "n3", "n4"]


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with every scheduler."""
    return start_plane(EVERY_SCHEDULER)


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with four one-pod nodes."""
    shared_plane.reset()
    shared_plane.nodes.add(NODES)
    return shared_plane


@pytest.mark.parametrize("scheduler", POD_BY_POD, ids=[scheduler.provider for scheduler in POD_BY_POD])
def test_without_lockstep_a_replica_is_placed_in_part(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Ten replicas of two on four one-pod nodes, placed pod by pod, end with GPUs held for nothing."""
    plane.lws.create("vllm", 10, 2, scheduler=scheduler.name)
    plane.wait("four pods bound", lambda: bound(plane) == 4)
    assert plane.lws.in_part("vllm", 2)


@ON_ALL
def test_with_lockstep_exactly_the_replicas_that_fit_are_placed_whole(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """Two whole replicas, four pods bound, none of any other; two more nodes bring exactly one more."""
    lockstep = run_lockstep(plane)
    plane.lws.create("vllm", 10, 2, scheduler=scheduler.name)
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 2)) == 2)
    plane.holds("two whole and none in part", lambda: bound(plane) == 4 and not plane.lws.in_part("vllm", 2))
    assert lockstep.metric("lockstep_replicas", provider=scheduler.provider) == 10

    plane.nodes.add(["n5", "n6"])
    plane.wait("a third replica whole", lambda: len(plane.lws.whole("vllm", 2)) == 3, 5)
    plane.holds("three whole and none in part", lambda: bound(plane) == 6 and not plane.lws.in_part("vllm", 2))


def bound(plane: ControlPlane) -> int:
    """Count the bound pods of the LWS."""
    return sum(placement.bound for placement in plane.lws.replicas("vllm").values())
