"""Many replicas: Lockstep writes once for each, and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import code, name_of, target, writes
from tests.cluster.lws import INDEX_LABEL
from tests.cluster.resources import LEADER_WORKER_SETS
from tests.cluster.scenarios import COSCHEDULING, NATIVE, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory

REPLICAS = 200

both = pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with both schedulers."""
    return start_plane(Options(coscheduling=True))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with room for everything."""
    shared_plane.reset()
    shared_plane.nodes.add([f"n{number}" for number in range(8)], gpus=100, cpu="200", memory="500Gi")
    return shared_plane


@both
def test_c01_four_replicas_of_four(plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler) -> None:
    """Exactly four groups, each with minimum 4 and the four pods of one replica; no pod is without."""
    run_lockstep(plane)
    plane.lws.create("vllm", 4, 4, scheduler=scheduler.name)
    plane.wait("all whole", lambda: plane.lws.whole("vllm", 4) == [0, 1, 2, 3])
    groups = {group["metadata"]["name"]: group for group in plane.api.items(scheduler.groups)}
    assert [scheduler.minimum_of(group) for group in groups.values()] == [4] * 4
    members = Counter(labels["lockstep.dev/group"] for labels in labels_of(plane))
    assert members == dict.fromkeys(groups, 4)
    pairs = {(labels["lockstep.dev/group"], labels[INDEX_LABEL]) for labels in labels_of(plane)}
    assert len(pairs) == 4


def labels_of(plane: ControlPlane) -> list[dict[str, str]]:
    """Labels of each pod."""
    return [pod["metadata"]["labels"] for pod in plane.lws.pods("vllm")]


@both
def test_two_hundred_replicas_cost_one_creation_each(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """From none to 200 and back: one create per group, no other write, nothing left."""
    run_lockstep(plane)
    plane.lws.create("vllm", 0, 2, scheduler=scheduler.name, gpus=1)
    since = plane.audit.offset()
    # One that takes over does not know what grew before: at first it touches what waits under a scheduler that forgets.
    plane.holds("nothing to do", lambda: not writes(plane, since), 4)

    plane.lws.scale("vllm", REPLICAS)
    plane.wait("all replicas ready", lambda: ready(plane) == REPLICAS, 300, 1)
    assert plane.lws.whole("vllm", 2) == list(range(REPLICAS))
    groups = {group["metadata"]["name"] for group in plane.api.items(scheduler.groups)}

    plane.lws.scale("vllm", 0)
    plane.wait("no pod left", lambda: not plane.lws.pods("vllm"), 300, 1)
    plane.wait("no group left", lambda: not plane.api.items(scheduler.groups), 60, 1)

    made = writes(plane, since)
    assert {(event["verb"], target(event), code(event)) for event in made} == {("create", "podgroups", 201)}
    assert Counter(name_of(event) for event in made) == Counter(groups)
    assert len(groups) == REPLICAS


def ready(plane: ControlPlane) -> int:
    """How many replicas LWS calls ready."""
    return int(plane.api.get(LEADER_WORKER_SETS, "vllm")["status"].get("readyReplicas", 0))
