"""Replicas whose workers come only after their leader has started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from schedulers.contract import Arrival
from schedulers.registry import all_providers
from tests.cluster.as_built import minima, numbers_of
from tests.cluster.lws import lws_manifest
from tests.cluster.recording import ADDED, Recording, Version
from tests.cluster.resources import LEADER_WORKER_SETS, PODS
from tests.cluster.scenarios import KAI, KOORDINATOR, ON_ALL, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

RACK = {"rack": "r1"}
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


ONE_BY_ONE = (KOORDINATOR, KAI)
"""Schedulers that place late workers as they fit, as they promise."""


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep and room for one pod."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    crowded_plane.nodes.add(["n1"], labels=RACK)
    return crowded_plane


@ON_ALL
@pytest.mark.parametrize(
    "late",
    [
        pytest.param({"startupPolicy": "LeaderReady"}, id="workers wait until the leader is ready"),
        pytest.param({"annotations": {EXCLUSIVE: "rack"}}, id="workers wait until the leader has a rack"),
    ],
)
def test_c02_c13_late_workers_get_their_minimum_when_they_exist(
    plane: ControlPlane, scheduler: Scheduler, late: dict[str, Any]
) -> None:
    """The leader starts as its scheduler's promise says, and the minimum is the size once the workers have arrived."""
    with Recording(plane, PODS, scheduler.groups) as recording:
        late_workers = all_providers()[scheduler.provider].late_workers
        plane.lws.create("vllm", 1, 3, scheduler=scheduler.name, **late)
        plane.wait("a group", lambda: plane.api.items(scheduler.groups))
        if late_workers.floor:
            [group] = plane.api.items(scheduler.groups)
            assert numbers_of(scheduler, group).gpus == 24
            plane.wait("the leader is refused", lambda: "resource gap" in refusal(leader(plane)))
            waits = {0: (0, 1)}
        elif late_workers.arrival is Arrival.EXIST:
            plane.wait("the minimum is the size", lambda: list(minima(recording, scheduler).values()) == [[1, 3]])
            waits = {0: (1, 3)}
        else:
            plane.wait("its workers exist", lambda: len(plane.lws.pods("vllm")) == 3)
            waits = {0: (1, 3)}
        plane.holds("it waits, with room for one", lambda: plane.lws.replicas("vllm") == waits, 2)
        plane.nodes.add(["n2"], labels=RACK)
        if scheduler in ONE_BY_ONE:
            plane.wait("a worker is placed alone", lambda: plane.lws.replicas("vllm") == {0: (2, 3)})
            raised = [1, 3] if late_workers.arrival is Arrival.EXIST else [1]
            assert list(minima(recording, scheduler).values()) == [raised]
        else:
            plane.holds("it waits, with room for two", lambda: plane.lws.replicas("vllm") == waits, 2)

        plane.nodes.add(["n3"], labels=RACK)
        plane.wait("the replica is whole", lambda: plane.lws.whole("vllm", 3) == [0])
        plane.wait("the minimum is the size", lambda: list(minima(recording, scheduler).values()) == [[1, 3]])
        plane.holds("and stays it", lambda: list(minima(recording, scheduler).values()) == [[1, 3]], 1)
        plane.wait("recording is whole", recording.caught_up)
        arrived = {Arrival.EXIST: is_new, Arrival.BOUND: has_node}[late_workers.arrival]
        last_worker = max(versions[0].number for versions in arrivals(recording, arrived))
        first = next(of.number for of in recording.of(scheduler.groups) if scheduler.minimum_of(of.body) == 3)
        assert first > last_worker


@ON_ALL
def test_c13_subgroups_with_a_rack_each_do_not_come_late(plane: ControlPlane, scheduler: Scheduler) -> None:
    """The annotation for subgroups alone makes nobody wait: the minimum is the size from the beginning."""
    plane.nodes.add(["n2"], labels=RACK)
    plane.nodes.add(["n3", "n4"], labels={"rack": "r2"})
    with Recording(plane, scheduler.groups) as recording:
        plane.api.create(LEADER_WORKER_SETS, in_subgroups(scheduler))
        plane.wait("the replica is whole", lambda: plane.lws.whole("vllm", 4) == [0])
        plane.wait("recording is whole", recording.caught_up)
        assert list(minima(recording, scheduler).values()) == [[4]]


def in_subgroups(scheduler: Scheduler) -> Json:
    """One replica of four in two subgroups, each with a rack of its own."""
    manifest = lws_manifest("vllm", 1, 4, scheduler=scheduler.name, annotations={SUBGROUP_EXCLUSIVE: "rack"})
    manifest["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 2}
    return manifest


def arrivals(recording: Recording, arrived: Callable[[Version], bool]) -> list[list[Version]]:
    """Each pod's versions from when it had arrived."""
    pods = recording.by_object(PODS).values()
    return [[version for version in versions if arrived(version)] for versions in pods]


def is_new(version: Version) -> bool:
    """Is this how a pod was created?"""
    return version.change == ADDED


def has_node(version: Version) -> bool:
    """Is a pod bound?"""
    return "nodeName" in version.body["spec"]


def leader(plane: ControlPlane) -> Json:
    """The leader pod."""
    return plane.api.get(PODS, "vllm-0")


def refusal(pod: Json) -> str:
    """Why a pod has no node, empty where nothing is said."""
    conditions = pod["status"].get("conditions", ())
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")
