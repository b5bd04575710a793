"""What autoscalers see of replicas that wait: pods ask for nodes when room is missing.

Cluster Autoscaler and Karpenter make nodes for pods with the condition PodScheduled=False, reason Unschedulable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from schedulers.registry import all_providers
from tests.cluster.resources import PODS
from tests.cluster.scenarios import ON_ALL, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep and room for one pod."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    crowded_plane.nodes.add(["n1"])
    return crowded_plane


@ON_ALL
def test_all_pods_of_a_replica_without_room_ask_for_nodes(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Each of its pods says so with the reason that its provider promises, and keeps saying it."""
    promised = all_providers()[scheduler.provider].waiting
    plane.lws.create("vllm", 1, 2, scheduler=scheduler.name)
    plane.wait("both are refused", lambda: reasons(plane) == {promised.capacity})
    plane.holds("and stay so", lambda: reasons(plane) == {promised.capacity}, 2)


@ON_ALL
def test_pods_that_wait_for_members_say_what_their_provider_promises(plane: ControlPlane, scheduler: Scheduler) -> None:
    """A group of three of which two exist: nothing is asked for, or the provider's remark says that it is."""
    promised = all_providers()[scheduler.provider].waiting
    plane.nodes.add(["n2", "n3"])
    plane.api.create(scheduler.groups, scheduler.groups.make("short", **scheduler.patch_of(3)))
    for number in range(2):
        plane.api.create(PODS, member(scheduler, f"pod-{number}", "short"))
    plane.wait("as promised", lambda: reasons_of(pods(plane)) == {promised.members})
    plane.holds("and stays so", lambda: reasons_of(pods(plane)) == {promised.members}, 3)


@ON_ALL
def test_pods_that_wait_for_their_group_say_what_their_provider_promises(
    plane: ControlPlane, scheduler: Scheduler
) -> None:
    """A group object that is not there: nothing is asked for, or the provider's remark says that it is."""
    promised = all_providers()[scheduler.provider].waiting
    plane.nodes.add(["n2", "n3"])
    plane.api.create(PODS, member(scheduler, "pod-0", "missing"))
    plane.wait("as promised", lambda: reasons_of(pods(plane)) == {promised.group})
    plane.holds("and stays so", lambda: reasons_of(pods(plane)) == {promised.group}, 3)


def member(scheduler: Scheduler, name: str, group: str) -> Json:
    """A pod of a group that fits a node."""
    stamp = all_providers()[scheduler.provider].stamp(group, leader=False)
    amounts = {"cpu": "1", "nvidia.com/gpu": "8"}
    container = {"name": "server", "image": "registry.example/server:1"}
    spec: Json = {"containers": [container | {"resources": {"requests": amounts, "limits": {"nvidia.com/gpu": "8"}}}]}
    if scheduler.name is not None:
        spec["schedulerName"] = scheduler.name
    if stamp.scheduling_group is not None:
        spec["schedulingGroup"] = {"podGroupName": stamp.scheduling_group}
    metadata = {"labels": dict(stamp.labels), "annotations": dict(stamp.annotations)}
    return PODS.make(name, metadata=metadata, spec=spec)


def pods(plane: ControlPlane) -> list[Json]:
    """All pods."""
    return plane.api.items(PODS, "default")


def reasons(plane: ControlPlane) -> set[str]:
    """Reasons of the pods of the LWS, once there are two."""
    found = plane.lws.pods("vllm")
    assert len(found) == 2
    return reasons_of(found)


def reasons_of(found: list[Json]) -> set[str]:
    """Why pods are not scheduled, in the words of the condition; empty for one without the condition."""
    return {reason_of(pod) for pod in found}


def reason_of(pod: Json) -> str:
    """Why a pod is not scheduled; empty where nothing is said."""
    conditions = pod["status"].get("conditions", ())
    return next((c["reason"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")
