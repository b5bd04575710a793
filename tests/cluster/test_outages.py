"""What happens while something is away: the API server, or the webhook while pods are created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import said, target, writes
from tests.cluster.lws import lws_manifest
from tests.cluster.resources import LEADER_WORKER_SETS, PODS
from tests.cluster.scenarios import COSCHEDULING, NATIVE, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory

LABEL = "lockstep.dev/group"
NODES = ["n1", "n2", "n3", "n4"]

THEIRS = ("kube-controller-manager", "kube-scheduler", "coscheduling", "kwok", "lws")
"""Parts of others that need a minute and more to find the API server again, so that a test starts them anew."""

both = pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with both schedulers."""
    return start_plane(Options(coscheduling=True))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, without nodes."""
    shared_plane.reset()
    return shared_plane


def test_api_server_away_for_twenty_seconds(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """When it is back, what changed gets its groups and what is new too; nothing of ours was restarted."""
    lockstep = run_lockstep(plane)
    schedulers = {"native": NATIVE, "gang": COSCHEDULING}
    for name, scheduler in schedulers.items():
        plane.lws.create(name, 1, 2, scheduler=scheduler.name)
    plane.wait("a group each", lambda: groups(plane, schedulers) == {"native": 1, "gang": 1})
    webhook, reconciler = lockstep.webhook.pid, lockstep.reconcilers[0].pid

    plane.stop("kube-apiserver")
    plane.holds("both live", lambda: (lockstep.webhook.pid, lockstep.reconcilers[0].pid) == (webhook, reconciler), 20)
    plane.start("kube-apiserver")
    for name in THEIRS:
        plane.kill(name)
        plane.start(name)

    since = plane.audit.offset()
    plane.wait("LWS answers", lambda: plane.lws.scale("native", 2), 60)
    plane.lws.scale("gang", 2)
    plane.lws.create("new", 1, 2)
    plane.wait(
        "all groups", lambda: groups(plane, {**schedulers, "new": NATIVE}) == {"native": 2, "gang": 2, "new": 1}, 60
    )
    plane.nodes.add([*NODES, "n5", "n6", "n7", "n8", "n9", "n10"])
    plane.wait("all whole", lambda: all(plane.lws.whole(n, 2) == [0, 1] for n in schedulers), 60)
    assert (lockstep.webhook.pid, lockstep.reconcilers[0].pid) == (webhook, reconciler)
    assert (
        len([event for event in writes(plane, since) if event["verb"] == "create" and target(event) == "podgroups"])
        == 3
    )


def groups(plane: ControlPlane, schedulers: dict[str, Scheduler]) -> dict[str, int]:
    """How many groups each LWS has."""
    selector = "leaderworkerset.sigs.k8s.io/name={}"
    return {name: len(plane.api.items(s.groups, "default", selector.format(name))) for name, s in schedulers.items()}


def test_native_reports_pods_that_the_webhook_missed(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """They run as without us; each is an event on the LWS and counted in a metric; none is deleted."""
    lockstep = run_lockstep(plane)
    lockstep.webhook.stop()
    plane.nodes.add(NODES)
    plane.lws.create("vllm", 2, 2)
    plane.wait("all run", lambda: plane.lws.whole("vllm", 2) == [0, 1])
    pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in plane.lws.pods("vllm")}
    plane.wait("each is reported", lambda: len(said(plane, "UnstampedPod")) == 4)
    for name in pods:
        assert any(f"default/{name}:" in message for message in said(plane, "UnstampedPod"))
    plane.wait("and counted", lambda: lockstep.metric("lockstep_unstamped_pods", provider="native") == 4)
    plane.holds("none is replaced", lambda: uids(plane) == pods, 7)
    assert not any(LABEL in pod["metadata"]["labels"] for pod in plane.lws.pods("vllm"))
    assert not plane.api.items(NATIVE.groups)


def uids(plane: ControlPlane) -> dict[str, str]:
    """UID of each pod of the LWS."""
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in plane.lws.pods("vllm")}


def test_native_recreates_what_is_not_bound_where_that_is_configured(
    plane: ControlPlane, run_lockstep: LockstepFactory
) -> None:
    """With `repair: recreate`, pods without a node are deleted and come back stamped and whole; bound ones stay."""
    lockstep = run_lockstep(plane, configuration={"repair": "recreate"})
    lockstep.webhook.stop()
    plane.nodes.add(["n1", "n2"])
    plane.lws.create("runs", 1, 2)
    plane.wait("one runs", lambda: plane.lws.whole("runs", 2) == [0])
    runs = {pod["metadata"]["uid"] for pod in plane.lws.pods("runs")}
    plane.lws.create("vllm", 2, 2)
    plane.wait("four wait", lambda: len(plane.lws.pods("vllm")) == 4)
    missed = set(uids(plane).values())

    lockstep.start_webhook()
    plane.wait("all stamped", lambda: stamped(plane) == 4 and not missed & set(uids(plane).values()), 60)
    plane.wait("counted no more", lambda: lockstep.metric("lockstep_unstamped_pods", provider="native") == 2)
    plane.nodes.add(["n3", "n4", "n5", "n6"])
    plane.wait("both whole", lambda: plane.lws.whole("vllm", 2) == [0, 1])
    assert {pod["metadata"]["uid"] for pod in plane.lws.pods("runs")} == runs
    assert len(plane.api.items(NATIVE.groups)) == 2


def stamped(plane: ControlPlane) -> int:
    """How many pods of the LWS carry our label."""
    return sum(LABEL in pod["metadata"]["labels"] for pod in plane.lws.pods("vllm"))


def test_coscheduling_is_repaired_in_place(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Pods that the webhook missed are stamped where they are, get their group and are placed whole."""
    lockstep = run_lockstep(plane)
    lockstep.webhook.stop()
    plane.lws.create("vllm", 3, 2, scheduler=COSCHEDULING.name)
    plane.wait("six stamped", lambda: len(plane.lws.pods("vllm")) == 6 and stamped(plane) == 6)
    plane.wait("three groups", lambda: len(plane.api.items(COSCHEDULING.groups)) == 3)
    pods = uids(plane)
    assert len(said(plane, "StampedLate")) == 6

    plane.nodes.add(NODES)
    plane.wait("two whole", lambda: len(plane.lws.whole("vllm", 2)) == 2)
    plane.holds(
        "two whole, none in part", lambda: len(plane.lws.whole("vllm", 2)) == 2 and not plane.lws.in_part("vllm", 2), 3
    )
    assert uids(plane) == pods
    assert lockstep.metric("lockstep_unstamped_pods", provider="coscheduling") == 0


@both
@pytest.mark.parametrize("leader", [True, False], ids=["worker unstamped", "leader unstamped"])
def test_webhook_lost_between_leader_and_worker(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler, *, leader: bool
) -> None:
    """A replica of which only some pods were stamped still comes up: nobody waits for a member that can't be."""
    lockstep = run_lockstep(plane)
    if not leader:
        lockstep.webhook.stop()
    manifest = lws_manifest("vllm", 1, 2, scheduler=scheduler.name)
    manifest["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "None"
    plane.api.create(LEADER_WORKER_SETS, manifest)
    first = plane.wait("worker", lambda: plane.api.get(PODS, "vllm-0-1"))["metadata"]["uid"]
    plane.wait("leader", lambda: plane.api.get(PODS, "vllm-0"))

    if leader:
        lockstep.webhook.stop()
    else:
        lockstep.start_webhook()
    plane.api.delete(PODS, "vllm-0-1", grace=0)
    plane.wait("worker is back", lambda: plane.api.get(PODS, "vllm-0-1")["metadata"]["uid"] != first)
    plane.nodes.add(["n1", "n2"])
    plane.wait("whole", lambda: plane.lws.whole("vllm", 2) == [0], 20)


@both
def test_c19_a_replica_older_than_the_install(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """An LWS from before Lockstep needs no edit: a replica made anew is stamped from what its pods say."""
    plane.nodes.add(NODES)
    plane.lws.create("vllm", 2, 2, scheduler=scheduler.name)
    plane.wait("both run", lambda: plane.lws.whole("vllm", 2) == [0, 1])
    version = plane.api.get(LEADER_WORKER_SETS, "vllm")["metadata"]["generation"]

    run_lockstep(plane)
    plane.api.delete(PODS, "vllm-1", grace=0)
    plane.wait("the new one is stamped", lambda: in_group_of_leader(plane, "vllm-1") == {"vllm-1", "vllm-1-1"})
    plane.wait("and whole", lambda: plane.lws.whole("vllm", 2) == [0, 1])
    assert plane.api.get(LEADER_WORKER_SETS, "vllm")["metadata"]["generation"] == version
    group = plane.api.get(scheduler.groups, plane.api.get(PODS, "vllm-1")["metadata"]["labels"][LABEL])
    assert scheduler.minimum_of(group) == 2


def in_group_of_leader(plane: ControlPlane, leader: str) -> set[str]:
    """Names of the pods that share a leader's group."""
    group = plane.api.get(PODS, leader)["metadata"]["labels"][LABEL]
    return {pod["metadata"]["name"] for pod in plane.api.items(PODS, "default", f"{LABEL}={group}")}
