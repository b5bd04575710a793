"""Objects that groups of several replicas share, and replicas that need each other."""

from typing import Any

import msgspec
import pytest

from reconciler.actions import Action, CreateGroup, DeleteShared, LookAgain, PatchGroup, Say
from reconciler.cache import Cache
from reconciler.decisions import decide
from reconciler.sharing import Leftovers
from schedulers.configuration import Configuration, default_configuration
from schedulers.contract import GroupKind
from schedulers.native_objects import COMPOSITE, V1ALPHA2, V1BETA1, workload_kind
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.sights import LEADER_READY, Plan, World, group, merged, replica, said, writes_of

WORKLOADS = workload_kind(V1BETA1)
DS = "disaggregatedset.x-k8s.io"
MARKS = {f"{DS}/name": "serve", f"{DS}/slice": "0", f"{DS}/revision": "5f6c"}


def chosen(**options: str) -> Configuration:
    """Build a configuration with choices about kube-scheduler."""
    return Configuration(default_configuration().schedulers, options={"native": frozenset(options.items())})


def shared_world(*objects: JsonObject, **options: str) -> World:
    """Build a world where Workloads are wanted."""
    return World(*objects, configuration=chosen(**(options or {"groups": "workload"})))


def made(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    """Kind and name of everything that is created."""
    return [(action.kind.kind, action.name) for action in actions if isinstance(action, CreateGroup)]


def test_a_replica_brings_the_workload_of_its_revision() -> None:
    """First the Workload, owned by the LWS, then the PodGroup that names it; a second replica finds it there."""
    world = shared_world(*replica(size=3))
    first, second = [action for action in world.decide().actions if isinstance(action, CreateGroup)]
    reference = {"workloadName": first.name, "templateName": "replica"}
    assert first.kind == WORKLOADS
    assert first.body["metadata"] == {
        "name": first.name,
        "namespace": NAMESPACE,
        "labels": {
            "lockstep.dev/shared": first.name,
            "leaderworkerset.sigs.k8s.io/name": "vllm",
            "leaderworkerset.sigs.k8s.io/template-revision-hash": Plan().revision,
        },
        "ownerReferences": [
            {
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "name": "vllm",
                "uid": "lws/vllm",
                "controller": True,
            }
        ],
    }
    assert second.body["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "workloadRef": reference,
    }
    world.settle()
    world.put(*replica(size=3, index=1)[:-2])
    assert [kind for kind, _ in made(world.decide((NAMESPACE, "vllm-1")).actions)] == ["PodGroup"]


def test_another_revision_has_another_workload() -> None:
    """Two sizes live side by side in a rollout; each template says its own."""
    world = shared_world(*replica(size=2), *replica(size=4, index=1, revision="new"))
    for index in (0, 1):
        world.settle((NAMESPACE, f"vllm-{index}"))
    minimums = [
        item["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"]
        for item in world.of_kind("Workload")
    ]
    assert sorted(minimums) == [2, 4]


def test_late_workers_have_a_template_of_one_and_are_raised() -> None:
    """The template stays; the PodGroup's own minimum is what counts."""
    world = shared_world(*replica(size=2, late=LEADER_READY, workers=0))
    world.settle()
    assert template(world)["schedulingPolicy"] == {"gang": {"minCount": 1}}
    world.put(*replica(size=2, late=LEADER_READY)[:-2])
    (raised,) = writes_of(world.decide().actions)
    assert isinstance(raised, PatchGroup)
    assert raised.body["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}}


def template(world: World) -> Any:
    """The only template of the only Workload."""
    (workload,) = world.of_kind("Workload")
    (found,) = workload["spec"]["podGroupTemplates"]
    return found


def test_a_replica_that_is_not_as_its_revision_says_stands_alone() -> None:
    """LWS 0.8 builds replicas of old revisions with the live size: their template would be wrong."""
    built = replica(size=3)
    built[-1] = merged(built[-1], {"data": {"spec": {"leaderWorkerTemplate": {"size": 2}}}})
    world = shared_world(*built)
    assert [kind for kind, _ in made(world.decide().actions)] == ["PodGroup"]


def test_a_group_that_exists_keeps_standing_alone() -> None:
    """The choice was made after it: the field can't be added, and no Workload is made for nothing."""
    world = shared_world(*replica(), group(Plan()))
    assert writes_of(world.decide().actions) == []


TAKEN: dict[str, tuple[JsonObject, type[Action]]] = {
    "someone else's": ({"metadata": {"labels": None}}, Say),
    "of an LWS of before": ({"metadata": {"ownerReferences": [{"kind": "LeaderWorkerSet", "uid": "old"}]}}, LookAgain),
    "on its way out": ({"metadata": {"deletionTimestamp": "2026-11-30T00:00:00Z"}}, LookAgain),
}


@pytest.mark.parametrize(("change", "answer"), TAKEN.values(), ids=TAKEN.keys())
def test_a_workload_in_the_way_holds_a_new_group_back(change: JsonObject, answer: type[Action]) -> None:
    """It is told or waited for; what a group refers to can't be mended later."""
    before = shared_world(*replica())
    before.settle()
    (workload,) = before.of_kind("Workload")
    world = shared_world(*replica(), merged(workload, change))
    actions = world.decide().actions
    assert made(actions) == []
    assert answer in map(type, actions)


def test_1_36_wants_the_workload_first() -> None:
    """It refuses a PodGroup whose Workload is not there: one pass makes the one, the next the other."""
    world = shared_world(*replica())
    sight = msgspec.structs.replace(world.sight(), watched=frozenset({workload_kind(V1ALPHA2)}))
    actions = decide(sight, world.configuration, lambda _: V1ALPHA2).actions
    assert [kind for kind, _ in made(actions)] == ["Workload"]


def test_what_no_replica_needs_goes_after_two_looks() -> None:
    """A leader that is replaced is away for a moment; one of another revision needs another Workload."""
    world = shared_world(*replica())
    world.settle()
    (workload,) = world.of_kind("Workload")
    cache, kinds = world.cache(), [WORKLOADS]
    leftovers = Leftovers(cache)
    assert leftovers.find(kinds) == leftovers.find(kinds) == []
    world.remove(*[pod for pod in world.of_kind("Pod") if pod["metadata"]["name"] == "vllm-0"])
    cache.pods = world.cache().pods
    assert leftovers.find(kinds) == []
    name, uid = workload["metadata"]["name"], workload["metadata"]["uid"]
    assert leftovers.find(kinds) == [DeleteShared(WORKLOADS, NAMESPACE, name, uid)]


def test_workloads_of_others_are_never_deleted() -> None:
    """Not without our label, not with one that names something else, not when it is going already."""
    metadata = {"name": "theirs", "namespace": NAMESPACE, "labels": {"leaderworkerset.sigs.k8s.io/name": "gone"}}
    theirs = {"apiVersion": WORKLOADS.api_version, "kind": "Workload", "metadata": metadata, "spec": {}}
    copied = merged(theirs, {"metadata": {"name": "copy", "labels": {"lockstep.dev/shared": "original"}}})
    bare = merged(theirs, {"metadata": {"name": "bare", "labels": {"lockstep.dev/shared": "bare"}}})
    bare["metadata"]["labels"] = {"lockstep.dev/shared": "bare"}
    leftovers = Leftovers(shared_world(theirs, copied, bare).cache())
    assert leftovers.find([WORKLOADS]) == leftovers.find([WORKLOADS]) == []


# --- roles ---


def role(name: str, index: int = 0, **difference: Any) -> list[JsonObject]:
    """Build one replica of a role of the DisaggregatedSet `serve`."""
    lws = f"serve-{name}"
    labels = {"labels": {**MARKS, f"{DS}/role": name}}
    changes = {f"{lws}-{index}": {"metadata": labels}}
    built = replica(lws=lws, index=index, changes=changes, **difference)
    owner = {"kind": "DisaggregatedSet", "name": "serve", "uid": "ds/serve", "controller": True}
    return [
        merged(item, {"metadata": {"ownerReferences": [owner]}}) if item["kind"] == "LeaderWorkerSet" else item
        for item in built
    ]


def whole_set(*roles: str, **classes: str) -> JsonObject:
    """Build the DisaggregatedSet with its roles."""
    specs = [
        {
            "name": name,
            "spec": {
                "leaderWorkerTemplate": {
                    "size": 2,
                    "workerTemplate": {"spec": {"priorityClassName": classes.get(name, "")}},
                }
            },
        }
        for name in roles
    ]
    metadata = {"name": "serve", "namespace": NAMESPACE, "uid": "ds/serve"}
    return {"apiVersion": f"{DS}/v1", "kind": "DisaggregatedSet", "metadata": metadata, "spec": {"roles": specs}}


def together(*objects: JsonObject) -> World:
    """Build a world where roles are wanted together."""
    return shared_world(*objects, roles="together")


def key(name: str, index: int = 0) -> tuple[str, str]:
    """Key of a role's leader."""
    return (NAMESPACE, f"serve-{name}-{index}")


def test_c24_the_first_replicas_of_all_roles_are_one_composite() -> None:
    """One PodGroup each, of its own size, below one CompositePodGroup that wants all roles."""
    world = together(*role("prefill"), *role("decode"), whole_set("prefill", "decode"))
    for name in ("prefill", "decode"):
        world.settle(key(name))
    (composite,) = world.of_kind("CompositePodGroup")
    (workload,) = world.of_kind("Workload")
    assert composite["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    references = {
        (item["spec"]["parentCompositePodGroupName"], item["spec"]["workloadRef"]["templateName"])
        for item in world.of_kind("PodGroup")
    }
    root = composite["metadata"]["name"]
    assert references == {(root, "replica-0"), (root, "replica-1")}
    for item in (composite, workload):
        (owner,) = item["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["uid"]) == (f"{DS}/v1", "DisaggregatedSet", "ds/serve")


def test_further_replicas_wait_until_each_role_has_started() -> None:
    """And then stand alone: one that is gone takes no other with it."""
    objects = [*role("prefill"), *role("decode"), *role("prefill", 1), whole_set("prefill", "decode")]
    world = together(*objects)
    actions = world.decide(key("prefill", 1)).actions
    assert made(actions) == []
    assert [reason for reason, _ in said(actions)] == ["WaitsForRoles"]
    assert LookAgain in map(type, actions)
    firsts = {f"serve-{name}-0{end}" for name in ("prefill", "decode") for end in ("", "-1")}
    for pod in world.of_kind("Pod"):
        if pod["metadata"]["name"] in firsts:
            pod["spec"]["nodeName"] = "n"
    (first,) = [action for action in world.decide(key("prefill", 1)).actions if isinstance(action, CreateGroup)]
    spec = first.body["spec"]
    assert isinstance(spec, dict)
    assert "parentCompositePodGroupName" not in spec


APART: dict[str, list[JsonObject]] = {
    "their classes differ": [whole_set("prefill", "decode", prefill="high")],
    "there are more than eight": [whole_set("prefill", "decode", *(f"role-{number}" for number in range(7)))],
}


@pytest.mark.parametrize("objects", APART.values(), ids=APART.keys())
def test_roles_that_can_not_be_together_are_told(objects: list[JsonObject]) -> None:
    """They start apart, each replica a gang of its own."""
    world = together(*role("prefill"), *objects)
    actions = world.decide(key("prefill")).actions
    assert [kind for kind, _ in made(actions)] == ["PodGroup"]
    assert [reason for reason, _ in said(actions)] == ["RolesApart"]


def test_without_composite_groups_roles_start_apart() -> None:
    """The kind is not served, or its gate is off."""
    world = together(*role("prefill"), whole_set("prefill", "decode"))
    sight = world.sight(key("prefill"))
    without: list[dict[str, Any]] = [
        {"watched": sight.watched - {COMPOSITE}},
        {"kept": frozenset({"schedulingConstraints"})},
    ]
    for lacking in without:
        found = decide(msgspec.structs.replace(sight, **lacking), world.configuration, first_kind)
        assert [kind for kind, _ in made(found.actions)] == ["PodGroup"]
        assert [reason for reason, _ in said(found.actions)] == ["RolesApart"]


def first_kind(kinds: Any) -> GroupKind:
    """Serve every kind."""
    found: GroupKind = kinds[0]
    return found


def test_a_set_of_another_life_or_none_has_no_roles() -> None:
    """The LWS names its set by UID; one of the same name is another."""
    other = merged(whole_set("prefill", "decode"), {"metadata": {"uid": "ds/new"}})
    for objects in ([], [other], [merged(other, {"metadata": {"uid": "ds/serve"}, "spec": {"roles": None}})]):
        world = together(*role("prefill"), *objects)
        assert [kind for kind, _ in made(world.decide(key("prefill")).actions)] == ["PodGroup"]


def test_an_empty_cache_has_nothing_left_over() -> None:
    """No kind is followed yet."""
    assert Leftovers(Cache()).find([WORKLOADS, COMPOSITE]) == []
