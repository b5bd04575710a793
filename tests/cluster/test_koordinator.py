"""Koordinator 1.6: gangs that it would leave waiting are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.lws import lws_manifest
from tests.cluster.resources import LEADER_WORKER_SETS, PODS
from tests.cluster.scenarios import KOORDINATOR

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

MANY = 20
"""Replicas that all have room; now and then Koordinator by itself leaves one waiting, see `reconciler.roll_calls`."""


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with Koordinator."""
    return start_plane(Options(koordinator=True))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied."""
    shared_plane.reset()
    return shared_plane


def test_no_gang_is_left_waiting_with_room_for_all(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Twenty gangs at once, and twice more as leaders are deleted: all are placed each time."""
    plane.nodes.add([f"n{number}" for number in range(2 * MANY)])
    run_lockstep(plane)
    plane.lws.create("vllm", MANY, 2, scheduler=KOORDINATOR.name)
    old: set[str] = set()
    for turn in range(3):
        plane.wait(f"all placed, turn {turn}", lambda old=old: placed_anew(plane, old), 60)  # type: ignore[misc]
        old |= uids(plane)
        for number in range(MANY if turn < 2 else 0):
            plane.api.delete(PODS, f"vllm-{number}", grace=0)


def placed_anew(plane: ControlPlane, old: set[str]) -> bool:
    """Has every replica new pods, all with a node?"""
    return not uids(plane) & old and len(plane.lws.whole("vllm", 2)) == MANY


def uids(plane: ControlPlane) -> set[str]:
    """UIDs of all pods that are not on their way out."""
    return {pod["metadata"]["uid"] for pod in plane.lws.pods("vllm")}


def test_workers_replaced_in_place_are_placed_once_there_is_room(
    plane: ControlPlane, run_lockstep: LockstepFactory
) -> None:
    """Their leader keeps its node, and they are refused for as long as it takes; then they are placed all the same."""
    plane.nodes.add(["n1", "n2", "n3"])
    run_lockstep(plane)
    plane.api.create(LEADER_WORKER_SETS, kept_manifest())
    plane.wait("whole", lambda: plane.lws.whole("vllm", 3) == [0])
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in plane.lws.pods("vllm")}
    for worker in ("vllm-0-1", "vllm-0-2"):
        plane.nodes.cordon(nodes[worker])
        plane.api.delete(PODS, worker, grace=0)
    plane.wait("both are refused", lambda: refused(plane) == {"vllm-0-1", "vllm-0-2"})
    plane.holds("for as long as it takes", lambda: plane.lws.replicas("vllm") == {0: (1, 3)}, 5)
    for worker in ("vllm-0-1", "vllm-0-2"):
        plane.nodes.uncordon(nodes[worker])
    plane.wait("whole again", lambda: plane.lws.whole("vllm", 3) == [0])


def kept_manifest() -> Json:
    """A replica of three whose leader stays when a worker goes."""
    manifest = lws_manifest("vllm", 1, 3, scheduler=KOORDINATOR.name)
    manifest["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "None"
    return manifest


def refused(plane: ControlPlane) -> set[str]:
    """Pods of which their scheduler says that there is no room."""
    pods = [pod for pod in plane.lws.pods("vllm") if not pod["spec"].get("nodeName")]
    return {pod["metadata"]["name"] for pod in pods if "PodScheduled" in condition_types(pod)}


def condition_types(pod: Json) -> set[str]:
    """Types of a pod's conditions."""
    return {condition["type"] for condition in pod["status"].get("conditions", ())}
