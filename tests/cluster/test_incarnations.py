"""A leader that is deleted comes back with its replica, in a group of its own."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.cluster.as_built import minima
from tests.cluster.client import ApiError
from tests.cluster.lws import INDEX_LABEL, NAME_LABEL, lws_manifest
from tests.cluster.recording import ADDED, DELETED, Recording
from tests.cluster.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from tests.cluster.scenarios import ON_ALL, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

GRACES = {0: 0, 1: None}
"""Replica -> the grace that its leader is deleted with, `None` for the pod's own."""

DELETIONS = {"native": 20, "coscheduling": 20, "koordinator": 10, "kai": 10}
"""Of each leader; there are two of them."""

RESYNC = 60
HELD = "tests.lockstep.dev/held"


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep and room for one replica of two."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    crowded_plane.nodes.add(["n1", "n2"])
    return crowded_plane


@ON_ALL
def test_leaders_deleted_twenty_times_come_back_each_time(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Whole again each time, though the last group is still there; no name comes twice, and nothing is left over."""
    plane.nodes.add(["n3", "n4"])
    plane.lws.create("vllm", len(GRACES), 2, scheduler=scheduler.name)
    with Recording(plane, PODS, scheduler.groups) as recording:
        last: dict[int, str] = {}
        for _ in range(DELETIONS[scheduler.provider]):
            for index, grace in GRACES.items():
                group = whole_in_a_group(plane, scheduler, index, other_than=last.get(index))
                hold(plane, scheduler, group)
                delete_leader(plane, index, grace)
                assert plane.api.find(scheduler.groups, last.get(index, group)), "the last group was still to be there"
                let_go(plane, scheduler, last.get(index))
                last[index] = group
        left = {whole_in_a_group(plane, scheduler, index, other_than=last[index]) for index in GRACES}
        for group in last.values():
            let_go(plane, scheduler, group)
        plane.wait("a group for each", lambda: set(names(plane, scheduler)) == left)
        plane.wait("recording is whole", recording.caught_up)

        made = [version for version in recording.of(scheduler.groups) if version.change == ADDED]
        # More than deletions: LWS 0.8.0 deletes a new leader once more when it takes a dying worker for its own.
        assert len(made) >= len(GRACES) * (DELETIONS[scheduler.provider] + 1)
        assert set(Counter(version.name for version in made).values()) == {1}
        assert set(Counter(version.owner for version in made).values()) == {1}
        assert longest_orphaned(recording, scheduler) < RESYNC


@ON_ALL
def test_c05_a_dead_leaders_group_of_the_same_name_is_replaced(
    plane: ControlPlane, crowded_lockstep: Lockstep, scheduler: Scheduler
) -> None:
    """It counts for nothing while it lingers, nobody's finalizer is taken off, and then there is a good one."""
    [reconciler] = crowded_lockstep.reconcilers
    reconciler.stop()
    plane.lws.create("vllm", 1, 2, scheduler=scheduler.name)
    leader = plane.wait("a leader", lambda: plane.api.get(PODS, "vllm-0"))
    name = leader["metadata"]["labels"]["lockstep.dev/group"]
    plane.api.create(scheduler.groups, of_dead_leader(scheduler, name))
    plane.wait("its deletion", lambda: plane.api.get(scheduler.groups, name)["metadata"]["deletionTimestamp"])
    reconciler.start()
    crowded_lockstep.wait_ready()
    plane.holds("nobody starts, and it is held", lambda: plane.lws.replicas("vllm")[0].bound == 0, 3)
    assert HELD in finalizers(plane.api.get(scheduler.groups, name))

    let_go(plane, scheduler, name)
    plane.wait(
        "the leader's own group", lambda: owner(plane.api.get(scheduler.groups, name)) == uid(plane, "vllm-0"), 5
    )
    assert whole_in_a_group(plane, scheduler) == name
    group = plane.api.get(scheduler.groups, name)
    assert owner(group) == leader["metadata"]["uid"]
    assert scheduler.minimum_of(group) == 2


@ON_ALL
def test_c10_a_dying_worker_of_the_last_leader_is_no_member(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Late workers: the new group's minimum is 1 as long as there is only a worker of the old replica."""
    plane.nodes.add(["n3"])
    manifest = lws_manifest("vllm", 1, 2, scheduler=scheduler.name, startupPolicy="LeaderReady")
    # Else LWS deletes each new leader for the dying worker's sake.
    manifest["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "None"
    plane.api.create(LEADER_WORKER_SETS, manifest)
    old = whole_in_a_group(plane, scheduler)
    plane.api.merge(PODS, "vllm-0-1", {"metadata": {"finalizers": [HELD]}})
    with Recording(plane, scheduler.groups) as recording:
        plane.api.delete(PODS, "vllm-0", grace=0)
        plane.wait("the new leader runs", lambda: phase(plane, "vllm-0") == ("Running", False))
        plane.wait("its workers are wanted", lambda: worker_set_owner(plane) == uid(plane, "vllm-0"))
        assert phase(plane, "vllm-0-1")[1], "the old worker was to be there"
        new = plane.api.get(PODS, "vllm-0")["metadata"]["labels"]["lockstep.dev/group"]
        plane.holds("the minimum is 1", lambda: minima(recording, scheduler)[new] == [1], 3)

        plane.api.merge(PODS, "vllm-0-1", {"metadata": {"finalizers": None}})
        assert whole_in_a_group(plane, scheduler, other_than=old) == new
        plane.wait("the minimum is raised", lambda: minima(recording, scheduler)[new] == [1, 2])


@ON_ALL
def test_c11_a_leader_replaced_unseen_is_known_by_its_uid(
    plane: ControlPlane, crowded_lockstep: Lockstep, scheduler: Scheduler
) -> None:
    """A reconciler that was away for the old leader's end and the new one's birth gets to where it always gets."""
    plane.lws.create("vllm", 1, 2, scheduler=scheduler.name)
    old = whole_in_a_group(plane, scheduler)
    before = uid(plane, "vllm-0")
    [reconciler] = crowded_lockstep.reconcilers
    reconciler.stop()
    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait("a new leader", lambda: uid(plane, "vllm-0") != before)
    reconciler.start()
    crowded_lockstep.wait_ready()

    new = whole_in_a_group(plane, scheduler, other_than=old)
    plane.wait("one group", lambda: names(plane, scheduler) == [new])
    assert owner(plane.api.get(scheduler.groups, new)) == uid(plane, "vllm-0")


@ON_ALL
@pytest.mark.parametrize("size", [pytest.param(2, id="that runs"), pytest.param(3, id="that waits")])
@pytest.mark.parametrize("whole", [pytest.param(True, id="of an LWS"), pytest.param(False, id="of a leader")])
def test_a_foreground_deletion_ends(plane: ControlPlane, scheduler: Scheduler, size: int, *, whole: bool) -> None:
    """The group, owned by the leader pod, does not hold up a deletion that waits for what is owned."""
    plane.lws.create("vllm", 1, size, scheduler=scheduler.name)
    bound = size if size == 2 else 0
    plane.wait("it runs, or waits", lambda: plane.lws.replicas("vllm") == {0: (bound, size)})
    [group] = plane.wait("its group", lambda: plane.api.items(scheduler.groups))
    leader = uid(plane, "vllm-0")
    [reference] = group["metadata"]["ownerReferences"]
    assert reference == {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": leader, "controller": True}

    if whole:
        plane.lws.delete("vllm", propagation="Foreground")
        plane.wait("the LWS is gone", lambda: plane.api.find(LEADER_WORKER_SETS, "vllm") is None)
        plane.wait("so is all of it", lambda: not plane.lws.pods("vllm") and not names(plane, scheduler))
    else:
        plane.api.delete(PODS, "vllm-0", propagation="Foreground")
        plane.wait("another leader", lambda: uid(plane, "vllm-0") != leader)
        plane.wait("its group is gone", lambda: group["metadata"]["name"] not in names(plane, scheduler))


def delete_leader(plane: ControlPlane, index: int, grace: int | None) -> None:
    """Delete a leader; LWS may have done so at the same moment, then it is the next one."""
    plane.wait("the leader is deleted", lambda: plane.api.delete(PODS, f"vllm-{index}", grace=grace))


def whole_in_a_group(
    plane: ControlPlane, scheduler: Scheduler, index: int = 0, *, other_than: str | None = None
) -> str:
    """Wait until a replica of two is whole in another group than its last; gives the group's name."""
    selector = f"{NAME_LABEL}=vllm,{INDEX_LABEL}={index}"

    def whole() -> str | None:
        pods = [pod for pod in plane.api.items(PODS, "default", selector) if "deletionTimestamp" not in pod["metadata"]]
        groups = {pod["metadata"]["labels"]["lockstep.dev/group"] for pod in pods}
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        return groups.pop() if len(bound) == 2 and len(groups) == 1 and groups != {other_than} else None

    group = plane.wait("the replica is whole", whole, every=0.1)
    assert plane.api.get(scheduler.groups, group or "")
    return group or ""


def of_dead_leader(scheduler: Scheduler, name: str) -> Json:
    """A group of ours whose leader is gone, kept from being collected."""
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": str(uuid.uuid4()), "controller": True}
    metadata = {"labels": {"lockstep.dev/group": name}, "ownerReferences": [reference], "finalizers": [HELD]}
    return scheduler.groups.make(name, metadata=metadata, **scheduler.patch_of(9))


def hold(plane: ControlPlane, scheduler: Scheduler, group: str) -> None:
    """Keep a group from being collected, as a slow collector would."""

    def held() -> Json:
        live = plane.api.get(scheduler.groups, group)
        version = live["metadata"]["resourceVersion"]
        metadata = {"finalizers": [*finalizers(live), HELD], "resourceVersion": version}
        return plane.api.merge(scheduler.groups, group, {"metadata": metadata})

    # Koordinator's scheduler may have written its status meanwhile.
    plane.wait("it is held", held, every=0.05)


def let_go(plane: ControlPlane, scheduler: Scheduler, group: str | None) -> None:
    """Let the collector have it."""
    while group is not None and (live := plane.api.find(scheduler.groups, group)) and HELD in finalizers(live):
        live["metadata"]["finalizers"].remove(HELD)
        with contextlib.suppress(ApiError):
            plane.api.replace(scheduler.groups, live)


def finalizers(body: Json) -> list[str]:
    """Finalizers of an object."""
    return list(body["metadata"].get("finalizers", ()))


def owner(body: Json) -> str:
    """UID of an object's controller."""
    return next(str(of["uid"]) for of in body["metadata"]["ownerReferences"] if of["controller"])


def uid(plane: ControlPlane, pod: str) -> str:
    """UID of a pod."""
    return str(plane.api.get(PODS, pod)["metadata"]["uid"])


def phase(plane: ControlPlane, pod: str) -> tuple[str, bool]:
    """Phase of a pod, and whether it is being deleted."""
    body = plane.api.get(PODS, pod)
    return body["status"]["phase"], "deletionTimestamp" in body["metadata"]


def worker_set_owner(plane: ControlPlane) -> str:
    """UID of the leader whose workers the StatefulSet makes."""
    return owner(plane.api.get(STATEFUL_SETS, "vllm-0"))


def names(plane: ControlPlane, scheduler: Scheduler) -> list[str]:
    """Names of the groups."""
    return [group["metadata"]["name"] for group in plane.api.items(scheduler.groups)]


def longest_orphaned(recording: Recording, scheduler: Scheduler) -> float:
    """Most seconds that a group outlived the leader that owns it."""
    gone = {version.uid: version.moment for version in recording.of(PODS) if version.change == DELETED}
    ends = [version for version in recording.of(scheduler.groups) if version.change == DELETED]
    return max(group.moment - gone[group.owner] for group in ends)
