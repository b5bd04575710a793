"""The group object of a replica that has members: made, repaired, waited for, or left alone."""

import msgspec
import pytest

from reconciler.actions import Action, CreateGroup, LookAgain, PatchGroup, Say
from reconciler.decisions import decide
from reconciler.wanted import owner_reference
from tests.builders import JsonObject
from tests.reconciler.sights import (
    COSCHEDULING,
    NATIVE,
    PROVIDERS,
    VOLCANO,
    Plan,
    World,
    first,
    group,
    merged,
    replica,
    said,
    serve_nothing,
    writes_of,
)

GROUP = Plan().group
TITLE = f"podgroups.scheduling.k8s.io/v1beta1 {GROUP}"
DELETED = {"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}}
OLD_OWNER = {
    "metadata": {"ownerReferences": [{"kind": "Pod", "name": "vllm-0", "uid": "pod/vllm-0/0", "controller": True}]}
}
FOREIGN = {
    "metadata": {
        "labels": None,
        "ownerReferences": [{"kind": "LeaderWorkerSet", "name": "vllm", "uid": "lws/vllm", "controller": True}],
    }
}
PROTECTION = "scheduling.k8s.io/podgroup-protection"


def actions_with(edit: JsonObject, plan: Plan | None = None) -> list[Action]:
    """Decide about a usual replica whose group was changed."""
    plan = plan or Plan()
    return list(World(*replica(provider=plan.provider), merged(group(plan), edit)).decide().actions)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_group_is_made_once(provider: object) -> None:
    """One write, and then nothing more to do."""
    world = World(*replica(provider=provider))
    assert [type(action) for action in world.settle()] == [CreateGroup]
    assert world.decide().actions == ()


def test_a_wrong_minimum_is_repaired() -> None:
    """By a patch that names the object's UID and nothing but the minimum (C27)."""
    plan = Plan()
    live = group(plan)
    patch = {"metadata": {"uid": live["metadata"]["uid"]}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    [action] = actions_with({"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
    assert action == PatchGroup(NATIVE.kinds[0], "team-a", GROUP, patch)


IN_THE_WAY: dict[str, tuple[JsonObject, list[Action]]] = {
    "someone else's": (FOREIGN, [Say("GroupOwnedByOther", f"{TITLE}: is not ours, and is left as it is", GROUP)]),
    "of a dead leader": (OLD_OWNER, [LookAgain(1.0, "the group of a dead leader is still there")]),
    "deleted": (DELETED, [LookAgain(1.0, "a deleted group is still there")]),
    "deleted, held by someone else": (
        merged(DELETED, {"metadata": {"finalizers": ["example.com/mine"]}}),
        [LookAgain(1.0, "a deleted group is still there")],
    ),
}


@pytest.mark.parametrize(("edit", "actions"), IN_THE_WAY.values(), ids=IN_THE_WAY.keys())
def test_a_group_in_the_way_is_waited_for_with_its_own_reason(edit: JsonObject, actions: list[Action]) -> None:
    """An object of the right name is not yet ours, and never counts as ready (C05, C46)."""
    assert actions_with(edit) == actions


def test_a_deleted_group_that_is_still_needed_is_let_go() -> None:
    """Only the scheduler's own finalizer is taken off, for the version that was seen; others stay."""
    edit = merged(DELETED, {"metadata": {"finalizers": ["example.com/mine", PROTECTION]}})
    patched, again = actions_with(edit)
    assert isinstance(patched, PatchGroup)
    metadata = patched.body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["finalizers"] == ["example.com/mine"]
    assert metadata.keys() == {"uid", "resourceVersion", "finalizers"}
    assert again == LookAgain(1.0, "a deleted group is still there")


def test_the_last_finalizer_is_taken_off_with_its_list() -> None:
    """`null` takes the field away."""
    patched = actions_with(merged(DELETED, {"metadata": {"finalizers": [PROTECTION]}}))[0]
    assert isinstance(patched, PatchGroup)
    metadata = patched.body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["finalizers"] is None


def test_a_group_whose_owner_was_taken_off_gets_it_back() -> None:
    """Else it would neither be repaired nor collected with its leader."""
    world = World(*replica(), merged(group(Plan()), {"metadata": {"ownerReferences": None}}))
    [action] = world.settle()
    assert isinstance(action, PatchGroup)
    [made] = world.of_kind("PodGroup")
    assert made["metadata"]["ownerReferences"] == [owner_reference(world.sight().leader)]


def test_a_group_whose_label_was_taken_off_gets_it_back() -> None:
    """Its owner says that it is ours."""
    world = World(*replica(), merged(group(Plan()), {"metadata": {"labels": None}}))
    assert len(world.settle()) == 1
    assert world.of_kind("PodGroup")[0]["metadata"]["labels"]["lockstep.dev/group"] == GROUP


def test_a_template_that_asks_for_no_quantity_is_told() -> None:
    """With the field's path; no group is made of a guess."""
    containers = [{"name": "vllm", "resources": {"requests": {"cpu": "8x"}}}]
    world = World(*replica(changes={"vllm-0": {"spec": {"containers": containers}}}))
    problem = 'leader.spec.containers[0].resources.requests[cpu]: must be a quantity, got "8x"'
    assert world.decide().actions == (Say("BadTemplate", f"no group is made: {problem}", problem),)


def test_a_kind_that_is_not_served_is_told() -> None:
    """Once for each scheduler; the replica's pods wait, and nothing is written."""
    world = World(*replica())
    kinds = ", ".join(kind.title for kind in NATIVE.kinds)
    message = f"the cluster serves none of {kinds}: no group is made"
    found = decide(world.sight(), world.configuration, serve_nothing)
    assert found.actions == (Say("GroupKindNotServed", message, "native"),)


def test_words_that_a_scheduler_can_not_honour_are_told() -> None:
    """Each once, beside the group that is made all the same."""
    words = {"lockstep.dev/queue": "gold", "lockstep.dev/schedule-timeout": "soon"}
    actions = World(*replica(provider=COSCHEDULING, lws_annotations=words)).decide().actions
    rule = "be a whole number of seconds of at least 1"
    path = "leaderworkerset.metadata.annotations[lockstep.dev/schedule-timeout]"
    problem = f'{path}: must {rule}, got "soon"'
    nearest = "the nearest is an ElasticQuota of the namespace"
    message = f"lockstep.dev/queue: Coscheduling (scheduler-plugins) has nothing of the kind; {nearest}"
    assert isinstance(actions[0], CreateGroup)
    assert actions[1:] == (Say("BadWord", problem, problem), Say("WordNotHonoured", message, "queue"))


def test_a_word_that_the_api_server_drops_is_told() -> None:
    """Volcano before v1.14 knows no tier names: the field is pruned, and the group is not fought over."""
    world = World(*replica(provider=VOLCANO, lws_annotations={"lockstep.dev/topology": "rack"}))
    world.settle()
    assert world.decide().actions == ()
    (live,) = world.of_kind("PodGroup")
    assert live["spec"].pop("networkTopology") == {"mode": "hard", "highestTierName": "rack"}
    ((reason, message),) = said(world.decide().actions)
    assert reason == "WordNotHonoured"
    assert message == (
        "lockstep.dev/topology: Volcano has not taken it: its group has no spec.networkTopology.highestTierName, "
        "so this version has no such field, or its feature gate is off, or the group is older than the word"
    )
    assert world.settle() == []


def test_an_update_of_what_is_written_once_is_not_fought_over() -> None:
    """Volcano's webhook may have rewritten the queue."""
    assert writes_of(actions_with({"spec": {"queue": "theirs"}}, Plan(provider=VOLCANO))) == []


def test_a_word_whose_gate_is_off_is_told_with_its_gate() -> None:
    """The field is not even sent; and a class or a topology that no group can have is refused."""
    world = World(*replica(lws_annotations={"lockstep.dev/topology": "zone"}))
    sight = msgspec.structs.replace(world.sight(), kept=frozenset({"disruptionMode"}))
    create, *told = decide(sight, world.configuration, first).actions
    assert isinstance(create, CreateGroup)
    assert create.body["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}}
    why = "the API server drops spec.schedulingConstraints (gate TopologyAwareWorkloadScheduling is off)"
    message = f"lockstep.dev/topology: {why}; the nearest is required pod affinity in the pod templates"
    assert told == [Say("WordNotHonoured", message, "topology")]


def test_a_word_that_no_group_can_have_is_refused() -> None:
    """kube-scheduler's groups have their pods' priority, and no topology that is only preferred."""
    words = {"lockstep.dev/topology": "zone,preferred", "lockstep.dev/priority-class": "high"}
    world = World(*replica(lws_annotations=words))
    actions = world.decide().actions
    never = "never places a group whose priority differs from its pods'"
    nearest = ("spec.priorityClassName in both pod templates", "preferred affinity in the pod templates")
    assert [message for _, message in said(actions)] == [
        f"lockstep.dev/priority-class: kube-scheduler {never}; the nearest is {nearest[0]}",
        f"lockstep.dev/topology: kube-scheduler knows no preferred topology; the nearest is {nearest[1]}",
    ]


def test_no_group_is_made_before_it_is_known_which_fields_are_kept() -> None:
    """They can't be added later."""
    world = World(*replica())
    sight = msgspec.structs.replace(world.sight(), kept=None)
    (wait,) = decide(sight, world.configuration, first).actions
    assert isinstance(wait, LookAgain)
