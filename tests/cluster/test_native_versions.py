"""kube-scheduler's groups on the API servers of Kubernetes 1.35.4, 1.36.3 and 1.37.2, and from one to the next.

What Lockstep stamps and makes is accepted, kept, and read back as it was sent; the offline rules for the version find
nothing in it. The API server is the one that is asked: no scheduler of an older version runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.native import validate
from policies.targets import GENERIC_WORKLOAD, Target
from tests.cluster.control_plane import ControlPlane
from tests.cluster.evidence import said, target, writes
from tests.cluster.older_servers import (
    GROUPS_OF_1_36,
    QUIET,
    V1_35,
    V1_36,
    V1_37,
    WORKLOADS_OF_1_35,
    WORKLOADS_OF_1_36,
    ApiServer,
    replace_api_server,
    upgrade,
)
from tests.cluster.resources import NATIVE_GROUPS, PODS, PRIORITY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json, Resource

BOTH = {"native": {"podReference": "both"}}
GATES_OF_1_36 = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption", "TopologyAwareWorkloadScheduling")
GATED_1_36 = ApiServer(V1_36.binary, V1_36.version, dict.fromkeys(GATES_OF_1_36, True))
BAD = 400
GROUP_LABEL = "lockstep.dev/group"


@pytest.fixture(scope="module")
def old_plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose API server is of 1.35; tests bring it up to 1.37, one after the other."""
    plane = ControlPlane(binaries, tmp_path_factory.mktemp("plane"), QUIET)
    replace_api_server(plane, V1_35)
    with plane:
        plane.api.create(PRIORITY_CLASSES, PRIORITY_CLASSES.make("high", value=1000))
        plane.nodes.add(["n1"], ready=False)
        yield plane


def test_1_35_keeps_stamps_and_workloads(old_plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Pods name a Workload of their incarnation, the replica as key; it is there as sent, and goes with its leader."""
    run_lockstep(old_plane, configuration=BOTH)
    old_plane.lws.create("vllm", 2, 3)
    old_plane.lws.create("late", 1, 2, startupPolicy="LeaderReady")
    old_plane.wait("all Workloads", lambda: len(old_plane.api.items(WORKLOADS_OF_1_35)) == 3)
    old_plane.wait("all pods", lambda: len(old_plane.api.items(PODS, "default")) == 7)
    for pod in old_plane.api.items(PODS, "default"):
        labels = pod["metadata"]["labels"]
        key = labels["leaderworkerset.sigs.k8s.io/group-index"]
        expected = {"name": labels[GROUP_LABEL], "podGroup": "replica", "podGroupReplicaKey": key}
        assert pod["spec"]["workloadRef"] == expected
        assert "schedulingGroup" not in pod["spec"]
    minimums = {name: spec["podGroups"][0]["policy"]["gang"]["minCount"] for name, spec in specs(old_plane)}
    assert sorted(minimums.values()) == [1, 3, 3]
    assert_kept(old_plane, WORKLOADS_OF_1_35)
    assert findings(old_plane, "1.35", WORKLOADS_OF_1_35, PODS) == []
    assert said(old_plane, "StampDropped") == []
    old = workload_of(old_plane, "vllm-0")
    old_plane.api.delete(PODS, "vllm-0", grace=0)
    old_plane.wait("the next life has its own", lambda: old not in names(old_plane, WORKLOADS_OF_1_35))
    old_plane.wait("and no other", lambda: workload_of(old_plane, "vllm-0") in names(old_plane, WORKLOADS_OF_1_35))


def test_1_35_drops_what_it_does_not_know_and_lockstep_says_so(
    old_plane: ControlPlane, run_lockstep: LockstepFactory
) -> None:
    """By default pods are stamped for 1.36 and later: the pods start, without a gang, and the LWS says what to set."""
    run_lockstep(old_plane)
    old_plane.lws.create("new", 1, 2)
    old_plane.wait("told", lambda: said(old_plane, "StampDropped", "new"))
    (message,) = said(old_plane, "StampDropped", "new")
    why = "drops spec.schedulingGroup (this version has spec.workloadRef: set native.podReference)"
    assert message == f"the API server {why}: pods are placed one by one"


def test_from_1_35_to_1_36_no_replica_has_two_groups(old_plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Running replicas lose their reference and are left as they are; those made from now on have PodGroups."""
    running = bind_all(old_plane)
    old_plane.kubectl("delete", "workloads", "--all")
    upgrade(old_plane, V1_36)
    run_lockstep(old_plane, configuration=BOTH)
    old_plane.lws.create("next", 2, 2)
    old_plane.lws.create("gang", 1, 2, startupPolicy="LeaderReady")
    old_plane.wait("their PodGroups", lambda: len(old_plane.api.items(GROUPS_OF_1_36)) == 3)
    old_plane.wait("their pods", lambda: len(pods_of(old_plane, "next")) == 4)
    for pod in pods_of(old_plane, "next"):
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": pod["metadata"]["labels"][GROUP_LABEL]}
        assert "workloadRef" not in pod["spec"]
    # Without the gate the mode is not ours to choose: it is what the server fills in.
    expected = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "Pod"}
    mine = groups_of(old_plane, "next")
    assert [spec for name, spec in specs(old_plane, GROUPS_OF_1_36) if name in mine] == [expected] * 2
    assert_kept(old_plane, GROUPS_OF_1_36)
    assert findings(old_plane, "1.36", GROUPS_OF_1_36, PODS) == []
    assert {pod["metadata"]["uid"] for pod in old_plane.api.items(PODS, "default")} >= running


def test_1_36_keeps_workloads_and_gated_fields(old_plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The Workload comes before the PodGroup that names it; fields are there that the gates keep."""
    upgrade(old_plane, GATED_1_36)
    run_lockstep(old_plane, configuration={"native": {"groups": "workload"}})
    word = {"lockstep.dev/topology": "zone", "lockstep.dev/priority-class": "high"}
    old_plane.lws.create("work", 2, 2, annotations=word)
    old_plane.wait("their PodGroups", lambda: len(groups_of(old_plane, "work")) == 2 and made(old_plane, "work"))
    (workload,) = old_plane.api.items(WORKLOADS_OF_1_36)
    fields = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": "PodGroup",
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "priorityClassName": "high",
    }
    (template,) = workload["spec"]["podGroupTemplates"]
    assert {key: template[key] for key in ("name", *fields)} == {"name": "replica", **fields}
    names_of = {"workloadName": workload["metadata"]["name"], "podGroupTemplateName": "replica"}
    for name, spec in specs(old_plane, GROUPS_OF_1_36):
        if name in groups_of(old_plane, "work"):
            assert {key: spec[key] for key in fields} == fields
            assert spec["podGroupTemplateRef"] == {"workload": names_of}
    assert_kept(old_plane, WORKLOADS_OF_1_36)
    assert_kept(old_plane, GROUPS_OF_1_36)
    assert findings(old_plane, "1.36", GROUPS_OF_1_36, WORKLOADS_OF_1_36, gates=GATES_OF_1_36) == []
    assert said(old_plane, "WriteRefused", "work") == []


def test_from_1_36_to_1_37_running_replicas_are_taken_over(
    old_plane: ControlPlane, run_lockstep: LockstepFactory
) -> None:
    """Pods keep naming their group: each gets one PodGroup of that name again, and no pod is made anew."""
    before = {name: uids(old_plane, name) for name in ("next", "work")}
    wanted = groups_of(old_plane, "next") | groups_of(old_plane, "work")
    let_go(old_plane, GROUPS_OF_1_36)
    let_go(old_plane, WORKLOADS_OF_1_36)
    upgrade(old_plane, V1_37)
    run_lockstep(old_plane)
    old_plane.wait("all taken over", lambda: wanted <= names(old_plane, NATIVE_GROUPS))
    old_plane.holds("each has one group", lambda: len(old_plane.api.items(NATIVE_GROUPS)) == len(wanted) + 1)
    assert {name: uids(old_plane, name) for name in before} == before
    assert_kept(old_plane, NATIVE_GROUPS)
    assert findings(old_plane, "1.37", NATIVE_GROUPS) == []


def specs(plane: ControlPlane, resource: Resource = WORKLOADS_OF_1_35) -> list[tuple[str, Json]]:
    """Name and spec of every object of a kind, without nulls."""
    items = plane.api.items(resource)
    return [
        (item["metadata"]["name"], {key: value for key, value in item["spec"].items() if value is not None})
        for item in items
    ]


def names(plane: ControlPlane, resource: Resource) -> set[str]:
    """Names of all objects of a kind."""
    return {item["metadata"]["name"] for item in plane.api.items(resource)}


def pods_of(plane: ControlPlane, lws: str) -> list[Json]:
    """Pods of an LWS."""
    return plane.lws.pods(lws)


def groups_of(plane: ControlPlane, lws: str) -> set[str]:
    """Names of the groups that the pods of an LWS are stamped with."""
    return {pod["metadata"]["labels"][GROUP_LABEL] for pod in pods_of(plane, lws)}


def made(plane: ControlPlane, lws: str) -> bool:
    """Whether every group of an LWS is there."""
    return groups_of(plane, lws) <= names(plane, GROUPS_OF_1_36)


def uids(plane: ControlPlane, lws: str) -> set[str]:
    """UIDs of the pods of an LWS."""
    return {pod["metadata"]["uid"] for pod in pods_of(plane, lws)}


def workload_of(plane: ControlPlane, pod: str) -> str:
    """Name of the Workload that a pod names."""
    found = plane.api.items(PODS, "default")
    return next((one["spec"]["workloadRef"]["name"] for one in found if one["metadata"]["name"] == pod), "none")


def bind_all(plane: ControlPlane) -> set[str]:
    """Bind every pod to a node that nobody plays, as a scheduler would; gives their UIDs."""
    pods = plane.api.items(PODS, "default")
    for pod in pods:
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        plane.api.request("POST", PODS.item(pod["metadata"]["name"], "default", "binding"), {**body, "target": target})
    return {pod["metadata"]["uid"] for pod in pods}


def let_go(plane: ControlPlane, resource: Resource) -> None:
    """Delete every object of a kind, as has to be done before an upgrade that no longer knows its version."""
    for name in sorted(names(plane, resource)):
        plane.api.merge(resource, name, {"metadata": {"finalizers": None}})
        plane.api.delete(resource, name)


def findings(
    plane: ControlPlane, version: str, *resources: Resource, gates: tuple[str, ...] = (GENERIC_WORKLOAD,)
) -> list[Any]:
    """What the offline rules for a version find in stored objects."""
    of = Target(version, frozenset(gates))
    stored = [
        {"apiVersion": resource.version, "kind": resource.kind, **item}
        for resource in resources
        for item in plane.api.items(resource, "default")
    ]
    return [problem for item in stored for problem in validate(item, None, of)]


def sent(plane: ControlPlane, resource: Resource) -> list[Json]:
    """Every object of a kind that Lockstep has created, as it was sent, of those that are still there."""
    there = names(plane, resource)
    events = [event for event in writes(plane, 0) if event["verb"] == "create" and target(event) == resource.plural]
    bodies = [event["requestObject"] for event in events if event["responseStatus"]["code"] < BAD]
    mine = [body for body in bodies if body["apiVersion"] == resource.version]
    return [body for body in mine if body["metadata"]["name"] in there]


def assert_kept(plane: ControlPlane, resource: Resource) -> None:
    """Every object that is there is ours, and every field of it is read back as it was sent."""
    stored = dict(specs(plane, resource))
    bodies = sent(plane, resource)
    assert {body["metadata"]["name"] for body in bodies} == set(stored)
    for body in bodies:
        kept = stored[body["metadata"]["name"]]
        assert {field: kept.get(field) for field in body["spec"]} == body["spec"]
