"""Public troubles of others, met by every provider: each test says the repository and number."""

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from gangs import keys
from gangs.intents import SCHEDULE_TIMEOUT
from reconciler.actions import Action, CreateGroup, DeletePod, OpenGate, PatchGroup, PatchPod
from reconciler.decisions import decide
from reconciler.replicas import Sight
from schedulers.abilities import Declares
from schedulers.contract import Provider
from schedulers.registry import all_providers
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import first, merged, writes_of
from tests.schedulers.cases import replica
from tests.schedulers.promised_files import dig
from tests.schedulers.promised_lives import LATE, check_minimums, names_of
from tests.schedulers.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

PROVIDERS: Final = list(all_providers().values())
on_all = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
on_objects = pytest.mark.parametrize("provider", [p for p in PROVIDERS if p.kinds], ids=lambda provider: provider.name)
TOUCHED: Final[JsonObject] = {"metadata": {"annotations": {"theirs": "touched"}}}
SIDECAR: Final = {"name": "proxy", "image": "registry.example/proxy:1", "resources": {"requests": {"cpu": "500m"}}}


def writes(scene: Scene) -> list[Action]:
    """Give what the reconciler would write about every leader now."""
    cache, kind = scene.world.cache(), next(iter(scene.provider.kinds), None)
    sights = [cache.sight(key, kind, age=10.0, recreations=0) for key in scene.leaders()]
    seen = [sight for sight in sights if isinstance(sight, Sight)]
    return [action for sight in seen for action in writes_of(decide(sight, scene.configuration, first).actions)]


@on_objects
def test_c28_a_group_outlives_the_set_while_its_pods_run(provider: Provider) -> None:
    """ray-project/kuberay#4643: with its LWS deleted and the pods orphaned, nothing is written and no group goes."""
    scene = Scene(provider)
    scene.apply(size=2)
    scene.run()
    before = copy.deepcopy(scene.groups())
    scene.world.remove(*scene.world.of_kind("LeaderWorkerSet"))
    scene.run(scene.reconciler)
    assert scene.groups() == before
    verbs = [right.verbs for right in provider.rights if {kind.plural for kind in provider.kinds} & {*right.resources}]
    assert not any("deletecollection" in allowed for allowed in verbs)


@pytest.mark.parametrize("provider", [p for p in PROVIDERS if p.late_workers.floor], ids=lambda provider: provider.name)
def test_c29_a_sidecar_that_another_webhook_adds_counts(provider: Provider) -> None:
    """ray-project/kuberay#3895: the resources are those of the pods as they are stored."""
    scene = Scene(provider)
    scene.apply(size=3)
    scene.run(scene.lws_controller)
    for pod in scene.pods():
        containers = [*pod["spec"]["containers"], SIDECAR]
        scene.world.put(merged(pod, {"spec": {"containers": containers}}))
    scene.run(scene.reconciler)
    if isinstance(provider, Declares):
        (leader,) = scene.pods(worker_index="0")
        said = " ".join(leader["metadata"]["annotations"][key] for key in provider.declared)
        assert '"cpu":"1500m"' in said
    else:
        (group,) = scene.groups()
        assert group["spec"]["minResources"]["cpu"] == "4500m"


@on_objects
def test_c36_no_owner_is_blocked(provider: Provider) -> None:
    """operator-framework/operator-sdk#4020: blockOwnerDeletion, which wants rights on finalizers, stays unset."""
    scene = Scene(provider)
    scene.apply(size=2, replicas=2)
    scene.run()
    owners = [owner for group in scene.groups() for owner in group["metadata"]["ownerReferences"]]
    assert len(owners) == 2
    assert not any("blockOwnerDeletion" in owner for owner in owners)


@on_objects
def test_c37_every_order_of_events_ends_in_the_same_groups(provider: Provider) -> None:
    """volcano-sh/volcano#3563: leader added, LWS modified, leader modified, old leader deleted, seen in 24 orders."""
    ends = {json.dumps(_end(provider, order), sort_keys=True) for order in itertools.permutations(range(4))}
    assert len(ends) == 1
    assert len(json.loads(ends.pop())) == 1


def _end(provider: Provider, order: tuple[int, ...]) -> list[Any]:
    """Let the reconciler see four events in an order; gives owner and spec of the groups at the end."""
    scene = Scene(provider)
    scene.apply(size=2)
    scene.run(scene.lws_controller, scene.reconciler)
    old = copy.deepcopy(scene.world.objects)
    scene.delete_leader()
    scene.run(scene.lws_controller)
    new = copy.deepcopy(scene.world.objects)
    scene.world.objects.clear()
    scene.world.put(*old.values())
    lives, stay = ({obj["metadata"]["uid"] for obj in objects.values()} for objects in (old, new))
    leader, lws = ("Pod", "team-a", "vllm-0"), ("LeaderWorkerSet", "team-a", "vllm")

    def ends(obj: JsonObject) -> bool:
        return obj["metadata"]["uid"] in lives - stay

    events: list[Callable[[], None]] = [
        lambda: scene.world.put(*(obj for obj in new.values() if obj["metadata"]["uid"] not in lives)),
        lambda: scene.world.put(merged(scene.world.objects[lws], {"spec": {"replicas": 5}})),
        lambda: scene.world.put(merged(scene.world.objects.get(leader, new[leader]), TOUCHED)),
        lambda: scene.world.remove(*(obj for obj in scene.world.objects.values() if ends(obj))),
    ]
    for number in order:
        events[number]()
        scene.run(scene.reconciler)
    return [[group["metadata"]["ownerReferences"][0]["uid"], group["spec"]] for group in scene.groups()]


@pytest.mark.parametrize(
    "provider", [p for p in PROVIDERS if p.words.get(SCHEDULE_TIMEOUT)], ids=lambda provider: provider.name
)
def test_c39_a_time_out_is_never_left_to_a_default(provider: Provider) -> None:
    """kubernetes-sigs/scheduler-plugins#713, #722: a group says itself how long its placed members wait."""
    for kind in provider.kinds:
        assert dig(provider.spec(replica(), kind).fields, provider.words[SCHEDULE_TIMEOUT]) > 0


@on_all
def test_c42_pods_may_come_before_their_group(provider: Provider) -> None:
    """koordinator-sh/koordinator#333: the group is made although the pods came first, and they are placed."""
    for late in ({}, *LATE):
        scene = Scene(provider)
        scene.apply(size=3, **late)
        scene.run(scene.lws_controller, scene.scheduler)
        assert scene.bound() == 0
        scene.run()
        assert scene.bound() == 3


@on_all
def test_c43_a_set_that_opts_out_leaves_no_groups_behind(provider: Provider) -> None:
    """sgl-project/rbg#56: running replicas keep their groups; each goes with its leader, and the next is left alone."""
    scene = Scene(provider)
    scene.apply(size=2, replicas=2)
    scene.run()
    scene.apply(size=2, replicas=2, pod={"metadata": {"labels": {keys.LOCKSTEP_GANG: keys.OPTED_OUT}}})
    scene.run()
    check_minimums(scene, 2)
    scene.delete_leader("vllm-0")
    scene.run()
    new = scene.pods(group_index="0")
    assert [scene.group_of(pod) for pod in new] == [None, None]
    scene.delete_leader("vllm-1")
    scene.run()
    assert scene.groups() == []


@on_all
def test_c44_nothing_of_ours_holds_a_deletion_back(provider: Provider) -> None:
    """kubernetes-sigs/kueue#9327: no write puts a finalizer on anything, so all goes while we are stopped."""
    scene = Scene(provider)
    scene.apply(size=3, replicas=2, annotations={keys.EXCLUSIVE_TOPOLOGY: "zone"})
    for _ in range(20):
        for action in writes(scene):
            body: Any = {} if isinstance(action, DeletePod) else getattr(action, "body", {})
            assert "finalizers" not in body.get("metadata", {})
            assert isinstance(action, CreateGroup | PatchGroup | PatchPod | OpenGate)
        scene.lws_controller()
        scene.reconciler()
        scene.scheduler()
    assert not [obj for obj in _ours(scene) if obj["metadata"].get("finalizers")]
    for name in ("vllm-0", "vllm-1"):
        scene.delete_leader(name)
    assert scene.pods() == []
    assert scene.groups() == []


def _ours(scene: Scene) -> list[JsonObject]:
    return [*scene.pods(), *scene.groups()]


@on_all
def test_c25_c41_no_two_incarnations_or_sets_share_a_group(provider: Provider) -> None:
    """kubernetes-sigs/lws#619, kubernetes/kubernetes#139914: a name is of one replica's one life."""
    scene = Scene(provider)
    for name in ("a", "a-b"):
        scene.apply(name, size=2, replicas=2)
    scene.run()
    used = names_of(scene)
    for leader in ("a-0", "a-b-1"):
        scene.delete_leader(leader)
        scene.run()
        used += [name for name in names_of(scene) if name not in used]
    assert len(used) == 6
    sets: dict[str | None, set[str]] = {}
    for pod in scene.pods():
        sets.setdefault(scene.group_of(pod), set()).add(pod["metadata"]["labels"][f"{LWS}name"])
    assert sorted(map(sorted, sets.values())) == [["a"], ["a"], ["a-b"], ["a-b"]]
