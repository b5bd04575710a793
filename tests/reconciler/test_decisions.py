"""What is done about one replica: whose it is, what is said, what is counted."""

import pytest

from reconciler.actions import Say
from reconciler.decisions import Outcome
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import COSCHEDULING, LEADER, NATIVE, Plan, World, group, merged, replica, said, writes_of

NOT_OURS: dict[str, JsonObject] = {
    "a scheduler that nobody configured": {"spec": {"schedulerName": "bespoke"}},
    "opted out": {"metadata": {"labels": {"lockstep.dev/gang": "off"}}},
    "being deleted": {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}},
    "finished": {"status": {"phase": "Failed"}},
}


@pytest.mark.parametrize("change", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_leaders_that_are_not_ours_are_left_alone(change: JsonObject) -> None:
    """Not one action, and nothing is counted."""
    assert World(*replica(changes={"vllm-0": change})).decide() == Outcome()


CLAIMS: dict[str, tuple[JsonObject, str]] = {
    "a group of the user's": (
        {"spec": {"schedulingGroup": {"podGroupName": "mine"}}},
        "spec.schedulingGroup.podGroupName",
    ),
    "LWS's own Volcano provider, under another scheduler": (
        {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "vllm-0-69fbc5554"}}},
        "metadata.annotations[scheduling.k8s.io/group-name]",
    ),
}


@pytest.mark.parametrize(("change", "path"), CLAIMS.values(), ids=CLAIMS.keys())
def test_with_someone_elses_group_lockstep_stands_down(change: JsonObject, path: str) -> None:
    """Never two writers: one event for the LWS, and no write."""
    message = f"pods carry {path} of someone else: no native groups are made for them"
    found = World(*replica(changes={"vllm-0": change})).decide()
    assert found == Outcome((Say("GroupOfOther", message, "native", type="Normal"),), "native")


def test_dropped_stamps_are_said_once_for_each_lws() -> None:
    """The gate is off for all pods alike: no group is made, the pods run as without us."""
    dropped = {"spec": {"schedulingGroup": None}}
    world = World(*replica(changes={"vllm-0": dropped, "vllm-0-1": dropped}))
    message = "the API server drops spec.schedulingGroup (gate GenericWorkload is off): pods are placed one by one"
    assert world.decide() == Outcome((Say("StampDropped", message, "native"),), "native", dropped=2)


STRANGERS: dict[str, tuple[JsonObject, str]] = {
    "another scheduler": (
        {"spec": {"schedulerName": "bespoke", "schedulingGroup": None}},
        "is of another scheduler or group",
    ),
    "opted out": (
        {
            "spec": {"schedulingGroup": None},
            "metadata": {"labels": {"lockstep.dev/gang": "off", "lockstep.dev/group": None}},
        },
        "is opted out",
    ),
}


@pytest.mark.parametrize(("change", "what"), STRANGERS.values(), ids=STRANGERS.keys())
def test_a_worker_that_does_not_follow_its_leader_is_named(change: JsonObject, what: str) -> None:
    """And not waited for."""
    world = World(*replica(changes={"vllm-0-1": change}))
    message = f"pod team-a/vllm-0-1: {what}, unlike its leader, which is in native's"
    assert said(world.decide().actions) == [("NotWithItsLeader", message)]
    world.settle()
    assert world.of_kind("PodGroup")[0]["spec"]["schedulingPolicy"]["gang"]["minCount"] == 1


WAITING: dict[str, tuple[JsonObject, bool]] = {
    "a member without a node": ({}, True),
    "all bound": ({"spec": {"nodeName": "n1"}}, False),
    "held by a gate": ({"spec": {"schedulingGates": [{"name": "example.com/hold"}]}}, False),
}


@pytest.mark.parametrize(("change", "waiting"), WAITING.values(), ids=WAITING.keys())
def test_replicas_that_wait_for_their_scheduler_are_counted(change: JsonObject, *, waiting: bool) -> None:
    """With their group there: a touch of it may help them."""
    plan = Plan(provider=COSCHEDULING, changes={"vllm-0": change, "vllm-0-1": change})
    world = World(*replica(provider=COSCHEDULING, changes=plan.changes), group(plan))
    assert world.decide() == Outcome((), "coscheduling", waiting=waiting)


def test_without_a_group_nothing_waits_for_its_scheduler() -> None:
    """There is no object to touch."""
    assert not World(*replica(provider=COSCHEDULING)).decide().waiting


def test_workers_that_look_like_leaders_are_named() -> None:
    """API servers without StatefulSet start ordinals make them (kubernetes-sigs/lws#391)."""
    world = World(*replica(changes={"vllm-0-1": {"metadata": {"labels": {f"{LWS}worker-index": "0"}}}}))
    message = "pod team-a/vllm-0-1: has the leader's worker-index and is a worker; no group is made for it"
    assert said(world.decide().actions) == [("WorkerLooksLikeLeader", message)]
    assert len(writes_of(world.decide().actions)) == 1


def test_a_claim_is_read_before_anything_else() -> None:
    """Pods of LWS's native mode that are not ours get no event about a missing stamp."""
    theirs = {
        "spec": {"schedulingGroup": {"podGroupName": "theirs"}},
        "metadata": {"labels": {"lockstep.dev/group": None}},
    }
    found = World(*replica(stamped=False, changes={"vllm-0": theirs, "vllm-0-1": theirs})).decide()
    assert [reason for reason, _ in said(found.actions)] == ["GroupOfOther"]
    assert found.unstamped == 0


def test_the_same_sight_gives_the_same_answer() -> None:
    """Level-triggered: nothing is remembered between decisions."""
    edit = {"spec": {"schedulingPolicy": {"gang": {"minCount": 7}}}}
    world = World(*replica(), merged(group(Plan()), edit))
    assert world.decide(LEADER) == world.decide(LEADER)
    assert NATIVE.name == world.decide().provider
