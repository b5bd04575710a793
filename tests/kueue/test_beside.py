"""Kueue and Lockstep on the same LWS: each keeps what is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.lockstep import Lockstep
from tests.cluster.lws import INDEX_LABEL
from tests.cluster.resources import NATIVE_GROUPS, PODS, Resource
from tests.kueue.installation import ADMISSION_GATE, QUEUE_LABEL, Kueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.resources import Json

WORKLOADS = Resource("kueue.x-k8s.io/v1beta2", "workloads", "Workload")
KUEUE = "kueue.x-k8s.io/"
MARK = "lockstep.dev/group"
OFF = {"labels": {"lockstep.dev/gang": "off"}}


@pytest.fixture
def beside(plane: ControlPlane, kueue: Kueue, tmp_path: Path) -> Iterator[ControlPlane]:
    """The control plane, emptied, with Kueue and Lockstep, four one-pod nodes, and quota for two replicas of two."""
    plane.reset()
    plane.wait("no Workload is left", lambda: plane.api.items(WORKLOADS) == [], 60)
    kueue.offer("team", gpus=32)
    plane.nodes.add(["n1", "n2", "n3", "n4"])
    with Lockstep(plane, tmp_path):
        yield plane
        plane.reset()


def test_each_keeps_its_own_marks_and_objects(beside: ControlPlane) -> None:
    """A pod has Kueue's gates and keys, as without Lockstep, and our group; one Workload, one group for a replica."""
    plane = beside
    plane.lws.create("alone", 1, 2, labels={QUEUE_LABEL: "team"}, pod_metadata=OFF)
    plane.wait("let in without a gang", lambda: gated(plane, "alone") == 0 and len(plane.lws.pods("alone")) == 2, 60)
    usual = [kueues_own(pod) for pod in plane.lws.pods("alone")]
    plane.lws.delete("alone")
    plane.wait("gone", lambda: plane.lws.pods("alone") == [], 60)

    plane.lws.create("vllm", 4, 2, labels={QUEUE_LABEL: "team"})
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, 60)
    plane.wait("a group for each replica, the gated ones too", lambda: len(plane.api.items(NATIVE_GROUPS)) == 4, 60)
    pods = plane.lws.pods("vllm")
    assert all(MARK in pod["metadata"]["labels"] and "schedulingGroup" in pod["spec"] for pod in pods)
    let_in = [kueues_own(pod) for pod in pods if pod["spec"].get("nodeName")]
    assert {frozenset(keys) for keys in let_in} == {frozenset(keys) for keys in usual}
    assert len(plane.api.items(WORKLOADS)) == 4
    assert gated(plane, "vllm") == 4


def test_a_leader_made_anew_keeps_its_workload_and_has_a_new_group(beside: ControlPlane) -> None:
    """Kueue's Workload is the index's, our group the incarnation's; the replica is let in and placed whole again."""
    plane = beside
    plane.lws.create("vllm", 2, 2, labels={QUEUE_LABEL: "team"})
    plane.wait("both whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, 60)
    workloads, before = names(plane, WORKLOADS), groups_of(plane, "0")
    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait(
        "whole again in a new group",
        lambda: plane.lws.whole("vllm", 2) == [0, 1] and groups_of(plane, "0").isdisjoint(before),
        90,
    )
    assert names(plane, WORKLOADS) == workloads
    plane.wait("the old group is gone", lambda: len(plane.api.items(NATIVE_GROUPS)) == 2, 60)


def test_late_workers_are_let_in_with_their_leader(beside: ControlPlane) -> None:
    """LeaderReady: Kueue takes quota for all pods while only the leader is there, and the group begins with one."""
    plane = beside
    plane.lws.create("late", 1, 3, labels={QUEUE_LABEL: "team"}, startupPolicy="LeaderReady")
    plane.wait("whole", lambda: plane.lws.whole("late", 3) == [0], 90)
    (workload,) = plane.api.items(WORKLOADS)
    assert sum(each["count"] for each in workload["spec"]["podSets"]) == 3
    (group,) = plane.api.items(NATIVE_GROUPS)
    assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3


def kueues_own(pod: Json) -> set[str]:
    """Give the keys of Kueue's on a pod."""
    metadata = pod["metadata"]
    return {key for where in ("labels", "annotations") for key in metadata.get(where, {}) if key.startswith(KUEUE)}


def gated(plane: ControlPlane, lws: str) -> int:
    """Count the pods that Kueue has not let in."""
    gates = [pod["spec"].get("schedulingGates", []) for pod in plane.lws.pods(lws)]
    return sum(any(gate["name"] == ADMISSION_GATE for gate in each) for each in gates)


def names(plane: ControlPlane, resource: Resource) -> set[str]:
    """Give the names of all objects of a kind."""
    return {each["metadata"]["name"] for each in plane.api.items(resource)}


def groups_of(plane: ControlPlane, index: str) -> set[str]:
    """Give the groups that the pods of a replica are in."""
    pods = [pod for pod in plane.lws.pods("vllm") if pod["metadata"]["labels"][INDEX_LABEL] == index]
    return {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods}
