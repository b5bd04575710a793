"""What someone does to a group object by hand is undone, and what others keep on it stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.evidence import said
from tests.cluster.resources import CONFIG_MAPS, PODS
from tests.cluster.scenarios import EVERY_SCHEDULER, KOORDINATOR, NATIVE, ON_ALL, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane, PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

PROMISED = 5
"""Seconds within which a repair is promised."""

FINALIZER = "example.com/kept"


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with every scheduler."""
    return start_plane(EVERY_SCHEDULER)


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with room for one replica of two."""
    shared_plane.reset()
    shared_plane.nodes.add(["n1", "n2"])
    return shared_plane


def one_runs_and_one_waits(plane: ControlPlane, scheduler: Scheduler) -> tuple[str, str]:
    """Create two replicas where one fits; names of the groups of the one that runs and of the one that waits."""
    plane.lws.create("vllm", 2, 2, scheduler=scheduler.name)
    plane.wait("two groups", lambda: len(plane.api.items(scheduler.groups)) == 2)
    plane.wait("one replica whole", lambda: len(plane.lws.whole("vllm", 2)) == 1)
    running = plane.lws.whole("vllm", 2)[0]
    return group_of(plane, f"vllm-{running}"), group_of(plane, f"vllm-{1 - running}")


def group_of(plane: ControlPlane, leader: str) -> str:
    """Name of the group that a leader is stamped with."""
    return str(plane.api.get(PODS, leader)["metadata"]["labels"]["lockstep.dev/group"])


def places(plane: ControlPlane, group: str) -> dict[str, str]:
    """Node of each pod of a group, by the pod's UID."""
    pods = plane.api.items(PODS, "default", f"lockstep.dev/group={group}")
    return {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in pods}


@ON_ALL
def test_a_deleted_group_is_made_again(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """Within 5 s, whether its replica runs or waits; the one that runs stays, the one that waits is placed later."""
    run_lockstep(plane)
    groups = one_runs_and_one_waits(plane, scheduler)
    before = {group: plane.api.get(scheduler.groups, group) for group in groups}
    stays = places(plane, groups[0])

    for group in groups:
        plane.api.delete(scheduler.groups, group)
    plane.wait("both groups made again", lambda: all(made_again(plane, scheduler, before[g]) for g in groups), PROMISED)
    plane.holds("the replica that runs stays", lambda: places(plane, groups[0]) == stays, 3)

    plane.nodes.add(["n3", "n4"])
    plane.wait("the replica that waited is placed", lambda: len(plane.lws.whole("vllm", 2)) == 2)
    assert places(plane, groups[0]) == stays


def made_again(plane: ControlPlane, scheduler: Scheduler, before: Json) -> bool:
    """Is there a new object with the spec, labels and owner of the old one, and not on its way out?"""
    now = plane.api.get(scheduler.groups, before["metadata"]["name"])
    same = all(now["metadata"][key] == before["metadata"][key] for key in ("labels", "ownerReferences"))
    new = now["metadata"]["uid"] != before["metadata"]["uid"] and "deletionTimestamp" not in now["metadata"]
    return same and new and bool(now["spec"] == before["spec"])


@ON_ALL
def test_an_edited_minimum_is_set_back_and_fields_of_others_stay(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """Within 5 s, whether the replica runs or waits; labels, annotations, finalizers and status of others survive."""
    run_lockstep(plane)
    groups = one_runs_and_one_waits(plane, scheduler)
    try:
        for group in groups:
            add_fields_of_others(plane, scheduler, group)
        before = {group: others(plane.api.get(scheduler.groups, group)) for group in groups}
        for group in groups:
            plane.api.merge(scheduler.groups, group, scheduler.patch_of(1))
        plane.wait("both set back", lambda: minimums(plane, scheduler, groups) == [2, 2], PROMISED)

        for group in groups:
            plane.api.merge(scheduler.groups, group, {"metadata": {"labels": {"lockstep.dev/group": None}}})
        plane.wait("label back", lambda: all(has_label(plane, scheduler, group) for group in groups), PROMISED)
        assert {group: others(plane.api.get(scheduler.groups, group)) for group in groups} == before
    finally:
        for group in groups:
            rest = [name for name in finalizers(plane, scheduler, group) if name != FINALIZER]
            plane.api.merge(scheduler.groups, group, {"metadata": {"finalizers": rest}})
    assert not plane.lws.in_part("vllm", 2)


def finalizers(plane: ControlPlane, scheduler: Scheduler, group: str) -> list[str]:
    """Finalizers of a group."""
    return list(plane.api.get(scheduler.groups, group)["metadata"].get("finalizers", []))


def add_fields_of_others(plane: ControlPlane, scheduler: Scheduler, group: str) -> None:
    """Put a label, an annotation, a finalizer and a word in the status on a group."""
    kept = [*finalizers(plane, scheduler, group), FINALIZER]
    metadata = {"labels": {"example.com/team": "a"}, "annotations": {"example.com/note": "b"}, "finalizers": kept}
    plane.api.merge(scheduler.groups, group, {"metadata": metadata})
    word: dict[str, Any] = {"type": "example.com/Seen", "status": "True", "reason": "Seen", "message": ""}
    word["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    known = plane.api.get(scheduler.groups, group).get("status", {}).get("conditions", [])
    status = {"conditions": [*known, word]} if scheduler is NATIVE else {"phase": "Scheduling"}
    if scheduler is KOORDINATOR:
        # Its scheduler writes the phase, and its status is no subresource.
        plane.api.merge(scheduler.groups, group, {"status": {"occupiedBy": "example.com/seen"}})
    else:
        plane.api.merge(scheduler.groups, group, {"status": status}, subresource="status")


def others(group: Json) -> Json:
    """What others keep on a group."""
    metadata, status = group["metadata"], group["status"]
    seen = [word for word in status.get("conditions", []) if word["type"] == "example.com/Seen"]
    return {
        "label": metadata["labels"]["example.com/team"],
        "annotation": metadata["annotations"]["example.com/note"],
        "finalizers": metadata["finalizers"],
        "status": (seen, status.get("occupiedBy") or status.get("phase")),
        "uid": metadata["uid"],
    }


def minimums(plane: ControlPlane, scheduler: Scheduler, groups: tuple[str, ...]) -> list[int]:
    """Minimums of groups."""
    return [scheduler.minimum_of(plane.api.get(scheduler.groups, group)) for group in groups]


def has_label(plane: ControlPlane, scheduler: Scheduler, group: str) -> bool:
    """Does the group carry our label?"""
    return bool(plane.api.get(scheduler.groups, group)["metadata"]["labels"].get("lockstep.dev/group") == group)


@ON_ALL
def test_c17_a_group_that_someone_else_controls_is_left_as_it_is(
    plane: ControlPlane, run_lockstep: LockstepFactory, scheduler: Scheduler
) -> None:
    """Never two writers: an object of the name, controlled by another owner, is reported and not written."""
    lockstep = run_lockstep(plane)
    lockstep.reconcilers[0].stop()
    plane.lws.create("vllm", 1, 2, scheduler=scheduler.name)
    name = plane.wait("a leader", lambda: group_of(plane, "vllm-0"))
    owner = plane.api.apply(CONFIG_MAPS, CONFIG_MAPS.make("owner"))["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"], "controller": True}
    theirs = scheduler.groups.make(name, metadata={"ownerReferences": [reference]}, **scheduler.patch_of(2))
    plane.api.create(scheduler.groups, theirs)
    since = plane.audit.offset()

    lockstep.reconcilers[0].start()
    plane.wait("it is said", lambda: said(plane, "GroupOwnedByOther"))
    plane.wait("the replica is placed by their group", lambda: plane.lws.whole("vllm", 2) == [0])
    assert not plane.audit.events(user="lockstep-reconciler", resource="podgroups", since=since)
    assert "labels" not in plane.api.get(scheduler.groups, name)["metadata"]
    plane.api.delete(CONFIG_MAPS, "owner")
