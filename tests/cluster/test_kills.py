"""A reconciler may die at any moment; another goes on, and nothing is written twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.cluster.evidence import code, name_of, writes
from tests.cluster.scenarios import ALL, EVERY_SCHEDULER, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane, PlaneFactory
    from tests.cluster.lockstep import Lockstep, LockstepFactory
    from tests.cluster.resources import Json

CREATED = 201
CUT_OFF = 504
"""What the API server answers to nobody when the one who asked was killed; nothing was stored then."""

KILLS = 20
REPLICAS = 3 + (KILLS - 1) // 2
"""Of each LWS in the end."""

LEADERS_KILLED = 5
"""At the least, else the test says nothing."""

LEASE = ("--lease-seconds", "3")


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """One control plane with every scheduler."""
    return start_plane(EVERY_SCHEDULER)


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with room for everything."""
    shared_plane.reset()
    shared_plane.nodes.add(["n1", "n2", "n3", "n4"], gpus=100, cpu="200", memory="500Gi")
    return shared_plane


def test_killed_twenty_times_during_a_rollout(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Two reconcilers, one of them killed at random again and again: one creation per group, none lost.

    Beside that, groups that wait under a scheduler that forgets are touched, as when a pod gives room back.
    """
    lockstep = run_lockstep(plane)
    lockstep.reconcilers.pop().stop()
    lockstep.metrics_ports.clear()
    for _ in range(2):
        lockstep.start_reconciler(*LEASE)
    since = plane.audit.offset()
    for scheduler in ALL:
        plane.lws.create(scheduler.provider, 2, 2, scheduler=scheduler.name, gpus=1)

    led = kill_at_random(plane, lockstep, random.Random("kills"))
    for scheduler in ALL:
        settle(plane, scheduler)
    assert led >= LEADERS_KILLED
    for scheduler in ALL:
        check_writes(plane, scheduler, since)


def settle(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Wait until every replica is whole, with its group and no other."""
    name, groups = scheduler.provider, scheduler.groups
    plane.wait("all whole", lambda: len(plane.lws.whole(name, 2)) == REPLICAS, 120, 0.5)
    plane.wait("one group a replica", lambda: len(plane.api.items(groups)) == REPLICAS, 60)
    plane.wait("every pod's group is there", lambda: lost(plane, scheduler) == set())


def check_writes(plane: ControlPlane, scheduler: Scheduler, since: int) -> None:
    """Check that every group was created once, and that nothing else was written to one but touches."""
    live = {group["metadata"]["name"] for group in plane.api.items(scheduler.groups)}
    # A creation whose caller was killed is logged as cut off, whether it was stored or not.
    plane.wait(
        "the audit log tells of every group", lambda: live <= set(map(name_of, created(plane, scheduler, since)))
    )
    wrote = written(plane, scheduler, since)
    made = Counter(name_of(event) for event in wrote if event["verb"] == "create" and code(event) != CUT_OFF)
    assert set(made.values()) == {1}
    assert [event for event in wrote if event["verb"] == "create" and code(event) not in (CREATED, CUT_OFF)] == []
    touches = [event for event in wrote if event["verb"] != "create"]
    assert [event for event in touches if not is_touch(event, scheduler.touches)] == []


def written(plane: ControlPlane, scheduler: Scheduler, since: int) -> list[Json]:
    """Everything a reconciler tried to write to groups of a scheduler."""
    api_group = scheduler.groups.version.partition("/")[0]
    return [event for event in writes(plane, since) if event["objectRef"].get("apiGroup") == api_group]


def created(plane: ControlPlane, scheduler: Scheduler, since: int) -> list[Json]:
    """Every creation of a group of a scheduler."""
    return [event for event in written(plane, scheduler, since) if event["verb"] == "create"]


def is_touch(event: Json, allowed: frozenset[str]) -> bool:
    """Is a write nothing but a touch of the kinds that are allowed?"""
    written = event["requestObject"]["metadata"].get("annotations", {})
    return event["requestObject"].keys() == {"metadata"} and len(written) == 1 and written.keys() <= allowed


def kill_at_random(plane: ControlPlane, lockstep: Lockstep, luck: random.Random) -> int:
    """Kill one of two reconcilers at a time while replicas are added and rolled; how often that was the leader."""
    led = 0
    for turn in range(KILLS):
        spec: Json = {"replicas": 3 + turn // 2}
        if turn % 5 == 4:
            template = {"metadata": {"annotations": {"example.com/turn": str(turn)}}}
            spec["leaderWorkerTemplate"] = {"workerTemplate": template}
        for scheduler in ALL:
            plane.lws.change(scheduler.provider, spec)
        plane.wait("one leads", lambda: leads(lockstep, 0) or leads(lockstep, 1), 60, 0.05)
        time.sleep(luck.uniform(0, 1))
        victim = luck.randrange(2)
        led += leads(lockstep, victim)
        lockstep.reconcilers[victim].kill()
        time.sleep(luck.uniform(0, 0.5))
        lockstep.reconcilers[victim].start()
    return led


def leads(lockstep: Lockstep, number: int) -> bool:
    """Does a reconciler lead? One that does not answer yet does not."""
    try:
        return lockstep.metric("lockstep_leader", number) == 1
    except LookupError:
        return False


def lost(plane: ControlPlane, scheduler: Scheduler) -> set[str]:
    """Groups that pods are stamped with and that don't exist."""
    stamped = {pod["metadata"]["labels"]["lockstep.dev/group"] for pod in plane.lws.pods(scheduler.provider)}
    return stamped - {group["metadata"]["name"] for group in plane.api.items(scheduler.groups)}
