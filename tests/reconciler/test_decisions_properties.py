"""What holds for every replica, whatever happened to its objects, and for every order in which they are seen."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.actions import Action, CreateGroup, DeletePod, PatchGroup, PatchPod
from reconciler.wanted import minimum_of
from schedulers.configuration import RECREATE, configuration_of
from tests.builders import JsonObject
from tests.reconciler.sights import (
    EXCLUSIVE,
    IN_TIME,
    LEADER,
    LEADER_READY,
    NATIVE,
    PROVIDERS,
    Plan,
    World,
    group,
    leader_worker_set,
    merged,
    pods_of,
    replica,
    worker_set,
    writes_of,
)

POD_CHANGES: list[JsonObject] = [
    {},
    {"spec": {"nodeName": "n1"}},
    {"spec": {"schedulingGates": [{"name": "example.com/hold"}]}},
    {"spec": {"schedulerName": "bespoke"}},
    {"spec": {"schedulerName": "volcano"}},
    {"spec": {"schedulingGroup": None}},
    {"spec": {"schedulingGroup": {"podGroupName": "theirs"}}},
    {"spec": {"priorityClassName": "high"}},
    {"spec": {"overhead": {"cpu": "250m"}}},
    {"status": {"phase": "Failed"}},
    {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}},
    {"metadata": {"labels": {"lockstep.dev/group": None}}},
    {"metadata": {"labels": {"lockstep.dev/gang": "off"}}},
    {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": None}}},
    {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/worker-index": "0"}}},
    {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "vllm-0-69fbc5554"}}},
    {"metadata": {"annotations": {"lockstep.dev/queue": "gold", "lockstep.dev/schedule-timeout": "x"}}},
]
LEADER_CHANGES = [change for change in POD_CHANGES if change.get("spec", {}).get("schedulerName") != "volcano"]
"""A leader of another scheduler of ours is another plan."""

GROUP_EDITS: list[JsonObject | None] = [
    None,
    {},
    {"spec": {"minMember": 1, "schedulingPolicy": {"gang": {"minCount": 9}}}},
    {"spec": {"minResources": {"memory": "1Gi"}, "theirs": {"x": 1}}},
    {"spec": {"schedulingPolicy": {"basic": {}}, "queue": "theirs"}},
    {"spec": None},
    {"metadata": {"labels": None}},
    {"metadata": {"labels": {"lockstep.dev/group": "x", "team": "blue"}}},
    {"metadata": {"ownerReferences": None}},
    {"metadata": {"ownerReferences": [{"kind": "Pod", "uid": "other", "controller": True}]}},
    {"metadata": {"labels": None, "ownerReferences": [{"kind": "Job", "uid": "other", "controller": True}]}},
    {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}},
    {"metadata": {"deletionTimestamp": "x", "finalizers": ["scheduling.k8s.io/podgroup-protection", "a/b"]}},
]
FOREIGN = range(9, 11)
"""Positions of the edits that make the group someone else's, or a dead leader's."""


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Plan, int]:
    """Draw a replica with anything that may have happened to it; gives the position of its group's edit, too."""
    size = draw(st.integers(1, 4))
    names = ["vllm-0", *(f"vllm-0-{i}" for i in range(1, size))]
    plan = Plan(
        provider=draw(st.sampled_from(PROVIDERS)),
        size=size,
        annotated=draw(st.integers(1, 4)),
        workers=draw(st.integers(0, size - 1)),
        stamped=draw(st.booleans()),
        worker_set=draw(st.booleans()),
        gpus=draw(st.integers(0, 8)),
        late=draw(st.sampled_from([IN_TIME, LEADER_READY, EXCLUSIVE])),
        changes={name: draw(st.sampled_from(LEADER_CHANGES if name == names[0] else POD_CHANGES)) for name in names},
    )
    position = draw(st.integers(0, len(GROUP_EDITS) - 1))
    edit = GROUP_EDITS[position]
    schedulers = {name: provider.name for provider in PROVIDERS for name in provider.scheduler_names}
    document = {
        "apiVersion": "x",
        "kind": "x",
        "schedulers": schedulers,
        "repair": draw(st.sampled_from(["report", RECREATE])),
    }
    world = World(*replica(**vars(plan)), configuration=configuration_of(document))
    if edit is not None:
        world.put(merged(group(Plan(provider=plan.provider, size=max(1, size), gpus=plan.gpus)), edit))
    return world, plan, position


@given(worlds())
def test_a_decision_is_the_same_each_time_and_leaves_nothing_to_do(drawn: tuple[World, Plan, int]) -> None:
    """Deterministic and idempotent: its writes carried out, the next decisions come to an end, and stay there."""
    world, _, _ = drawn
    assert world.decide() == world.decide()
    steps = 0
    while ("Pod", *LEADER) in world.objects and (writes := writes_of(world.decide().actions)):
        steps += 1
        assert steps < 6, writes
        for action in writes:
            if isinstance(action, PatchGroup | PatchPod | DeletePod | CreateGroup):
                world.carry_out(action)
        collect(world)


def collect(world: World) -> None:
    """Delete groups for good that are being deleted and that no finalizer holds."""
    for found in world.of_kind("PodGroup"):
        meta = found["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            world.remove(found)


@given(worlds())
def test_writes_stay_in_the_namespace_and_name_the_life_they_mean(drawn: tuple[World, Plan, int]) -> None:
    """Every write is in the leader's namespace; every change names the UID of the object it was made for."""
    world, _, _ = drawn
    for action in writes_of(world.decide().actions):
        assert not isinstance(action, str)
        assert getattr(action, "namespace", None) == LEADER[0]
        if isinstance(action, PatchGroup | PatchPod):
            kind = "PodGroup" if isinstance(action, PatchGroup) else "Pod"
            metadata: Any = action.body["metadata"]
            assert metadata["uid"] == world.objects[kind, action.namespace, action.name]["metadata"]["uid"]


@given(worlds())
def test_foreign_groups_are_never_touched(drawn: tuple[World, Plan, int]) -> None:
    """Not one byte of a group whose controller is someone else."""
    world, _, position = drawn
    writes = [action for action in writes_of(world.decide().actions) if isinstance(action, PatchGroup | CreateGroup)]
    if position in FOREIGN:
        assert writes == []


@given(worlds())
def test_the_minimum_is_never_above_the_pods_that_can_exist(drawn: tuple[World, Plan, int]) -> None:
    """Nor below one, nor above those that can still become members."""
    world, plan, _ = drawn
    sight = world.sight()
    size = plan.size if sight.worker_set is not None else plan.annotated
    assert size is not None
    for action in writes_of(world.decide().actions):
        if isinstance(action, CreateGroup | PatchGroup) and "spec" in action.body:
            spec: Any = action.body["spec"]
            found = minimum_of(spec, plan.provider.minimum)
            assert found is None or 1 <= found <= max(size, 1)


OWNED = {
    "native": {"schedulingPolicy", "priorityClassName"},
    "coscheduling": {"minMember", "minResources", "scheduleTimeoutSeconds"},
    "volcano": {"minMember", "minResources", "queue", "priorityClassName"},
}


@given(worlds())
def test_patches_hold_nothing_that_is_not_ours(drawn: tuple[World, Plan, int]) -> None:
    """Spec fields of the provider, our labels, the stamp's keys: no status, no annotation of others."""
    world, plan, _ = drawn
    for action in writes_of(world.decide().actions):
        if isinstance(action, PatchGroup):
            assert action.body.keys() <= {"metadata", "spec"}
            spec: Any = action.body.get("spec", {})
            metadata: Any = action.body["metadata"]
            assert spec.keys() <= OWNED[plan.provider.name]
            assert metadata.keys() <= {"uid", "resourceVersion", "labels", "finalizers", "ownerReferences"}
        if isinstance(action, PatchPod):
            assert action.body.keys() == {"metadata"}
            change: Any = action.body["metadata"]
            stamp = plan.provider.stamp(plan.group, leader=action.name == LEADER[1])
            assert change["labels"].keys() <= {"lockstep.dev/group", *stamp.labels}
            assert change["annotations"] == stamp.annotations


EVENTS = ("leader added", "StatefulSet added", "workers added", "LWS modified", "old leader deleted")


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_order_of_events_ends_in_the_same_groups(provider: Any) -> None:
    """The leader's successor, its StatefulSet, its workers, the LWS, the end of its predecessor: 120 orders."""
    ends = {final_groups(order, provider) for order in itertools.permutations(EVENTS)}
    assert len(ends) == 1
    [(name, owner, spec)] = json.loads(ends.pop())
    new = Plan(provider=provider, life=2, key="5" * 40, size=3)
    assert (name, owner) == (new.group, "pod/vllm-0/2")
    assert minimum_of(spec, provider.minimum) == 3


def final_groups(order: tuple[str, ...], provider: Any) -> str:
    """Play events in an order, with a decision after each; gives name, owner and spec of the groups at the end."""
    old = Plan(provider=provider, life=1, size=3, worker_set=False)
    new = Plan(provider=provider, life=2, key="5" * 40, size=3)
    world = World(*replica(**vars(old)))
    old_leader, old_group = pods_of(old)[0], group(Plan(provider=provider, size=3))
    world.put(old_group)
    leader, *workers = pods_of(new)
    lws = merged(leader_worker_set(new), {"spec": {"replicas": 5}})
    steps = {
        "leader added": lambda: world.put(leader),
        "StatefulSet added": lambda: world.put(worker_set(new)),
        "workers added": lambda: world.put(*workers),
        "LWS modified": lambda: world.put(lws),
        "old leader deleted": lambda: old_leader_goes(world, old_leader, old_group),
    }
    for event in order:
        steps[event]()
        if ("Pod", *LEADER) in world.objects:
            world.settle()
    made = world.of_kind("PodGroup")
    return json.dumps(
        [[obj["metadata"]["name"], obj["metadata"]["ownerReferences"][0]["uid"], obj["spec"]] for obj in made]
    )


def old_leader_goes(world: World, leader: JsonObject, owned: JsonObject) -> None:
    """Delete the old leader, unless its successor of the same name has taken its place; its group is collected."""
    if world.objects["Pod", *LEADER]["metadata"]["uid"] == leader["metadata"]["uid"]:
        world.remove(leader)
    world.remove(owned)


@given(st.permutations(PROVIDERS), st.integers(1, 3))
@settings(max_examples=20)
def test_replicas_of_many_schedulers_do_not_touch_each_other(providers: list[Any], size: int) -> None:
    """Each gets one group of its own kind, in any order."""
    plans = [Plan(provider=provider, index=i, size=size, lws=f"set{i}") for i, provider in enumerate(providers)]
    world = World(*(obj for plan in plans for obj in replica(**vars(plan))))
    for plan in plans:
        made: list[Action] = world.settle((LEADER[0], plan.leader_name))
        assert [(type(action), getattr(action, "kind", None)) for action in made] == [
            (CreateGroup, plan.provider.kinds[0])
        ]
    assert len(world.of_kind("PodGroup")) == len(plans)
    assert NATIVE in providers
