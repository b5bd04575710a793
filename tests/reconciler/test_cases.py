"""Public troubles of others that the reconciler meets again; each test says the repository and number."""

import itertools
import json
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.actions import CreateGroup, LookAgain, PatchGroup, Say
from reconciler.states import judge
from reconciler.wanted import minimum_of
from schedulers.contract import Provider
from tests.builders import LWS, NAMESPACE, JsonObject
from tests.reconciler.sights import (
    COSCHEDULING,
    EXCLUSIVE,
    LEADER,
    LEADER_READY,
    NATIVE,
    PROVIDERS,
    VOLCANO,
    Plan,
    World,
    first,
    group,
    leader_worker_set,
    merged,
    pods_of,
    replica,
    revision,
    said,
    worker_set,
    writes_of,
)

OBSERVED: Final = Path(__file__).parents[1] / "data" / "observed"
BY_NAME: Final = [pytest.param(provider, id=provider.name) for provider in PROVIDERS]
WITH_FLOOR: Final = [pytest.param(provider, id=provider.name) for provider in (COSCHEDULING, VOLCANO)]


def plans(count: int, **difference: Any) -> list[Plan]:
    """Plan replicas 0 to `count` - 1, each with a key of its own."""
    return [Plan(index=i, key=f"{i:040x}", **difference) for i in range(count)]


def settle_all(world: World, replicas: list[Plan]) -> list[JsonObject]:
    """Settle every replica; gives the groups."""
    for plan in replicas:
        world.settle((NAMESPACE, plan.leader_name))
    return world.of_kind("PodGroup")


def minimum_in(obj: JsonObject, provider: Provider) -> int | None:
    return minimum_of(obj["spec"], provider.minimum)


@pytest.mark.parametrize("provider", BY_NAME)
def test_c01_each_replica_has_a_group_of_its_whole_size(provider: Provider) -> None:
    """kubernetes-sigs/lws#167, #810: 4 replicas of 4 make 4 groups of 4, each named by exactly the 4 pods of one."""
    replicas = plans(4, provider=provider, size=4)
    world = World(*(obj for plan in replicas for obj in replica(**vars(plan))))
    made = settle_all(world, replicas)
    assert {obj["metadata"]["name"]: minimum_in(obj, provider) for obj in made} == {plan.group: 4 for plan in replicas}
    members: dict[str, set[str]] = {}
    for plan in replicas:
        for pod in world.sight((NAMESPACE, plan.leader_name)).pods:
            claim = provider.claim(pod)
            assert claim is not None
            members.setdefault(claim.group, set()).add(pod.labels[f"{LWS}group-index"])
    assert {name: len(indexes) for name, indexes in members.items()} == {plan.group: 1 for plan in replicas}


@pytest.mark.parametrize("provider", WITH_FLOOR)
def test_c02_leader_ready_starts_with_the_whole_floor(provider: Provider) -> None:
    """kubernetes-sigs/lws#379: minimum 1 while the leader has to go first, resources of all 4 pods."""
    world = World(*replica(provider=provider, size=4, late=LEADER_READY, worker_set=False))
    world.settle()
    [made] = world.of_kind("PodGroup")
    assert minimum_in(made, provider) == 1
    assert made["spec"]["minResources"] == {"cpu": "4", "nvidia.com/gpu": "32"}


def test_c05_a_stale_group_of_the_right_name_is_not_ready() -> None:
    """kubernetes-sigs/lws#1054: waited for, and made anew for the living leader once it is gone.

    With LWS's own key a successor computes the name of its predecessor's group.
    """
    world = World(*replica(life=2), group(Plan(life=1)))
    assert world.decide().actions == (LookAgain(1.0, "the group of a dead leader is still there"),)
    world.remove(*world.of_kind("PodGroup"))
    world.settle()
    assert [obj["metadata"]["ownerReferences"][0]["uid"] for obj in world.of_kind("PodGroup")] == ["pod/vllm-0/2"]


def test_c06_surge_replicas_have_groups_too() -> None:
    """kubernetes-sigs/kueue#8769: with 3 replicas and leaders 0 to 4 there are 5 groups."""
    replicas = plans(5)
    world = World(*(obj for plan in replicas for obj in replica(**vars(plan))))
    world.put(merged(leader_worker_set(Plan()), {"spec": {"replicas": 3}}))
    assert len(settle_all(world, replicas)) == 5


def test_c07_a_leader_that_comes_and_goes_leaves_the_others_alone() -> None:
    """kubernetes-sigs/lws#778: its group is made once; the others' versions do not change."""
    replicas = plans(4)
    world = World(*(obj for plan in replicas[:3] for obj in replica(**vars(plan))))
    settle_all(world, replicas[:3])
    versions = {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in world.of_kind("PodGroup")}
    passing = [*pods_of(replicas[3]), worker_set(replicas[3])]
    world.put(*passing)
    made = world.settle((NAMESPACE, replicas[3].leader_name))
    assert [type(action) for action in made] == [CreateGroup]
    world.remove(*passing, world.objects["PodGroup", NAMESPACE, replicas[3].group])
    writes = world.writes
    settle_all(world, replicas[:3])
    assert world.writes == writes
    assert {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in world.of_kind("PodGroup")} == versions


@pytest.mark.parametrize("provider", BY_NAME)
def test_c08_two_sizes_live_side_by_side(provider: Provider) -> None:
    """kubernetes-sigs/lws#576: size 2 to 4, half done: the old revision's group keeps 2, the new one's has 4."""
    old = Plan(provider=provider, index=0, size=2, annotated=4)
    new = Plan(provider=provider, index=1, size=4, revision="7d6d8799b", key="7" * 40)
    world = World(*replica(**vars(old)), *replica(**vars(new)))
    made = {obj["metadata"]["name"]: minimum_in(obj, provider) for obj in settle_all(world, [old, new])}
    assert made == {old.group: 2, new.group: 4}


@pytest.mark.parametrize("provider", BY_NAME)
def test_c08_a_minimum_is_never_above_what_is_built(provider: Provider) -> None:
    """A guess from the live size is corrected as soon as the StatefulSet says what is built."""
    guess = Plan(provider=provider, size=2, annotated=4)
    world = World(*pods_of(Plan(provider=provider, size=2, annotated=4, worker_set=False)), leader_worker_set(guess))
    world.put(revision(guess))
    world.settle()
    assert minimum_in(world.of_kind("PodGroup")[0], provider) == 4
    world.put(worker_set(guess), *pods_of(guess)[1:])
    world.settle()
    assert minimum_in(world.of_kind("PodGroup")[0], provider) == 2


@pytest.mark.parametrize("provider", WITH_FLOOR)
def test_c09_each_revision_has_its_own_floor(provider: Provider) -> None:
    """kubernetes-sigs/lws#717: the new group asks for 4 GPUs, the old one still for 8."""
    old = Plan(provider=provider, index=0, size=1, gpus=8, worker_set=False)
    new = Plan(provider=provider, index=1, size=1, gpus=4, worker_set=False, revision="7d6d8799b", key="7" * 40)
    world = World(*replica(**vars(old)), *replica(**vars(new)))
    made = settle_all(world, [old, new])
    floors = {obj["metadata"]["name"]: obj["spec"]["minResources"]["nvidia.com/gpu"] for obj in made}
    assert floors == {old.group: "8", new.group: "4"}


def test_c10_a_dying_worker_of_the_old_leader_is_nobodys_member() -> None:
    """kubernetes-sigs/lws#804: it neither counts for the new replica nor keeps its group from what it should be."""
    new = Plan(life=2, size=3, workers=1, key="7" * 40, late=LEADER_READY)
    dying = {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}, "spec": {"nodeName": "n1"}}
    old_worker = merged(pods_of(Plan(life=1, size=3))[2], dying)
    world = World(*replica(**vars(new)), old_worker)
    world.settle()
    [made] = world.of_kind("PodGroup")
    assert (made["metadata"]["name"], minimum_in(made, NATIVE)) == (new.group, 1)
    version = made["metadata"]["resourceVersion"]
    world.remove(old_worker)
    world.settle()
    assert world.of_kind("PodGroup")[0]["metadata"]["resourceVersion"] == version


def test_c11_a_collapsed_delete_and_add_ends_in_the_same_group() -> None:
    """kubernetes-sigs/lws#998: with or without the DELETE, the group belongs to the new leader's UID."""
    ends = []
    for sees_delete in (True, False):
        world = World(*replica(life=1))
        world.settle()
        [old_group] = world.of_kind("PodGroup")
        if sees_delete:
            world.remove(world.objects["Pod", *LEADER])
        world.put(*replica(life=2, key="7" * 40))
        world.settle()
        world.remove(old_group)
        world.settle()
        ends.append(
            [(o["metadata"]["name"], o["metadata"]["ownerReferences"], o["spec"]) for o in world.of_kind("PodGroup")]
        )
    assert ends[0] == ends[1]
    assert [owners[0]["uid"] for _, owners, _ in ends[0]] == ["pod/vllm-0/2"]


def test_c12_pending_without_a_node_is_not_pending_with_one() -> None:
    """kubernetes-sigs/lws#1056: no group yet, waiting for capacity, placed and running are four states."""
    bound: JsonObject = {"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    running = merged(bound, {"status": ready})
    worlds = [World(*replica(changes={"vllm-0": pod, "vllm-0-1": pod})) for pod in ({}, {}, bound, running)]
    for world in worlds[1:]:
        world.settle()
    states = [judge(world.sight(), world.configuration, first, {}).state for world in worlds]
    assert states == ["no group", "waits for capacity", "placed", "running"]


TOPOLOGY: dict[str, tuple[JsonObject, int]] = {
    "exclusive-topology defers the workers": (EXCLUSIVE.annotations, 1),
    "subgroup-exclusive-topology alone does not": ({f"{LWS}subgroup-exclusive-topology": "zone"}, 4),
}


@pytest.mark.parametrize("provider", WITH_FLOOR)
@pytest.mark.parametrize(("annotations", "minimum"), TOPOLOGY.values(), ids=TOPOLOGY.keys())
def test_c13_exclusive_topology_is_a_late_start(provider: Provider, annotations: dict[str, str], minimum: int) -> None:
    """kubernetes-sigs/lws#540: a minimum of the size could never be met; the floor is the whole replica's."""
    world = World(*replica(provider=provider, size=4, worker_set=False, lws_annotations=annotations))
    world.settle()
    [made] = world.of_kind("PodGroup")
    assert (minimum_in(made, provider), made["spec"]["minResources"]["nvidia.com/gpu"]) == (minimum, "32")


def test_c16_a_worker_taken_for_a_leader_gets_no_group() -> None:
    """kubernetes-sigs/lws#391: worker-index "0" and a leader-name: a warning, and no more groups than true leaders."""
    nested = {"metadata": {"labels": {f"{LWS}worker-index": "0"}}}
    world = World(*replica(size=3, changes={"vllm-0-1": nested}))
    assert "WorkerLooksLikeLeader" in [reason for reason, _ in said(world.decide().actions)]
    assert world.cache().leaders() == [LEADER]
    assert world.cache().sight((NAMESPACE, "vllm-0-1"), NATIVE.kinds[0], age=10.0, recreations=0) is None
    world.settle()
    assert len(world.of_kind("PodGroup")) == 1


def test_c17_a_group_with_another_controller_is_never_written() -> None:
    """kubernetes-sigs/lws#1075: never two writers; said once, whatever its spec."""
    theirs = {"labels": None, "ownerReferences": [{"kind": "LeaderWorkerSet", "uid": "lws/vllm", "controller": True}]}
    edit = {"metadata": theirs, "spec": {"schedulingPolicy": {"gang": {"minCount": 7}}}}
    actions = World(*replica(), merged(group(Plan()), edit)).decide().actions
    assert [type(action) for action in actions] == [Say]
    assert [reason for reason, _ in said(actions)] == ["GroupOwnedByOther"]


@pytest.mark.parametrize("name", ["lws-provider-leader-pod", "lws-provider-exclusive-topology-leader"])
def test_c17_pods_of_lws_own_provider_are_left_alone(name: str) -> None:
    """As LWS's Volcano provider really stamps them: an event, no write."""
    pod = json.loads((OBSERVED / "volcano" / f"{name}.json").read_text())
    world = World(pod | {"kind": "Pod"})
    actions = world.decide((pod["metadata"]["namespace"], pod["metadata"]["name"])).actions
    assert [reason for reason, _ in said(actions)] == ["GroupOfOther"]
    assert writes_of(actions) == []


@pytest.mark.parametrize("provider", BY_NAME)
def test_c19_a_replica_from_before_us_is_judged_by_its_pods(provider: Provider) -> None:
    """kubernetes-sigs/kueue#13968: LWS and StatefulSets carry no mark of ours; a pod recreated since does."""
    plan = Plan(provider=provider)
    world = World(*replica(**vars(plan)))
    for kind in ("LeaderWorkerSet", "StatefulSet", "ControllerRevision"):
        assert "lockstep.dev" not in json.dumps(world.of_kind(kind))
    world.settle()
    assert [obj["metadata"]["name"] for obj in world.of_kind("PodGroup")] == [plan.group]


SKIPPED: dict[str, JsonObject] = {
    "another scheduler": {"spec": {"schedulerName": "bespoke"}},
    "opted out": {"metadata": {"labels": {"lockstep.dev/gang": "off"}}},
    "Kueue-like group of someone else": {
        "spec": {"schedulingGroup": {"podGroupName": "theirs"}},
        "metadata": {
            "labels": {"scheduling.x-k8s.io/pod-group": "theirs"},
            "annotations": {"scheduling.k8s.io/group-name": "theirs"},
        },
    },
}


@pytest.mark.parametrize("provider", BY_NAME)
@pytest.mark.parametrize("change", SKIPPED.values(), ids=SKIPPED.keys())
def test_c20_leader_and_worker_share_one_decision(provider: Provider, change: JsonObject) -> None:
    """kubernetes-sigs/kueue#4936: what keeps the leader away keeps its workers away, stamped or not."""
    unstamped = Plan(provider=provider, stamped=False, changes={"vllm-0": change, "vllm-0-1": change})
    world = World(*replica(**vars(unstamped)))
    assert writes_of(world.decide().actions) == []
    assert world.of_kind("PodGroup") == []


def test_c25_two_schedulers_in_one_cluster() -> None:
    """kubernetes-sigs/lws#619: each LWS has groups of its own scheduler, and none of the other's fields."""
    a, b = Plan(provider=VOLCANO, lws="a"), Plan(provider=COSCHEDULING, lws="b")
    world = World(*replica(**vars(a)), *replica(**vars(b)))
    made = {o["metadata"]["name"]: (o["apiVersion"], sorted(o["spec"])) for o in settle_all(world, [a, b])}
    assert made == {
        a.group: ("scheduling.volcano.sh/v1beta1", ["minMember", "minResources", "queue"]),
        b.group: ("scheduling.x-k8s.io/v1alpha1", ["minMember", "minResources", "scheduleTimeoutSeconds"]),
    }


@pytest.mark.parametrize("provider", BY_NAME)
def test_c27_an_edit_or_deletion_is_repaired_and_others_fields_survive(provider: Provider) -> None:
    """ray-project/kuberay#5205: back to what it should be, with what others wrote still there."""
    world = World(*replica(provider=provider, size=4))
    world.settle()
    edit: JsonObject = {"metadata": {"annotations": {"team": "blue"}}, "status": {"phase": "Pending"}}
    below: Any = 2
    for step in reversed(provider.minimum.split(".")):
        below = {step: below}
    world.put(merged(world.of_kind("PodGroup")[0], edit | {"spec": below}))
    assert [type(action) for action in world.settle()] == [PatchGroup]
    [found] = world.of_kind("PodGroup")
    assert minimum_in(found, provider) == 4
    assert found["metadata"]["annotations"] == {"team": "blue"}
    assert found["status"] == {"phase": "Pending"}
    world.remove(found)
    assert [type(action) for action in world.settle()] == [CreateGroup]


def test_c35_a_group_is_owned_by_its_leader() -> None:
    """volcano-sh/volcano#755: leader pod, its UID, same namespace, `controller: true`: it goes with the leader."""
    [made] = settle_all(World(*replica()), [Plan()]) or [{}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": "pod/vllm-0/1", "controller": True}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert made["metadata"]["namespace"] == NAMESPACE


def test_c46_each_mismatch_of_an_existing_group_has_its_own_reason() -> None:
    """kubernetes-sigs/jobset#1250: a group that exists is not taken for ours, and never counts as ready."""
    edits: list[JsonObject] = [
        {"metadata": {"labels": None, "ownerReferences": [{"kind": "Pod", "uid": "x", "controller": True}]}},
        {"metadata": {"ownerReferences": [{"kind": "Pod", "uid": "x", "controller": True}]}},
        {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}},
        {"spec": {"schedulingPolicy": {"gang": {"minCount": 9}}}},
    ]
    answers = [World(*replica(), merged(group(Plan()), edit)).decide().actions for edit in edits]
    assert all(answers)
    assert all(one != other for one, other in itertools.combinations(answers, 2))
