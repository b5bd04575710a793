"""What kube-scheduler does for gangs beyond placing them whole, where the gates for it are on: the real one does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.native import validate
from policies.targets import Target
from tests.cluster.control_plane import Options
from tests.cluster.disaggregated import COMPOSITES, DEFINITION, DISAGGREGATED_SETS, create_role, create_set
from tests.cluster.evidence import said
from tests.cluster.older_servers import WORKLOADS
from tests.cluster.resources import NATIVE_GROUPS, PODS, PRIORITY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import ControlPlane, PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json, Resource

GATES = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "PodGroupPreemptionPolicy",
    "CompositePodGroup",
    "DRAWorkloadResourceClaims",
)
RUNTIME = {"scheduling.k8s.io/v1beta1": "true", "scheduling.k8s.io/v1alpha3": "true"}


@pytest.fixture(scope="module")
def gated_plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane with every gate of Kubernetes 1.37 that groups depend on, and DisaggregatedSets."""
    plane = start_plane(Options(gates=dict.fromkeys(GATES, True), runtime_config=RUNTIME))
    plane.kinds.register([DEFINITION])
    for name, value in (("high", 1000), ("low", 10)):
        plane.api.create(PRIORITY_CLASSES, PRIORITY_CLASSES.make(name, value=value))
    return plane


@pytest.fixture
def plane(gated_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The same, emptied; nothing that groups share is left behind."""
    gated_plane.reset()
    yield gated_plane
    if gated_plane.api.items(DISAGGREGATED_SETS):
        gated_plane.api.delete_all(DISAGGREGATED_SETS, "default")


def test_a_replica_is_preempted_whole(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """An LWS of a higher class gets room on a full cluster; a replica gives all its pods for it, or none.

    kube-scheduler may take two replicas where one would do: it looks for nodes first, and then at whom they belong to.
    """
    run_lockstep(plane)
    plane.nodes.add(["n1", "n2", "n3", "n4"])
    plane.lws.create("low", 2, 2, pod={"priorityClassName": "low"})
    plane.wait("the cluster is full", lambda: plane.lws.whole("low", 2) == [0, 1])
    before = {index: uids(plane, "low", index) for index in (0, 1)}

    plane.lws.create("high", 1, 2, pod={"priorityClassName": "high"})
    plane.wait("the higher class is placed", lambda: plane.lws.whole("high", 2) == [0])
    plane.wait("the victim waits whole", lambda: sorted(bound(plane, "low")) == [0, 2])
    plane.holds("one replica runs, one waits, none in part", lambda: sorted(bound(plane, "low")) == [0, 2])
    lost = [len(before[index] - uids(plane, "low", index)) for index in (0, 1)]
    assert set(lost) <= {0, 2}
    assert any(lost)
    for group in plane.api.items(NATIVE_GROUPS):
        assert group["spec"]["disruptionMode"] == {"all": {}}
        assert group["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_a_class_that_is_not_the_pods_is_refused_aloud(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """kube-scheduler never places a group whose priority differs from its pods': the pods' class stays, and starts."""
    run_lockstep(plane)
    plane.nodes.add(["n1", "n2"])
    word = {"lockstep.dev/priority-class": "high"}
    plane.lws.create("vllm", 1, 2, pod={"priorityClassName": "low"}, annotations=word)
    plane.wait("placed", lambda: plane.lws.whole("vllm", 2) == [0])
    plane.wait("told", lambda: said(plane, "WordNotHonoured"))
    why = "kube-scheduler never places a group whose priority differs from its pods'"
    nearest = "the nearest is spec.priorityClassName in both pod templates"
    assert said(plane, "WordNotHonoured") == [f"lockstep.dev/priority-class: {why}; {nearest}"]


def test_a_topology_places_a_replica_in_one_zone(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Two of three replicas find a zone with room for all three pods; the third waits, though three nodes are free."""
    run_lockstep(plane)
    zone_of = {f"{zone}{number}": zone for zone in "ab" for number in range(3)}
    for zone in "ab":
        plane.nodes.add([name for name in zone_of if zone_of[name] == zone], labels={"zone": zone})
    plane.nodes.add(["c0"], labels={"zone": "c"})
    plane.nodes.add(["d0", "d1"], labels={"zone": "d"})
    plane.lws.create("vllm", 3, 3, annotations={"lockstep.dev/topology": "zone"})
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 3)) == 2)
    plane.holds("the third waits whole", lambda: sorted(bound(plane, "vllm")) == [0, 3, 3])
    for index in plane.lws.whole("vllm", 3):
        zones = {zone_of.get(pod["spec"]["nodeName"]) for pod in replica(plane, "vllm", index)}
        assert len(zones) == 1
    assert said(plane, "WordNotHonoured") == []


def test_workloads_hold_the_templates_of_each_revision(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The main job with one Workload a revision: replicas whole or absent; it goes with the last replica of it."""
    run_lockstep(plane, configuration={"native": {"groups": "workload"}})
    plane.nodes.add(["n1", "n2", "n3", "n4"])
    plane.lws.create("vllm", 5, 2)
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 2)) == 2)
    plane.holds("two whole and none in part", lambda: sorted(bound(plane, "vllm")) == [0, 0, 0, 2, 2])

    (workload,) = plane.api.items(WORKLOADS)
    assert workload["spec"]["controllerRef"] == {
        "apiGroup": "leaderworkerset.x-k8s.io",
        "kind": "LeaderWorkerSet",
        "name": "vllm",
    }
    (owner,) = workload["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("LeaderWorkerSet", "vllm", True)
    groups = plane.api.items(NATIVE_GROUPS)
    reference = {"workloadName": workload["metadata"]["name"], "templateName": "replica"}
    assert [group["spec"]["workloadRef"] for group in groups] == [reference] * 5
    assert findings(plane, WORKLOADS, NATIVE_GROUPS) == []

    change = {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"labels": {"new": "revision"}}}}}
    plane.lws.scale("vllm", 1)
    plane.wait("one replica left", lambda: len(plane.lws.pods("vllm")) == 2)
    plane.lws.change("vllm", change)
    plane.wait("the new revision has its own", lambda: names(plane, WORKLOADS) - {reference["workloadName"]})
    plane.wait("the old one is gone", lambda: reference["workloadName"] not in names(plane, WORKLOADS))
    plane.wait("the replica is whole again", lambda: plane.lws.whole("vllm", 2) == [0])
    plane.lws.scale("vllm", 0)
    plane.wait("none is left", lambda: names(plane, WORKLOADS) == set())


def test_c24_roles_that_need_each_other_start_together(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Prefill alone waits, and so do both on room for less than one of each; then the first of each go together."""
    run_lockstep(plane, configuration={"native": {"roles": "together"}})
    plane.nodes.add(["n1", "n2", "n3"])
    owner = create_set(plane, "vllm", {"prefill": 2, "decode": 2})
    create_role(plane, owner, "prefill")
    plane.wait("prefill's first group", lambda: len(plane.api.items(NATIVE_GROUPS)) == 1)
    plane.holds("prefill alone starts nothing", lambda: bound(plane, "vllm-prefill") == [0, 0])
    create_role(plane, owner, "decode")
    plane.wait("decode's first group", lambda: len(plane.api.items(NATIVE_GROUPS)) == 2)
    plane.holds("three nodes start nothing", lambda: not any(placed(plane)))

    plane.nodes.add(["n4"])
    plane.wait("one of each is whole", lambda: placed(plane) == [2, 0, 2, 0])
    plane.wait("the others have their groups", lambda: len(plane.api.items(NATIVE_GROUPS)) == 4)
    plane.nodes.add(["n5", "n6"])
    plane.wait("one more is whole", lambda: sorted(placed(plane)) == [0, 2, 2, 2])
    plane.nodes.add(["n7", "n8"])
    plane.wait("all are whole", lambda: placed(plane) == [2, 2, 2, 2])
    assert findings(plane, WORKLOADS, NATIVE_GROUPS, COMPOSITES) == []

    plane.api.delete(PODS, "vllm-prefill-0", grace=0)
    plane.wait("the first is back beside its running peer", lambda: 0 in plane.lws.whole("vllm-prefill", 2))
    assert placed(plane) == [2, 2, 2, 2]

    plane.api.delete(DISAGGREGATED_SETS, "vllm", propagation="Background")
    gone = lambda: not names(plane, COMPOSITES) | names(plane, WORKLOADS) | names(plane, NATIVE_GROUPS)  # noqa: E731
    plane.wait("nothing is left", gone)


def replica(plane: ControlPlane, lws: str, index: int) -> list[Json]:
    """Pods of one replica."""
    label = "leaderworkerset.sigs.k8s.io/group-index"
    return [pod for pod in plane.lws.pods(lws) if pod["metadata"]["labels"][label] == str(index)]


def uids(plane: ControlPlane, lws: str, index: int) -> set[str]:
    """UIDs of the pods of one replica."""
    return {pod["metadata"]["uid"] for pod in replica(plane, lws, index)}


def bound(plane: ControlPlane, lws: str) -> list[int]:
    """How many pods of each replica have a node."""
    return [placement.bound for placement in plane.lws.replicas(lws).values()]


def placed(plane: ControlPlane) -> list[int]:
    """The same for prefill's replicas, then decode's."""
    return [*bound(plane, "vllm-prefill"), *bound(plane, "vllm-decode")]


def names(plane: ControlPlane, resource: Resource) -> set[str]:
    """Names of all objects of a kind."""
    return {item["metadata"]["name"] for item in plane.api.items(resource)}


def findings(plane: ControlPlane, *resources: Resource) -> list[Any]:
    """What the offline rules for 1.37 find in stored objects, typed as the API server lists them."""
    target = Target("1.37", frozenset(GATES))
    stored = [
        {"apiVersion": resource.version, "kind": resource.kind, **item}
        for resource in resources
        for item in plane.api.items(resource)
    ]
    return [problem for item in stored for problem in validate(item, None, target)]
