"""Rolling updates: two revisions side by side, more replicas than usual, and none with another's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.as_built import Numbers, astray, numbers_of
from tests.cluster.evidence import name_of, writes
from tests.cluster.lws import lws_manifest
from tests.cluster.recording import ADDED, Recording
from tests.cluster.resources import PODS, STATEFUL_SETS
from tests.cluster.scenarios import COSCHEDULING, ON_ALL, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
INDEX = "leaderworkerset.sigs.k8s.io/group-index"


def rolling(**words: int) -> dict[str, Any]:
    """A rollout strategy."""
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": words}}


def template(size: int, gpus: int, scheduler: Scheduler) -> dict[str, Any]:
    """What makes a revision."""
    spec = lws_manifest("vllm", 1, size, scheduler=scheduler.name, gpus=gpus)["spec"]
    return {"leaderWorkerTemplate": spec["leaderWorkerTemplate"]}


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    return crowded_plane


@pytest.fixture
def roomy(plane: ControlPlane) -> ControlPlane:
    """The control plane with room for everything."""
    plane.nodes.add(["n1", "n2"], gpus=64, cpu="64", memory="256Gi")
    return plane


@ON_ALL
def test_c06_c08_every_replica_has_its_own_numbers_through_surge_resize_and_rollback(
    roomy: ControlPlane, scheduler: Scheduler
) -> None:
    """Of each version of each group: minimum and floor of the replica as it was built; surge replicas have groups."""
    plane = roomy
    with Recording(plane, PODS, STATEFUL_SETS, scheduler.groups) as recording:
        strategy = rolling(maxSurge=2, maxUnavailable=1)
        plane.lws.create("vllm", 4, 2, scheduler=scheduler.name, gpus=2, **strategy)
        plane.wait("four replicas whole", lambda: plane.lws.whole("vllm", 2) == [0, 1, 2, 3])
        first = revisions(plane)

        plane.lws.change("vllm", template(2, 1, scheduler))
        plane.wait("half rolled over", lambda: len(revisions(plane)) == 2 and moved(plane, first) >= 2, every=0.05)
        plane.lws.change("vllm", template(4, 1, scheduler))
        plane.wait("some are larger", lambda: plane.lws.whole("vllm", 4), every=0.05)
        assert revisions(plane) & first, "the rollout was to be half-way"
        plane.lws.change("vllm", template(2, 2, scheduler))

        plane.wait("all are back", lambda: rolled_back(plane, first), 60)
        plane.wait("four groups left", lambda: len(plane.api.items(scheduler.groups)) == 4)
        plane.wait("recording is whole", recording.caught_up)

        assert astray(recording, scheduler) == []
        groups = [version for version in recording.of(scheduler.groups) if version.change == ADDED]
        assert {int(group.body["metadata"]["labels"][INDEX]) for group in groups} == {0, 1, 2, 3, 4, 5}
        assert {scheduler.minimum_of(group.body) for group in groups} == {2, 4}
        assert len({group.name for group in groups}) == len({group.owner for group in groups}) == len(groups)

        plane.lws.delete("vllm")
        plane.wait("nothing left", lambda: not plane.lws.pods("vllm") and not plane.api.items(scheduler.groups))


@ON_ALL
def test_c07_a_replica_that_comes_and_goes_leaves_the_others_alone(roomy: ControlPlane, scheduler: Scheduler) -> None:
    """Its group is made once and gone with it; the groups of the others are not written to."""
    plane = roomy
    with Recording(plane, scheduler.groups) as recording:
        plane.lws.create("vllm", 3, 2, scheduler=scheduler.name, gpus=1)
        plane.wait("three replicas whole", lambda: settled(plane, 3, 2))
        plane.holds("nothing moves", lambda: settled(plane, 3, 2), 1)
        before, since = names(plane, scheduler), plane.audit.offset()
        plane.lws.scale("vllm", 4)
        plane.wait("a fourth", lambda: settled(plane, 4, 2))
        plane.holds("it stays", lambda: len(names(plane, scheduler)) == 4, 2)
        plane.lws.scale("vllm", 3)
        plane.wait("three groups left", lambda: names(plane, scheduler) == before)
        plane.holds("the same ones", lambda: names(plane, scheduler) == before, 2)
        assert not {name_of(event) for event in writes(plane, since)} & before
        assert len([version for version in recording.of(scheduler.groups) if version.change == ADDED]) == 4


def test_c09_old_and_new_replicas_ask_for_their_own_revisions_gpus(plane: ControlPlane) -> None:
    """One edit adds a replica and halves the GPUs: the old group's floor stays, the new one's is half of it."""
    plane.nodes.add(["n1", "n2"])
    plane.nodes.add(["n3"], gpus=4)
    with Recording(plane, PODS, STATEFUL_SETS, COSCHEDULING.groups) as recording:
        plane.lws.create("vllm", 1, 2, scheduler=COSCHEDULING.name, gpus=8, **rolling(partition=1, maxUnavailable=1))
        plane.wait("one replica whole", lambda: settled(plane, 1, 2))
        plane.lws.change("vllm", {"replicas": 2, **template(2, 4, COSCHEDULING)})
        plane.wait("two groups", lambda: len(floors(plane)) == 2)
        assert floors(plane) == {0: Numbers(2, 16), 1: Numbers(2, 8)}
        plane.holds("the new one waits", lambda: plane.lws.replicas("vllm") == {0: (2, 2), 1: (0, 2)}, 2)
        plane.wait("recording is whole", recording.caught_up)
        assert astray(recording, COSCHEDULING) == []


def revisions(plane: ControlPlane) -> set[str]:
    """Revisions that the pods are of."""
    return {pod["metadata"]["labels"][REVISION] for pod in plane.lws.pods("vllm")}


def moved(plane: ControlPlane, first: set[str]) -> int:
    """How many of the usual replicas have left their first revision."""
    leaders = [pod for name, pod in leaders_of(plane).items() if name in {f"vllm-{index}" for index in range(4)}]
    return sum(pod["metadata"]["labels"][REVISION] not in first for pod in leaders)


def leaders_of(plane: ControlPlane) -> dict[str, Json]:
    """Leader pods by name."""
    pods = plane.lws.pods("vllm")
    return {pod["metadata"]["name"]: pod for pod in pods if pod["metadata"]["labels"][WORKER_INDEX] == "0"}


def settled(plane: ControlPlane, replicas: int, size: int) -> bool:
    """Are there just so many replicas, all whole?"""
    return plane.lws.replicas("vllm") == dict.fromkeys(range(replicas), (size, size))


def rolled_back(plane: ControlPlane, first: set[str]) -> bool:
    """Are there four replicas of the first revision, whole as they were built, and nothing else?

    One that LWS 0.8.0 happened to rebuild of the first revision while the live size was 4 keeps its four pods: its
    revision is right, and nobody looks at its size.
    """
    leaders = {name: pod["metadata"]["labels"][REVISION] for name, pod in leaders_of(plane).items()}
    assert leaders == dict.fromkeys((f"vllm-{index}" for index in range(4)), *first)
    sizes = {index: plane.api.get(STATEFUL_SETS, f"vllm-{index}")["spec"]["replicas"] + 1 for index in range(4)}
    assert set(sizes.values()) <= {2, 4}
    assert plane.lws.replicas("vllm") == {index: (size, size) for index, size in sizes.items()}
    return True


def names(plane: ControlPlane, scheduler: Scheduler) -> set[str]:
    """Names of the groups."""
    return {group["metadata"]["name"] for group in plane.api.items(scheduler.groups)}


def floors(plane: ControlPlane) -> dict[int, Numbers]:
    """Each replica's numbers, by its index."""
    groups = plane.api.items(COSCHEDULING.groups)
    return {int(group["metadata"]["labels"][INDEX]): numbers_of(COSCHEDULING, group) for group in groups}
