"""The installation at work with its own accounts: the deadlock is gone, and every right is used and none is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.install import Installation
from tests.cluster.scenarios import COSCHEDULING, NATIVE, Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import PlaneFactory

NODES = ["n1", "n2", "n3", "n4"]


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane with both schedulers and four one-pod nodes."""
    plane = start_plane(Options(coscheduling=True, volcano=True))
    plane.nodes.add(NODES)
    return plane


@pytest.fixture(scope="module")
def installation(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The installation of all schedulers, from the manifests alone."""
    with Installation(plane, tmp_path_factory.mktemp("installation")) as running:
        yield running


@pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])
def test_exactly_the_replicas_that_fit_are_placed_whole(
    plane: ControlPlane, installation: Installation, scheduler: Scheduler
) -> None:
    """Ten by two on four nodes, with the accounts' own tokens: two whole, none in part; two more nodes, one more."""
    name = f"deadlock-{scheduler.provider}"
    plane.lws.create(name, 10, 2, scheduler=scheduler.name)
    plane.wait("two replicas whole", lambda: len(plane.lws.whole(name, 2)) == 2)
    plane.holds("two whole and none in part", lambda: bound(plane, name) == 4 and not plane.lws.in_part(name, 2))
    plane.nodes.add(["n5", "n6"])
    plane.wait("a third replica whole", lambda: len(plane.lws.whole(name, 2)) == 3)
    plane.holds("three whole and none in part", lambda: bound(plane, name) == 6 and not plane.lws.in_part(name, 2))
    plane.lws.delete(name)
    plane.wait("all pods gone", lambda: not plane.lws.pods(name), 60)
    plane.wait("all groups gone", lambda: not plane.api.items(scheduler.groups, "default"), 60)
    for node in ("n5", "n6"):
        plane.nodes.delete(node)
    assert installation.processes["reconciler"].alive


def bound(plane: ControlPlane, name: str) -> int:
    """Count the bound pods of an LWS."""
    return sum(placement.bound for placement in plane.lws.replicas(name).values())
