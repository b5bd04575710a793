"""Volcano: stamps and PodGroups are those with which it was seen to place replicas whole. Of it only kinds are here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import name_of, writes
from tests.cluster.lws import lws_manifest
from tests.cluster.resources import (
    COSCHEDULING_GROUPS,
    LEADER_WORKER_SETS,
    NATIVE_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    STATEFUL_SETS,
    VOLCANO_GROUPS,
)
from tests.cluster.scenarios import COSCHEDULING

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WHOLE = {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "16"}


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with Volcano's kinds and the scheduler of scheduler-plugins."""
    return start_plane(Options(volcano=True, coscheduling=True))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied."""
    shared_plane.reset()
    return shared_plane


def groups(plane: ControlPlane, number: int) -> list[Json]:
    """Wait for so many PodGroups of Volcano."""
    return (
        plane.wait(f"{number} groups", lambda: len(found := plane.api.items(VOLCANO_GROUPS)) == number and found) or []
    )


def bind(plane: ControlPlane, pod: str, node: str) -> None:
    """Do a scheduler's last step by hand."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    plane.api.request("POST", PODS.item(pod, "default", "binding"), binding)


def test_c04_every_pod_is_born_with_its_group(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The annotation is there at creation, so that Volcano makes no group of its own; one group per replica."""
    run_lockstep(plane)
    since = plane.audit.offset()
    plane.lws.create("vllm", 2, 2, scheduler="volcano")
    found = groups(plane, 2)
    pods = plane.wait("four pods", lambda: len(p := plane.lws.pods("vllm")) == 4 and p) or []
    born = {
        event["objectRef"].get("name") or event["responseObject"]["metadata"]["name"]: event
        for event in plane.audit.events(resource="pods", verbs={"create"}, since=since)
        if "subresource" not in event["objectRef"]
    }
    assert set(born) >= {pod["metadata"]["name"] for pod in pods}
    assert not [event for event in writes(plane, since) if event["objectRef"]["resource"] == "pods"]
    for pod in pods:
        group = next(g for g in found if g["metadata"]["labels"][INDEX] == pod["metadata"]["labels"][INDEX])
        assert pod["metadata"]["annotations"][GROUP_NAME] == group["metadata"]["name"]
        assert pod["metadata"]["labels"]["lockstep.dev/group"] == group["metadata"]["name"]
    roles = {pod["metadata"]["name"]: pod["metadata"]["annotations"][TASK_SPEC] for pod in pods}
    assert roles == {"vllm-0": "leader", "vllm-0-1": "worker", "vllm-1": "leader", "vllm-1-1": "worker"}
    sets = {item["metadata"]["uid"] for item in plane.api.items(STATEFUL_SETS)}
    assert not any(group["metadata"]["name"].removeprefix("podgroup-") in sets for group in found)


def test_a_group_object(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Minimum and resources of the whole replica, plain names; queue by default; owned by the leader pod."""
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 2, scheduler="volcano")
    group = groups(plane, 1)[0]
    leader = plane.api.get(PODS, "vllm-0")["metadata"]
    assert group["spec"] == {"minMember": 2, "minResources": WHOLE, "queue": "default"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": leader["uid"], "controller": True}
    assert group["metadata"]["ownerReferences"] == [owner]
    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait("it goes with its leader", lambda: group["metadata"]["uid"] not in uids(plane))
    assert groups(plane, 1)[0]["metadata"]["name"] != group["metadata"]["name"]


def uids(plane: ControlPlane) -> set[str]:
    """UIDs of Volcano's groups."""
    return {group["metadata"]["uid"] for group in plane.api.items(VOLCANO_GROUPS)}


@pytest.mark.parametrize(
    ("lws", "queue"),
    [
        ({"annotations": {"lockstep.dev/queue": "team-a"}}, "team-a"),
        ({"annotations": {QUEUE_NAME: "team-b"}}, "team-b"),
        (
            {"pod_metadata": {"annotations": {QUEUE_NAME: "team-c"}}, "annotations": {"lockstep.dev/queue": "x"}},
            "team-c",
        ),
    ],
    ids=["our word on the LWS", "Volcano's key on the LWS", "Volcano's key on the template wins"],
)
def test_queue(plane: ControlPlane, run_lockstep: LockstepFactory, lws: dict[str, Any], queue: str) -> None:
    """The queue is that of the words, in their order."""
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 2, scheduler="volcano", **lws)
    assert groups(plane, 1)[0]["spec"]["queue"] == queue


def test_a_queue_that_volcano_rewrites_is_left(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Volcano's webhook may set another queue by the namespace's annotation; we don't fight it."""
    run_lockstep(plane)
    plane.lws.create("vllm", 1, 2, scheduler="volcano")
    name = groups(plane, 1)[0]["metadata"]["name"]
    plane.api.merge(VOLCANO_GROUPS, name, {"spec": {"queue": "team", "minMember": 1}})
    plane.wait("the minimum is set back", lambda: plane.api.get(VOLCANO_GROUPS, name)["spec"]["minMember"] == 2, 5)
    assert plane.api.get(VOLCANO_GROUPS, name)["spec"]["queue"] == "team"


def test_limits_only_and_priority(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """GPUs that stand in limits alone count as requests; the group takes the pods' priority class."""
    plane.api.apply(PRIORITY_CLASSES, PRIORITY_CLASSES.make("high", value=100))
    run_lockstep(plane)
    manifest = lws_manifest("vllm", 1, 2, scheduler="volcano", pod={"priorityClassName": "high"})
    container = manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": "8"}}
    plane.api.create(LEADER_WORKER_SETS, manifest)
    spec = groups(plane, 1)[0]["spec"]
    assert spec["minResources"] == WHOLE
    assert spec["priorityClassName"] == "high"


@pytest.mark.parametrize(
    ("lws"),
    [
        {"startupPolicy": "LeaderReady"},
        {"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}},
    ],
    ids=["LeaderReady", "exclusive-topology"],
)
def test_late_workers(plane: ControlPlane, run_lockstep: LockstepFactory, lws: dict[str, Any]) -> None:
    """Minimum 1 with the whole replica's resources until the workers exist, then the size, by one patch."""
    plane.nodes.add(["n1", "n2", "n3"])
    run_lockstep(plane)
    since = plane.audit.offset()
    plane.lws.create("vllm", 1, 3, scheduler="volcano", **lws)
    group = groups(plane, 1)[0]
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["minResources"] == {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "24"}
    plane.holds("the minimum waits", lambda: groups(plane, 1)[0]["spec"]["minMember"] == 1, 3)

    bind(plane, "vllm-0", "n1")
    plane.wait("both workers", lambda: len(plane.lws.pods("vllm")) == 3)
    plane.wait("raised", lambda: groups(plane, 1)[0]["spec"]["minMember"] == 3)
    bind(plane, "vllm-0-1", "n2")
    bind(plane, "vllm-0-2", "n3")
    plane.wait("whole", lambda: plane.lws.whole("vllm", 3) == [0])
    assert [(event["verb"], name_of(event)) for event in writes(plane, since)] == [
        ("create", group["metadata"]["name"]),
        ("patch", group["metadata"]["name"]),
    ]


def test_c25_each_set_by_its_own_scheduler(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Three schedulers on one cluster: each set gets membership and groups of its own and no key of another's."""
    run_lockstep(plane)
    plane.lws.create("a", 1, 2, scheduler="volcano")
    plane.lws.create("b", 1, 2, scheduler=COSCHEDULING.name)
    plane.lws.create("c", 1, 2)
    plane.wait("a group each", lambda: [len(plane.api.items(r)) for r in KINDS.values()] == [1, 1, 1])
    plane.wait("six pods", lambda: len(plane.api.items(PODS)) == 6)
    for name, resource in KINDS.items():
        group = plane.api.items(resource)[0]
        assert group["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] == name
        assert [membership(pod) for pod in plane.lws.pods(name)] == [{name: group["metadata"]["name"]}] * 2


KINDS = {"a": VOLCANO_GROUPS, "b": COSCHEDULING_GROUPS, "c": NATIVE_GROUPS}


def membership(pod: Json) -> dict[str, str]:
    """Groups that a pod says it is in, by the LWS whose scheduler would read that."""
    found = {
        "a": pod["metadata"]["annotations"].get(GROUP_NAME),
        "b": pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group"),
        "c": pod["spec"].get("schedulingGroup", {}).get("podGroupName"),
    }
    return {key: value for key, value in found.items() if value is not None}
