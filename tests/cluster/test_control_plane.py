"""The control plane that all other tests of this folder stand on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cluster.client import ApiError, UnreachableError
from tests.cluster.commands import SCHEDULER_PLUGINS
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.resources import (
    LEADER_WORKER_SETS,
    NATIVE_GROUPS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    VOLCANO_GROUPS,
    VOLCANO_QUEUES,
    Json,
)
from tests.cluster.waiting import WaitError

if TYPE_CHECKING:
    from pathlib import Path

_NODES = ["n1", "n2", "n3", "n4"]
_GROUP_RULE = {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["create", "get", "delete"]}


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """An empty control plane with four nodes of one pod each."""
    control_plane.reset()
    control_plane.nodes.add(_NODES)
    return control_plane


def _group(name: str) -> Json:
    return NATIVE_GROUPS.make(name, spec={"schedulingPolicy": {"gang": {"minCount": 2}}})


def test_components_run_with_versions_as_pinned(plane: ControlPlane) -> None:
    """All components run, and the API server says which version it is and serves what native gangs need."""
    assert set(plane.pids()) == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "lws",
    }
    assert plane.api.request("GET", "/version")["gitVersion"] == "v1.37.2"
    assert plane.serves(NATIVE_GROUPS)
    assert not plane.serves(VOLCANO_GROUPS)


def test_lws_that_fits_runs_whole(plane: ControlPlane) -> None:
    """Two replicas of two on four nodes get ready, and nothing stamps them."""
    plane.lws.create("fits", 2, 2)
    plane.wait("both replicas ready", lambda: plane.api.get(LEADER_WORKER_SETS, "fits")["status"]["readyReplicas"] == 2)
    assert plane.lws.replicas("fits") == {0: (2, 2), 1: (2, 2)}
    assert all("schedulingGroup" not in pod["spec"] for pod in plane.lws.pods("fits"))
    assert plane.api.items(NATIVE_GROUPS) == []


def test_deadlock_without_gangs(plane: ControlPlane) -> None:
    """Ten replicas of two on four nodes: every node is taken and at least one replica stands in part."""
    plane.lws.create("stuck", 10, 2)
    plane.wait("four pods bound", lambda: sum(placed.bound for placed in plane.lws.replicas("stuck").values()) == 4)
    plane.holds("a replica in part", lambda: plane.lws.in_part("stuck", 2), 3)


def test_api_server_comes_back(plane: ControlPlane) -> None:
    """The API server stopped and started again answers on the same port with the same objects, and the others go on."""
    plane.lws.create("stays", 1, 2)
    plane.wait("replica whole", lambda: plane.lws.whole("stays", 2) == [0])
    plane.kill("kube-apiserver")
    with pytest.raises(UnreachableError):
        plane.api.get(LEADER_WORKER_SETS, "stays")
    plane.start("kube-apiserver")
    assert plane.lws.replicas("stays") == {0: (2, 2)}
    plane.lws.scale("stays", 2)
    # The components come back by their own back-off, which grows up to a minute.
    plane.wait("second replica whole", lambda: plane.lws.whole("stays", 2) == [0, 1], 120)


def test_components_can_be_restarted(plane: ControlPlane) -> None:
    """LWS killed and started again makes the replicas that were asked for meanwhile."""
    plane.kill("lws")
    assert "lws" not in plane.pids()
    assert "--- lws: stopped" in plane.report()
    plane.start("lws")
    plane.lws.create("later", 1, 2)
    plane.wait("replica whole", lambda: plane.lws.whole("later", 2) == [0])


def test_rights_come_from_grants_alone(plane: ControlPlane) -> None:
    """A user without a grant is refused, with it is served, and is refused again after it was taken back."""
    reconciler = plane.client("reconciler")
    with pytest.raises(ApiError, match='User "lockstep-reconciler" cannot create resource "podgroups"') as refused:
        reconciler.create(NATIVE_GROUPS, _group("refused"))
    assert refused.value.status == 403
    plane.access.grant("reconciler", [_GROUP_RULE])
    assert reconciler.create(NATIVE_GROUPS, _group("granted"))["metadata"]["name"] == "granted"
    plane.access.revoke("reconciler")
    asked = NATIVE_GROUPS.item("granted")
    plane.wait("refused again", lambda: reconciler.text("GET", asked)[0] == 403)


def test_audit_log_tells_who_wrote(plane: ControlPlane) -> None:
    """A write of a group stands in the audit log once, with its user and what was sent; earlier ones are left out."""
    plane.access.grant("second", [_GROUP_RULE])
    plane.client("second").create(NATIVE_GROUPS, _group("before"))
    plane.wait("first write logged", lambda: len(_writes(plane, 0)) == 1)
    since = plane.audit.offset()
    plane.client("second").create(NATIVE_GROUPS, _group("after"))
    [event] = plane.wait("second write logged", lambda: _writes(plane, since))
    assert (event["verb"], event["objectRef"]["name"], event["responseStatus"]["code"]) == ("create", "after", 201)
    assert event["requestObject"]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def _writes(plane: ControlPlane, since: int) -> list[Json]:
    return plane.audit.events(user="lockstep-second", resource="podgroups", since=since)


def test_failed_wait_says_what_was_seen_and_prints_logs(plane: ControlPlane) -> None:
    """A wait that fails names what it waited for, the last value, and shows each component's last log lines."""
    with pytest.raises(WaitError, match=r"pigs fly: must be within 0.1 s, got '0'") as failed:
        plane.wait("pigs fly", lambda: 0, 0.1)
    for name in plane.pids():
        assert f"--- {name}: runs as" in str(failed.value)
    assert "LeaderWorkerSet" in str(failed.value)


def test_condition_that_stops_holding_is_reported(plane: ControlPlane) -> None:
    """What must hold fails at once with the error of the condition, not at the end of the time."""
    with pytest.raises(WaitError, match=r'node there: must hold for 60 s, ended after 0\.\d s, got .*"none" not found'):
        plane.holds("node there", lambda: plane.api.get(NODES, "none"), 60)


def test_cordoned_nodes_take_no_pods(plane: ControlPlane) -> None:
    """Pods wait while all nodes are cordoned and are placed once one is not."""
    for name in _NODES:
        plane.nodes.cordon(name)
    plane.lws.create("waits", 1, 1)
    plane.wait("pod there", lambda: plane.lws.replicas("waits") == {0: (0, 1)})
    plane.holds("pod waits", lambda: plane.lws.replicas("waits") == {0: (0, 1)}, 2)
    plane.nodes.uncordon("n3")
    plane.wait("pod placed", lambda: plane.lws.replicas("waits") == {0: (1, 1)})


def test_deleted_node_takes_its_pods_along(plane: ControlPlane) -> None:
    """Pods of a deleted node are gone at once; the replica comes back elsewhere."""
    plane.lws.create("moves", 1, 1)
    plane.wait("placed", lambda: plane.lws.whole("moves", 1) == [0])
    [before] = plane.lws.pods("moves")
    plane.nodes.delete(before["spec"]["nodeName"])
    plane.wait("placed again", lambda: plane.lws.whole("moves", 1) == [0])
    [after] = plane.lws.pods("moves")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["nodeName"] != before["spec"]["nodeName"]


def test_manifests_are_applied_by_kubectl(plane: ControlPlane) -> None:
    """Several documents in one text, applied twice: the later value stays."""
    text = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {0}}}\nvalue: 7\ndescription: {1}\n"
    )
    plane.apply_yaml("---\n".join((text.format("high", "first"), text.format("low", "first"))))
    plane.apply_yaml(text.format("high", "second"))
    assert plane.api.get(PRIORITY_CLASSES, "high")["description"] == "second"
    assert plane.api.get(PRIORITY_CLASSES, "low")["description"] == "first"
    with pytest.raises(RuntimeError, match="kubectl apply"):
        plane.apply_yaml("kind: Nonsense")


def test_pods_run_in_new_namespaces(plane: ControlPlane) -> None:
    """A namespace that was just made takes an LWS."""
    plane.create_namespace("team-a", {"team": "a"})
    plane.lws.create("there", 1, 1, namespace="team-a")
    plane.wait("placed", lambda: plane.lws.whole("there", 1, "team-a") == [0])


def test_coscheduling_scheduler_serves_its_name(coscheduling_plane: ControlPlane) -> None:
    """Pods of its schedulerName are bound by the scheduler-plugins scheduler, not by the stock one."""
    plane = coscheduling_plane
    plane.reset()
    plane.nodes.add(_NODES)
    plane.lws.create("co", 1, 2, scheduler=SCHEDULER_PLUGINS)
    plane.wait("replica whole", lambda: plane.lws.whole("co", 2) == [0])
    plane.wait("both bindings logged", lambda: _binders(plane) == ["coscheduling", "coscheduling"])


def _binders(plane: ControlPlane) -> list[str]:
    events = plane.audit.events(resource="pods")
    return [event["user"]["username"] for event in events if event["objectRef"].get("subresource") == "binding"]


def test_bare_control_plane_with_volcano_kinds(binaries: Path, tmp_path: Path) -> None:
    """With gates off native gangs are not there; Volcano's kinds are, with Volcano's defaults, limits and status."""
    options = Options(gates={}, runtime_config={}, scheduler=False, kwok=False, lws=False, volcano=True)
    with ControlPlane(binaries, tmp_path, options) as plane:
        assert not plane.serves(NATIVE_GROUPS)
        group = plane.api.create(VOLCANO_GROUPS, VOLCANO_GROUPS.make("g", spec={"minMember": 2}))
        assert group["spec"] == {"minMember": 2, "queue": "default"}
        # No status subresource: whoever replaces the object writes its status too.
        group["status"] = {"phase": "Inqueue"}
        assert plane.api.replace(VOLCANO_GROUPS, group)["status"] == {"phase": "Inqueue"}
        with pytest.raises(ApiError, match=r"spec\.minMember"):
            plane.api.create(VOLCANO_GROUPS, VOLCANO_GROUPS.make("bad", spec={"minMember": -1}))
        queue = plane.api.create(VOLCANO_QUEUES, VOLCANO_QUEUES.make("default", spec={}))
        assert queue["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}
        pod = PODS.make(
            "p", spec={"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "x"}]}
        )
        assert "schedulingGroup" not in plane.api.create(PODS, pod)["spec"]
        pids = plane.pids()
    assert not any(map(_exists, pids.values()))
    assert not (tmp_path / "etcd").exists()


def test_component_that_does_not_start_is_reported_at_once(binaries: Path, tmp_path: Path) -> None:
    """An API server that ends at its start fails the start with its exit code and its own words; nothing stays."""
    plane = ControlPlane(binaries, tmp_path, Options(gates={"NoSuchGate": True}))
    with pytest.raises(WaitError, match=r"(?s)kube-apiserver: must run, ended with code 1\n.*NoSuchGate"), plane:
        pass
    assert plane.pids() == {}


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
