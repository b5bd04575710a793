"""Where KAI's podgrouper writes over our stamps, it is in charge: never two writers, and it is said what to do."""

from typing import Final

import pytest

from reconciler.states import NOT_OURS, judge
from schedulers.registry import all_providers
from tests.builders import JsonObject
from tests.reconciler.sights import COSCHEDULING, LEADER_READY, Plan, World, first, group, replica, said, writes_of

KAI: Final = all_providers()["kai"]
THEIRS: Final[JsonObject] = {"metadata": {"annotations": {"pod-group-name": "pg-vllm-64908d14-group-0"}}}
EVERYBODY: Final = {"vllm-0": THEIRS, "vllm-0-1": THEIRS}

MESSAGE: Final = (
    "KAI writes metadata.annotations[pod-group-name] over ours and puts pods into groups of its own: no groups are "
    "made for them; needs KAI from v0.15, which honours kai.scheduler/skip-podgrouper, or a podgrouper with "
    "--pod-label-selector"
)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(EVERYBODY, id="every pod"),
        pytest.param({"vllm-0": THEIRS}, id="the leader, its worker not yet"),
        pytest.param({"vllm-0-1": THEIRS}, id="a worker, its leader not yet"),
    ],
)
@pytest.mark.parametrize("made", [False, True], ids=["no group yet", "a group of ours"])
def test_the_first_pod_that_shows_it_ends_our_part(changes: dict[str, JsonObject], made: bool) -> None:  # noqa: FBT001
    """Nothing is written any more, the minimum of a group that we made before included; it is said once a set."""
    plan = Plan(provider=KAI)
    world = World(*replica(provider=KAI, changes=changes), *([group(plan)] if made else []))
    outcome = world.decide()
    assert writes_of(outcome.actions) == []
    assert said(outcome.actions) == [("StampsOverwritten", MESSAGE)]
    assert outcome.provider == "kai"


def test_status_says_who_is_in_charge() -> None:
    """The replica is not ours, and the reason is not the user's doing."""
    world = World(*replica(provider=KAI, changes=EVERYBODY))
    found = judge(world.sight(), world.configuration, first, None)
    assert found.state == NOT_OURS
    assert found.reason == MESSAGE.partition(": no groups")[0]


def test_a_group_that_a_user_named_is_still_the_users() -> None:
    """Without our label nothing was overwritten: we never stamped that pod."""
    mine: JsonObject = {"metadata": {"annotations": {"pod-group-name": "mine"}, "labels": {"lockstep.dev/group": None}}}
    world = World(*replica(provider=KAI, changes={"vllm-0": mine, "vllm-0-1": mine}))
    assert [reason for reason, _ in said(world.decide().actions)] == ["GroupOfOther"]


def test_a_scheduler_that_overwrites_nothing_has_strangers() -> None:
    """A worker in another group is named, and its replica goes on without it."""
    stranger: JsonObject = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "theirs"}}}
    world = World(*replica(provider=COSCHEDULING, changes={"vllm-0-1": stranger}))
    assert [reason for reason, _ in said(world.decide().actions)] == ["NotWithItsLeader"]


def test_late_workers_are_a_gang_only_while_all_have_a_node() -> None:
    """KAI evicts the rest of a group that is short of its minimum: the minimum goes down with a worker that waits."""
    bound: JsonObject = {"spec": {"nodeName": "n1"}}

    def minimum(changes: dict[str, JsonObject], live: int) -> int:
        plan = Plan(provider=KAI, late=LEADER_READY)
        whole = group(plan, spec={"minMember": live})
        world = World(*replica(provider=KAI, late=LEADER_READY, changes=changes), whole)
        world.settle()
        return int(world.of_kind("PodGroup")[0]["spec"]["minMember"])

    assert minimum({"vllm-0": bound}, 1) == 1
    assert minimum({"vllm-0": bound, "vllm-0-1": bound}, 1) == 2
    assert minimum({"vllm-0": bound}, 2) == 1
