"""Gangs that Koordinator has miscounted are called out, and nobody else is."""

from typing import Any, Final

import pytest

from reconciler.actions import Action, LookAgain, PatchGroup, PatchPod
from reconciler.roll_calls import LONGEST_APART, SOON, turn_at
from schedulers.contract import Provider
from schedulers.koordinator import Koordinator
from schedulers.registry import all_providers
from tests.builders import JsonObject
from tests.reconciler.sights import PROVIDERS, Plan, World, group, replica, writes_of

KOORDINATOR: Final = all_providers()["koordinator"]
BOUND: Final[JsonObject] = {"spec": {"nodeName": "n1"}}


def world(**difference: Any) -> World:
    """A replica of two under Koordinator with the group that it should have; say what differs."""
    plan = Plan(provider=KOORDINATOR, **difference)
    return World(*replica(provider=KOORDINATOR, **difference), group(plan))


def calls(found: World, age: float) -> list[Action]:
    """Decide at an age, do it, and give what was written."""
    done = writes_of(found.decide(age=age).actions)
    for action in done:
        found.carry_out(action)
    return done


def roll_call(found: World) -> str:
    """Give what the group's annotation says."""
    return str(found.of_kind("PodGroup")[0]["metadata"]["annotations"][Koordinator.roll_call])


def test_a_complete_replica_that_waits_is_written_about_once_a_turn() -> None:
    """At once, again after 1, 2, 4 seconds and so on; between turns nothing is written, but the next is planned."""
    found = world()
    assert [type(action) for action in calls(found, 0.1)] == [PatchGroup]
    first = roll_call(found)
    assert calls(found, 0.9) == []
    [again] = [action for action in found.decide(age=0.9).actions if isinstance(action, LookAgain)]
    assert again.seconds == pytest.approx(0.1)
    assert [type(action) for action in calls(found, 1.0)] == [PatchGroup]
    assert roll_call(found) != first
    assert roll_call(found)[:10] == first[:10]


def test_the_call_is_all_that_is_written() -> None:
    """One annotation of ours, on the object of this UID."""
    [call] = calls(world(), 0.1)
    assert isinstance(call, PatchGroup)
    metadata: Any = call.body["metadata"]
    assert metadata.keys() == {"uid", "annotations"}
    assert call.body.keys() == {"metadata"}


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"workers": 0}, id="a worker is missing"),
        pytest.param({"changes": {"vllm-0": BOUND, "vllm-0-1": BOUND}}, id="all have a node"),
    ],
)
def test_who_does_not_wait_complete_is_not_called(difference: JsonObject) -> None:
    """A replica that waits for its own pods, or for nothing, costs no write."""
    assert calls(world(**difference), 60.0) == []


def test_a_pod_replaced_under_its_name_is_another_member() -> None:
    """The number of pods is the same, and yet it is a new roll."""
    found = world()
    calls(found, 0.1)
    before = roll_call(found)
    [worker] = [pod for pod in found.of_kind("Pod") if pod["metadata"]["name"] == "vllm-0-1"]
    worker["metadata"]["uid"] = "pod/vllm-0-1/2"
    calls(found, 0.2)
    assert roll_call(found) != before


def test_pods_are_written_once_for_each_group_object() -> None:
    """Soon placed replicas cost nothing; a group made again has every pod written again, those with a node included."""
    found = world(changes={"vllm-0": BOUND})
    assert PatchPod not in map(type, calls(found, SOON - 0.1))
    assert [type(action) for action in calls(found, SOON)] == [PatchGroup, PatchPod, PatchPod]
    assert PatchPod not in map(type, calls(found, SOON + 0.1))

    [old] = found.of_kind("PodGroup")
    found.remove(old)
    calls(found, SOON + 0.2)
    uid = found.of_kind("PodGroup")[0]["metadata"]["uid"]
    assert uid != old["metadata"]["uid"]
    calls(found, SOON + 0.3)
    assert {pod["metadata"]["annotations"][Koordinator.regrouped] for pod in found.of_kind("Pod")} == {uid}
    assert calls(found, SOON + 0.4) == []


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_schedulers_that_count_right_are_not_written_to(provider: Provider) -> None:
    """A replica that waits costs no write under any of them."""
    plan = Plan(provider=provider)
    assert writes_of(World(*replica(provider=provider), group(plan)).decide(age=100.0).actions) == []


def test_turns_grow_apart_up_to_a_limit() -> None:
    """Doubled from a second on, and then as rarely as the limit says, for ever."""
    ages: list[float] = []
    age = 0.0
    while len(ages) < 9:
        turn, age = turn_at(age)
        ages.append(age)
        assert turn == len(ages) - 1
    assert ages == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0]
    assert ages[-1] - ages[-2] == LONGEST_APART
