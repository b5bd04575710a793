"""KAI 0.12: our groups beside a podgrouper that is kept away, and standing down for one that isn't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from schedulers.kai import POD_GROUP, SKIP_PODGROUPER
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import said, writes
from tests.cluster.foreign_schedulers import PARENT_QUEUE, STALE, TAKEN_BY_KAI, UNLIMITED
from tests.cluster.resources import KAI_GROUPS, KAI_QUEUES, KAI_TOPOLOGIES, PODS
from tests.cluster.scenarios import KAI

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

NODES = ["n1", "n2", "n3", "n4"]
TAKEN: Json = {"labels": {TAKEN_BY_KAI: "yes"}}
MADE_BY_KAI = "pg-vllm-"


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with KAI."""
    return start_plane(Options(kai=True))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with four one-pod nodes."""
    shared_plane.reset()
    shared_plane.nodes.add(NODES)
    return shared_plane


def memberships(plane: ControlPlane, lws: str = "vllm") -> list[str]:
    """What each pod's annotation says now."""
    return [pod["metadata"]["annotations"].get(POD_GROUP, "") for pod in plane.lws.pods(lws)]


def test_without_anybodys_groups_no_pod_is_placed(plane: ControlPlane) -> None:
    """There is no deadlock to show here: a pod without a group is in none of KAI's jobs."""
    plane.lws.create("vllm", 2, 2, scheduler=KAI.name)
    plane.wait("all pods exist", lambda: len(plane.lws.pods("vllm")) == 4)
    plane.holds("none has a node", lambda: plane.lws.replicas("vllm") == {0: (0, 2), 1: (0, 2)}, 5)


def test_where_the_podgrouper_overwrites_our_stamps_its_groups_are_in_charge(
    plane: ControlPlane, run_lockstep: LockstepFactory
) -> None:
    """Never two writers: replicas are whole by KAI's own groups, we write nothing more and say what it needs."""
    lockstep = run_lockstep(plane)
    plane.lws.create("vllm", 10, 2, scheduler=KAI.name, pod_metadata=TAKEN)
    plane.wait("every pod is overwritten", lambda: overwritten(plane), 60)
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, 60)
    told = plane.wait("it is said", lambda: said(plane, "StampsOverwritten"))
    assert len(told) == 1
    assert told[0].endswith(
        f"needs KAI from v0.15, which honours {SKIP_PODGROUPER}, or a podgrouper with --pod-label-selector"
    )

    since = plane.audit.offset()
    plane.holds("nobody fights", lambda: overwritten(plane) and not plane.lws.in_part("vllm", 2), 5)
    assert writes(plane, since) == []
    owners = {group["metadata"]["name"]: owner_kind(group) for group in plane.api.items(KAI_GROUPS)}
    assert {kind for name, kind in owners.items() if name.startswith(MADE_BY_KAI)} == {"LeaderWorkerSet"}
    # What was made before the first pod was overwritten is empty and goes with its leader.
    assert {kind for name, kind in owners.items() if not name.startswith(MADE_BY_KAI)} <= {"Pod"}
    assert lockstep.metric("lockstep_replicas", provider="kai") == 10

    # A neighbour from whose pods the podgrouper is kept away is ours.
    plane.nodes.add(["n5", "n6"], gpus=1)
    plane.lws.create("ours", 1, 2, scheduler=KAI.name, gpus=1)
    plane.wait("it is whole", lambda: plane.lws.whole("ours", 2) == [0], 60)
    assert not any(name.startswith("pg-") for name in memberships(plane, "ours"))


def overwritten(plane: ControlPlane) -> bool:
    """Are all pods in groups of KAI's own, though they carry our stamp?"""
    found = plane.lws.pods("vllm")
    ours = all("lockstep.dev/group" in pod["metadata"]["labels"] for pod in found)
    return ours and len(found) == 20 and all(name.startswith(MADE_BY_KAI) for name in memberships(plane))


def owner_kind(group: Json) -> str:
    """Kind of a group's owner."""
    return str(group["metadata"]["ownerReferences"][0]["kind"])


def test_c22_a_replica_of_eight_is_a_gang_of_eight(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Room for four places none of them; with room for eight all are placed."""
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 8, scheduler=KAI.name)
    group = plane.wait("a group", lambda: plane.api.items(KAI_GROUPS))[0]
    assert group["spec"] == {"minMember": 8, "queue": "default-queue", "preemptibility": "non-preemptible"}
    plane.wait("all pods exist", lambda: len(plane.lws.pods("vllm")) == 8)
    plane.holds("none has a node", lambda: plane.lws.replicas("vllm") == {0: (0, 8)}, 3)
    plane.nodes.add(["n5", "n6", "n7", "n8"])
    plane.wait("whole", lambda: plane.lws.whole("vllm", 8) == [0], 60)


def test_a_leader_whose_workers_find_no_room_is_not_evicted(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Longer than KAI waits with a group that is short of its minimum: the minimum is 1 until all have a node."""
    plane.api.delete_all(PODS)
    for node in NODES[1:]:
        plane.nodes.delete(node)
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 2, scheduler=KAI.name, startupPolicy="LeaderReady")
    plane.wait("the leader runs, its worker waits", lambda: plane.lws.replicas("vllm") == {0: (1, 2)})
    leader = plane.api.get(PODS, "vllm-0")["metadata"]["uid"]
    plane.holds("so it stays", lambda: plane.api.get(PODS, "vllm-0")["metadata"]["uid"] == leader, STALE + 5)
    plane.nodes.add(["n2"])
    plane.wait("whole", lambda: plane.lws.whole("vllm", 2) == [0])
    plane.wait("a gang now", lambda: [KAI.minimum_of(group) for group in plane.api.items(KAI_GROUPS)] == [2])
    assert plane.api.get(PODS, "vllm-0")["metadata"]["uid"] == leader


@pytest.mark.parametrize(
    "lws",
    [
        pytest.param({"annotations": {"lockstep.dev/queue": "team-a"}}, id="our word"),
        pytest.param({"labels": {"kai.scheduler/queue": "team-a"}}, id="KAI's own label on the LWS"),
        pytest.param({"pod_metadata": {"labels": {"kai.scheduler/queue": "team-a"}}}, id="and on the pods"),
    ],
)
def test_a_queue(plane: ControlPlane, run_lockstep: LockstepFactory, lws: dict[str, Any]) -> None:
    """The group is in the queue that was asked for, and is placed from there."""
    spec = {"parentQueue": PARENT_QUEUE, "resources": UNLIMITED}
    plane.api.apply(KAI_QUEUES, KAI_QUEUES.make("team-a", spec=spec))
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 2, scheduler=KAI.name, **lws)
    plane.wait("whole", lambda: plane.lws.whole("vllm", 2) == [0])
    assert [group["spec"]["queue"] for group in plane.api.items(KAI_GROUPS)] == ["team-a"]


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"lockstep.dev/topology": "rack"}, id="our word"),
        pytest.param({"kai.scheduler/topology-required-placement": "rack"}, id="KAI's own"),
    ],
)
def test_a_replica_stays_within_a_rack(
    plane: ControlPlane, run_lockstep: LockstepFactory, annotations: dict[str, str]
) -> None:
    """Five nodes are free, but only one rack has three; a replica of three is placed there."""
    plane.api.apply(KAI_TOPOLOGIES, KAI_TOPOLOGIES.make("cluster-topology", spec={"levels": [{"nodeLabel": "rack"}]}))
    for node in NODES:
        plane.nodes.delete(node)
    plane.nodes.add(["a1", "a2"], labels={"rack": "a"})
    plane.nodes.add(["b1", "b2", "b3"], labels={"rack": "b"})
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 3, scheduler=KAI.name, annotations=annotations)
    plane.wait("whole", lambda: plane.lws.whole("vllm", 3) == [0])
    assert {pod["spec"]["nodeName"] for pod in plane.lws.pods("vllm")} == {"b1", "b2", "b3"}
