"""Pods that were admitted while the webhook was away."""

import msgspec
import pytest

from reconciler.actions import DeletePod, LookAgain, PatchPod, Say
from reconciler.decisions import Outcome
from schedulers.configuration import RECREATE, Configuration, default_configuration
from tests.builders import JsonObject
from tests.reconciler.sights import COSCHEDULING, LEADER, VOLCANO, Plan, World, replica, writes_of

RECREATES: Configuration = msgspec.structs.replace(default_configuration(), repair=RECREATE)
BOUND: JsonObject = {"spec": {"nodeName": "n1"}}
LEAVING: JsonObject = {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}}


def test_what_can_still_be_stamped_is_stamped_in_place() -> None:
    """Label and stamp by one patch that names the pod's UID, and one event for each pod."""
    world = World(*replica(provider=COSCHEDULING, stamped=False))
    labels = {"lockstep.dev/group": Plan().group, "scheduling.x-k8s.io/pod-group": Plan().group}
    assert world.decide() == Outcome(
        actions=(
            patch("vllm-0", labels),
            told("StampedLate", "vllm-0", "was admitted without its group, and has been stamped now"),
            patch("vllm-0-1", labels),
            told("StampedLate", "vllm-0-1", "was admitted without its group, and has been stamped now"),
        ),
        provider="coscheduling",
        unstamped=2,
    )


def test_after_the_stamp_comes_the_group() -> None:
    """The next decision sees members."""
    world = World(*replica(provider=VOLCANO, stamped=False))
    assert len(world.settle()) == 3
    assert world.decide().unstamped == 0
    assert [obj["metadata"]["name"] for obj in world.of_kind("PodGroup")] == [Plan().group]


def test_what_can_not_be_stamped_any_more_is_reported() -> None:
    """`spec.schedulingGroup` can be set at creation only: nothing is written, not even a group."""
    assert World(*replica(stamped=False)).decide() == Outcome(
        actions=tuple(
            told("UnstampedPod", name, "was admitted without its group, and kube-scheduler places it alone")
            for name in ("vllm-0", "vllm-0-1")
        ),
        provider="native",
        unstamped=2,
    )


def test_an_unstamped_worker_is_not_waited_for() -> None:
    """A group whose minimum counts a pod that can't join would wait for ever."""
    world = World(*replica(size=3, changes={"vllm-0-2": unstamped()}))
    world.settle()
    assert world.of_kind("PodGroup")[0]["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2


ENDED = {"being deleted": LEAVING, "finished": {"status": {"phase": "Succeeded"}}}


@pytest.mark.parametrize("change", ENDED.values(), ids=ENDED.keys())
def test_pods_that_end_are_left_alone(change: JsonObject) -> None:
    """Stamping or reporting them would come too late."""
    world = World(*replica(provider=COSCHEDULING, changes={"vllm-0-1": merged_unstamped(change)}))
    assert [action for action in world.decide().actions if isinstance(action, PatchPod | Say)] == []


@pytest.mark.parametrize("recreations", [0, 1, 5])
def test_unbound_pods_are_deleted_each_time_after_a_longer_wait(recreations: int) -> None:
    """5 s, 10 s, 20 s, …: the webhook may still be away. With the leader go its workers."""
    due = 5.0 * 2**recreations
    world = World(*replica(stamped=False), configuration=RECREATES)
    early = world.decide(age=due - 1, recreations=recreations).actions
    assert early[-1] == LookAgain(1.0, "waits before it recreates unstamped pods")
    assert writes_of(early) == []
    late = world.decide(age=due, recreations=recreations).actions
    assert writes_of(late) == [DeletePod("team-a", "vllm-0", "pod/vllm-0/1")]


def test_the_wait_between_recreations_has_an_end() -> None:
    """Ten minutes at most, however often."""
    world = World(*replica(stamped=False), configuration=RECREATES)
    assert writes_of(world.decide(age=600.0, recreations=2000).actions)


def test_only_the_unstamped_workers_are_deleted_when_the_leader_is_stamped() -> None:
    """A restart of the whole replica is not ours to cause."""
    world = World(*replica(size=3, changes={"vllm-0-2": unstamped()}), configuration=RECREATES)
    deleted = [action for action in world.decide().actions if isinstance(action, DeletePod)]
    assert deleted == [DeletePod("team-a", "vllm-0-2", "pod/vllm-0-2/1")]


def test_bound_pods_are_never_deleted() -> None:
    """They do their work, if alone."""
    world = World(*replica(stamped=False, changes={"vllm-0": BOUND, "vllm-0-1": BOUND}), configuration=RECREATES)
    assert writes_of(world.decide(age=1e6).actions) == []


def test_what_can_be_stamped_is_not_deleted() -> None:
    """Also with `repair: recreate`."""
    world = World(*replica(provider=COSCHEDULING, stamped=False), configuration=RECREATES)
    assert not [action for action in world.decide(age=1e6).actions if isinstance(action, DeletePod)]


def unstamped() -> JsonObject:
    """Take a native stamp off."""
    return {"spec": {"schedulingGroup": None}, "metadata": {"labels": {"lockstep.dev/group": None}}}


def merged_unstamped(change: JsonObject) -> JsonObject:
    """Take a coscheduling stamp off and change something else."""
    labels = {"lockstep.dev/group": None, "scheduling.x-k8s.io/pod-group": None}
    return change | {"metadata": change.get("metadata", {}) | {"labels": labels}}


def patch(pod: str, labels: JsonObject) -> PatchPod:
    """The patch that stamps a pod."""
    return PatchPod(LEADER[0], pod, {"metadata": {"uid": f"pod/{pod}/1", "labels": labels, "annotations": {}}})


def told(reason: str, pod: str, message: str) -> Say:
    """An event about a pod."""
    return Say(reason, f"pod team-a/{pod}: {message}", f"pod/{pod}/1")
