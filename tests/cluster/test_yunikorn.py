"""YuniKorn's pods on the real control plane: held back, opened one replica at a time, and what stays on them.

YuniKorn itself can't be built from the module proxy; `tests.cluster.yunikorn` plays it on the real API server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.rights import policy_rules, status_rights
from schedulers.registry import all_providers
from tests.cluster.client import ApiError
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.lws import lws_manifest
from tests.cluster.resources import LEADER_WORKER_SETS, NAMESPACES, PODS
from tests.cluster.yunikorn import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import Lockstep, LockstepFactory
    from tests.cluster.resources import Json

GATE = {"name": "lockstep.dev/group"}
HOLD = {"name": "example.com/hold"}
APP_ID = "yunikorn.apache.org/app-id"
TASK_GROUPS = "yunikorn.apache.org/task-groups"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
NODES = {f"n{number}": 8 for number in range(1, 5)}
OK = 200
CUT_OFF = 504
LEASE = ("--lease-seconds", "3")


@pytest.fixture(scope="module")
def own_plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane without a scheduler."""
    return start_plane(Options(scheduler=False))


@pytest.fixture
def plane(own_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with four one-pod nodes and a user who may look."""
    own_plane.reset()
    own_plane.nodes.add(list(NODES))
    own_plane.access.grant("reader", policy_rules(status_rights(all_providers().values())))
    return own_plane


@pytest.fixture
def scheduler(plane: ControlPlane) -> Iterator[Scheduler]:
    """The model of YuniKorn on all nodes."""
    with Scheduler(plane.api, NODES) as running:
        yield running


@pytest.fixture
def lockstep(plane: ControlPlane, run_lockstep: LockstepFactory) -> Lockstep:
    """Lockstep beside the control plane."""
    return run_lockstep(plane)


def create(plane: ControlPlane, name: str, replicas: int, size: int, **rest: Any) -> None:
    """Create an LWS of YuniKorn's."""
    plane.lws.create(name, replicas, size, scheduler="yunikorn", **rest)


def gates(pod: Json) -> list[Json]:
    """Give the scheduling gates of a pod."""
    found: list[Json] = pod["spec"].get("schedulingGates", [])
    return found


def opened(plane: ControlPlane, name: str) -> set[str]:
    """Give the applications of which a pod waits without our gate."""
    waiting = [pod for pod in plane.lws.pods(name) if GATE not in gates(pod) and not pod["spec"].get("nodeName")]
    return {pod["metadata"]["labels"][APP_ID] for pod in waiting}


def test_c42_pods_are_held_back_until_the_reconciler_has_written_what_they_need(
    plane: ControlPlane, scheduler: Scheduler, run_lockstep: LockstepFactory
) -> None:
    """The API server takes stamp and gate, and the patch that opens: task groups of the whole replica on every pod."""
    lockstep = run_lockstep(plane)
    lockstep.reconcilers[0].kill()
    since = plane.audit.offset()
    create(plane, "vllm", 1, 2)
    pods = plane.wait("both pods exist", lambda: two(plane.lws.pods("vllm")))
    for pod in pods:
        labels = pod["metadata"]["labels"]
        assert labels[APP_ID] == labels["lockstep.dev/group"]
        assert gates(pod) == [GATE]
        assert TASK_GROUPS not in pod["metadata"]["annotations"]
    plane.holds("nothing is reserved", lambda: scheduler.placeholders() == [], 2)

    lockstep.reconcilers[0].start()
    plane.wait("the replica is whole", lambda: plane.lws.whole("vllm", 2) == [0], 60)
    plane.wait("nothing is declared any more", lambda: not declared(plane, "vllm"))
    plane.wait("no placeholder is left", lambda: scheduler.placeholders() == [])
    opening = plane.wait("the audit log tells of the opening", lambda: opens(plane, since))[0]
    assert opening["objectRef"]["name"] == "vllm-0"
    annotations = opening["requestObject"]["metadata"]["annotations"]
    asks = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}
    groups = [
        (group["name"], group["minMember"], group["minResource"]) for group in json.loads(annotations[TASK_GROUPS])
    ]
    assert groups == [("leader", 1, asks), ("worker", 1, asks)]
    assert annotations[PARAMETERS] == "gangSchedulingStyle=Hard"


def two(pods: list[Json]) -> list[Json]:
    """Give both pods once they are there."""
    return pods if len(pods) == 2 else []


def declared(plane: ControlPlane, name: str) -> list[str]:
    """Give the pods that carry task groups."""
    return [pod["metadata"]["name"] for pod in plane.lws.pods(name) if TASK_GROUPS in pod["metadata"]["annotations"]]


def opens(plane: ControlPlane, since: int) -> list[Json]:
    """Give the writes that opened a gate after a moment."""
    patches = plane.audit.events(user="lockstep-reconciler", verbs={"patch"}, resource="pods", since=since)
    return [event for event in patches if "schedulingGates" in event["requestObject"].get("spec", {})]


@pytest.mark.usefixtures("lockstep")
def test_c01_ten_replicas_on_four_nodes_stand_whole_or_not_at_all(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Two whole, none in part, one that holds the turn with its two placeholders; two nodes more bring the third."""
    create(plane, "vllm", 10, 2)
    plane.wait("two are whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, 90, 0.5)
    plane.wait("the third holds the turn", lambda: len(opened(plane, "vllm")) == 1, 60)
    plane.holds("one is open, none in part", lambda: len(opened(plane, "vllm")) == 1 and in_part(plane) == [], 4, 0.5)
    assert len(scheduler.placeholders()) == 2
    code, entries = status_of(plane)
    states = Counter(entry["state"] for entry in entries)
    assert (code, states) == (1, {"running": 2, "waits for capacity": 1, "gated": 7})
    [holder] = [entry for entry in entries if entry["state"] == "waits for capacity"]
    assert holder["reason"].startswith("0 of its 2 placeholders have a node and hold it until all have one")
    assert "7 replicas wait for their turn behind it" in holder["reason"]
    behind = f"waits for its turn behind default/vllm-{holder['index']}"
    assert {entry["reason"] for entry in entries if entry["state"] == "gated"} == {behind}

    plane.nodes.add(["n5", "n6"])
    scheduler.nodes.update({"n5": 8, "n6": 8})
    plane.wait("the third is whole", lambda: len(plane.lws.whole("vllm", 2)) == 3, 60)
    plane.wait("the next holds the turn", lambda: len(opened(plane, "vllm")) == 1, 60)
    plane.lws.delete("vllm")
    plane.wait("nothing is left", lambda: scheduler.placeholders() == [] and plane.lws.pods("vllm") == [], 60)


def in_part(plane: ControlPlane) -> list[int]:
    """Give the replicas that are placed in part."""
    return plane.lws.in_part("vllm", 2)


def status_of(plane: ControlPlane) -> tuple[int, list[dict[str, Any]]]:
    """Run `lockstep status`; gives its exit code and what it printed."""
    command = [sys.executable, "-m", "lockstep", "status", "--kubeconfig", str(plane.kubeconfig("reader"))]
    done = subprocess.run([*command, "--output", "json", "vllm"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.mark.usefixtures("lockstep")
def test_a_restart_of_yunikorn_reserves_nothing_for_what_runs(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Nor does it kill: task groups have come off. A new leader is a new application, whole again."""
    create(plane, "vllm", 2, 2)
    plane.wait("both are whole", lambda: plane.lws.whole("vllm", 2) == [0, 1], 90, 0.5)
    plane.wait("nothing is declared any more", lambda: not declared(plane, "vllm"))
    scheduler.restart()
    plane.holds("nothing is reserved", lambda: scheduler.placeholders() == [], 2)
    assert plane.lws.whole("vllm", 2) == [0, 1]

    before = apps(plane)
    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait("another application", lambda: len(apps(plane) - before) == 1, 60)
    plane.wait("both are whole", lambda: plane.lws.whole("vllm", 2) == [0, 1], 60)


def apps(plane: ControlPlane, namespace: str = "default") -> set[str]:
    """Give the applications of an LWS's pods."""
    return {pod["metadata"]["labels"][APP_ID] for pod in plane.lws.pods("vllm", namespace)}


@pytest.mark.usefixtures("lockstep")
def test_c02_late_workers_find_their_room_held(plane: ControlPlane, scheduler: Scheduler) -> None:
    """LeaderReady: both task groups are declared with the leader, and the workers are opened when they come."""
    since = plane.audit.offset()
    create(plane, "vllm", 1, 3, startupPolicy="LeaderReady")
    plane.wait("the replica is whole", lambda: plane.lws.whole("vllm", 3) == [0], 90, 0.5)
    opening = plane.wait("the audit log tells of the opening", lambda: opens(plane, since))[0]
    assert opening["objectRef"]["name"] == "vllm-0"
    groups = json.loads(opening["requestObject"]["metadata"]["annotations"][TASK_GROUPS])
    assert [(group["name"], group["minMember"]) for group in groups] == [("leader", 1), ("worker", 2)]
    plane.wait(
        "nothing is declared, nothing held", lambda: not declared(plane, "vllm") and not scheduler.placeholders()
    )


@pytest.mark.usefixtures("lockstep", "scheduler")
def test_two_namespaces_with_one_name_are_two_applications(plane: ControlPlane) -> None:
    """An application id is unique in the cluster."""
    if plane.api.find(NAMESPACES, "team-b") is None:
        plane.api.create(NAMESPACES, NAMESPACES.make("team-b"))
    create(plane, "vllm", 1, 2)
    plane.api.create(LEADER_WORKER_SETS, lws_manifest("vllm", 1, 2, scheduler="yunikorn", namespace="team-b"))
    plane.wait("one is whole", lambda: plane.lws.whole("vllm", 2) == [0], 60)
    plane.wait("so is the other", lambda: plane.lws.whole("vllm", 2, "team-b") == [0], 60)
    ids = [
        {pod["metadata"]["labels"][APP_ID] for pod in plane.lws.pods("vllm", where)} for where in ("default", "team-b")
    ]
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]
    plane.lws.delete("vllm", "team-b")
    plane.wait("it is gone", lambda: plane.lws.pods("vllm", "team-b") == [], 60)


@pytest.mark.usefixtures("lockstep", "scheduler")
def test_gates_of_others_stay_and_do_not_hold_up_the_line(plane: ControlPlane) -> None:
    """The younger set goes first; ours comes off the older one once theirs has."""
    create(plane, "held", 1, 2, pod={"schedulingGates": [HOLD]})
    plane.wait("both pods exist", lambda: two(plane.lws.pods("held")))
    create(plane, "vllm", 1, 2)
    plane.wait("the younger is whole", lambda: plane.lws.whole("vllm", 2) == [0], 60)
    assert [gates(pod) for pod in plane.lws.pods("held")] == [[HOLD, GATE]] * 2
    for pod in plane.lws.pods("held"):
        plane.api.patch(PODS, pod["metadata"]["name"], [{"op": "remove", "path": "/spec/schedulingGates/0"}])
    plane.wait("the older is whole", lambda: plane.lws.whole("held", 2) == [0], 60)


def test_a_gate_is_opened_for_the_pod_that_was_seen_and_no_other(plane: ControlPlane, lockstep: Lockstep) -> None:
    """The API server refuses the patch for another UID, and takes it twice; a gate of others is not touched."""
    lockstep.reconcilers[0].kill()
    create(plane, "held", 1, 1, pod={"schedulingGates": [HOLD]})
    pod = plane.wait("the pod exists", lambda: plane.api.find(PODS, "held-0"))
    assert pod is not None

    def patch(uid: str) -> Json:
        body = {"metadata": {"uid": uid}, "spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}}
        return plane.api.request("PATCH", PODS.item("held-0"), body, "application/strategic-merge-patch+json")

    with pytest.raises(ApiError) as refused:
        patch("00000000-0000-0000-0000-000000000000")
    assert refused.value.status == 422
    assert "metadata.uid" in refused.value.message
    assert gates(plane.api.get(PODS, "held-0")) == [HOLD, GATE]
    assert gates(patch(pod["metadata"]["uid"])) == [HOLD]
    assert gates(patch(pod["metadata"]["uid"])) == [HOLD]


def test_yunikorn_taken_out_of_the_configuration_leaves_no_gate(
    plane: ControlPlane, lockstep: Lockstep, tmp_path: Path
) -> None:
    """What was admitted with a gate is let go by a reconciler that knows no YuniKorn."""
    lockstep.reconcilers[0].kill()
    create(plane, "vllm", 2, 2)
    plane.wait("all pods exist", lambda: len(plane.lws.pods("vllm")) == 4, 60)
    assert all(gates(pod) == [GATE] for pod in plane.lws.pods("vllm"))
    configuration = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}
    file = tmp_path / "configuration.json"
    file.write_text(json.dumps({**configuration, "schedulers": {"default-scheduler": "native"}}))
    lockstep.start_reconciler("--config", str(file), *LEASE)
    plane.wait("no gate is left", lambda: not any(gates(pod) for pod in plane.lws.pods("vllm")), 60)


def test_reconcilers_killed_at_random_open_nothing_twice(
    plane: ControlPlane, scheduler: Scheduler, run_lockstep: LockstepFactory
) -> None:
    """One after the other is killed while replicas come: one open at a time, each gate opened once, all whole."""
    nodes = [f"m{number}" for number in range(8)]
    plane.nodes.add(nodes)
    scheduler.nodes.update(dict.fromkeys(nodes, 8))
    lockstep = run_lockstep(plane)
    lockstep.reconcilers.pop().stop()
    lockstep.metrics_ports.clear()
    for _ in range(2):
        lockstep.start_reconciler(*LEASE)
    since = plane.audit.offset()
    create(plane, "vllm", 6, 2)
    for turn in range(4):
        goal = turn + 1
        plane.wait(f"{goal} are whole", lambda goal=goal: len(plane.lws.whole("vllm", 2)) >= goal, 120, 0.1)  # type: ignore[misc]
        assert len(opened(plane, "vllm")) <= 1
        lockstep.reconcilers[turn % 2].kill()
        lockstep.reconcilers[turn % 2].start()
    plane.wait("all are whole", lambda: len(plane.lws.whole("vllm", 2)) == 6, 120, 0.5)
    plane.wait(
        "the audit log tells of every pod", lambda: len({e["objectRef"]["name"] for e in opens(plane, since)}) == 12
    )
    # A write whose caller was killed is logged as cut off, whether it was stored or not.
    answered = Counter((event["objectRef"]["name"], event["responseStatus"]["code"]) for event in opens(plane, since))
    assert {number for (_, code), number in answered.items() if code == OK} == {1}
    assert {code for _, code in answered} <= {OK, CUT_OFF}
    assert in_part(plane) == []
