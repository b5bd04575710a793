"""What becomes of LeaderWorkerSets from their first pod to their last, under whatever scheduler.

Each function is one promise; `tests.schedulers.promises` lists them, and a test keeps every provider to each.
"""

import random
import re
from typing import Any, Final

from gangs import keys
from schedulers.abilities import Declares
from schedulers.contract import Provider
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import merged
from tests.schedulers.scene import REQUESTS, Scene, wholly_placed

LONGEST: Final = "n" * 59
"""LWS names its pods `<name>-<index>-<worker>`, and a pod's name is a label's value on its StatefulSet."""

LATE: Final[tuple[dict[str, Any], ...]] = (
    {"spec": {"startupPolicy": "LeaderReady"}},
    {"annotations": {keys.EXCLUSIVE_TOPOLOGY: "topology.kubernetes.io/zone"}},
)
TURNS: Final = 60
"""Steps of one random order; a replica of three is up after fewer."""


def names_of(scene: Scene) -> list[str]:
    """Give the groups that pods are in, each once, sorted, and show that every pod is in one."""
    found = {scene.group_of(pod) for pod in scene.pods()}
    assert None not in found
    return sorted(name for name in found if name is not None)


def check_minimums(scene: Scene, size: int) -> None:
    """Show that there is a group object for each group that pods are in, and no other, with the size as its minimum."""
    if scene.provider.kinds:
        found = {group["metadata"]["name"]: scene.minimum(group) for group in scene.groups()}
        assert found == dict.fromkeys(names_of(scene), size)


def replicas_are_whole_or_absent(provider: Provider) -> None:
    """Five replicas of three and room for seven pods: two have all their pods placed, three none; more room, more."""
    scene = Scene(provider, room=7)
    scene.apply(size=3, replicas=5)
    scene.run()
    assert sorted(wholly_placed(scene)) == [False, False, False, True, True]
    scene.room += 2
    scene.run()
    assert sum(wholly_placed(scene)) == 3
    check_minimums(scene, 3)


def a_replica_of_one_pod_is_a_group_of_one(provider: Provider) -> None:
    """A leader without workers is placed like any other replica."""
    scene = Scene(provider)
    scene.apply(size=1, replicas=2)
    scene.run()
    assert scene.bound() == len(scene.pods()) == 2
    check_minimums(scene, 1)


def no_replicas_leave_no_groups(provider: Provider) -> None:
    """Scaled to none and up again, nothing of before is there, and no name is used twice."""
    scene = Scene(provider)
    scene.apply(size=2, replicas=2)
    scene.run()
    before = names_of(scene)
    scene.apply(size=2, replicas=0)
    scene.run()
    assert scene.pods() == scene.groups() == []
    scene.apply(size=2, replicas=2)
    scene.run()
    assert not {*before} & {*names_of(scene)}
    check_minimums(scene, 2)


def scaling_touches_no_replica_that_stays(provider: Provider) -> None:
    """An autoscaler's ups and downs: groups of replicas that stay are not written, those that go take theirs along."""
    scene = Scene(provider)
    scene.apply(size=2, replicas=2)
    scene.run()
    stay = {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in [*scene.pods(), *scene.groups()]}
    for replicas in (5, 2, 4, 3, 2):
        scene.apply(size=2, replicas=replicas)
        scene.run()
        assert scene.bound() == len(scene.pods()) == 2 * replicas
        check_minimums(scene, 2)
    assert stay == {
        obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in [*scene.pods(), *scene.groups()]
    }


def one_name_in_two_namespaces_is_two_groups(provider: Provider) -> None:
    """No group's name is used in another namespace: some schedulers know groups by the name alone."""
    scene = Scene(provider)
    for namespace in ("team-a", "team-b", "team-c"):
        scene.apply(namespace=namespace, size=2, replicas=2)
    scene.run()
    assert scene.bound() == 12
    homes: dict[str | None, set[str]] = {}
    for pod in scene.pods():
        homes.setdefault(scene.group_of(pod), set()).add(pod["metadata"]["namespace"])
    assert len(homes) == 6
    assert {len(home) for home in homes.values()} == {1}


def the_longest_names_fit(provider: Provider) -> None:
    """Two LWS whose long names differ at the end alone: each label fits, and no group is shared."""
    scene = Scene(provider)
    for name in (LONGEST, LONGEST[:-1] + "m"):
        scene.apply(name, size=2)
    scene.run()
    assert scene.bound() == 4
    assert len(names_of(scene)) == 2
    labels = [value for obj in [*scene.pods(), *scene.groups()] for value in obj["metadata"]["labels"].values()]
    assert max(map(len, labels)) <= 63
    check_minimums(scene, 2)


def a_thousand_groups_cost_three_writes_each_at_most(provider: Provider) -> None:
    """A thousand replicas have a thousand names; a group is made once, and group and pod written once more at most."""
    scene = Scene(provider)
    scene.apply(size=1, replicas=1000)
    scene.run(scene.lws_all_at_once)
    assert len(names_of(scene)) == 1000
    before = scene.world.writes
    scene.run(scene.reconciler)
    assert scene.world.writes - before <= 3000
    check_minimums(scene, 1)


def late_workers_start_at_all(provider: Provider) -> None:
    """LeaderReady and exclusive topology: the leader starts alone, and once its workers are there all are one group."""
    for late in LATE:
        scene = Scene(provider)
        scene.apply(size=3, **late)
        scene.run(scene.lws_controller, scene.reconciler)
        assert len(scene.pods()) == 1
        check_minimums(scene, 1)
        scene.run()
        assert scene.bound() == len(scene.pods()) == 3
        check_minimums(scene, 3)


def subgroup_topology_makes_nobody_late(provider: Provider) -> None:
    """Workers of `subgroup-exclusive-topology` alone come with their leader, so the minimum is the size at once."""
    scene = Scene(provider)
    scene.apply(size=3, annotations={keys.SUBGROUP_EXCLUSIVE_TOPOLOGY: "topology.kubernetes.io/rack"})
    scene.run(scene.lws_controller, scene.reconciler)
    assert len(scene.pods()) == 3
    check_minimums(scene, 3)


def the_floor_is_the_whole_replica(provider: Provider) -> None:
    """Also while only the leader exists, the scheduler is told what all of its pods ask."""
    for late in ({}, *LATE):
        scene = Scene(provider)
        scene.apply(size=3, **late)
        scene.run(scene.lws_controller, scene.reconciler)
        whole = {name: str(3 * int(amount)) for name, amount in REQUESTS.items()}
        if isinstance(provider, Declares):
            annotations = scene.pods(worker_index="0")[0]["metadata"]["annotations"]
            said = " ".join(annotations[key] for key in provider.declared)
            assert sum(map(int, re.findall(r'"minMember":(\d+)', said))) == 3
        else:
            (group,) = scene.groups()
            assert group["spec"]["minResources"] == whole


def no_order_of_events_is_a_deadlock(provider: Provider) -> None:
    """LWS's controller, the scheduler and the reconciler act in twelve random orders: all ends in the same groups."""
    for late in ({}, *LATE):
        ends = set()
        for seed in range(12):
            scene = Scene(provider, room=3)
            scene.apply(size=3, **late)
            actors = [scene.lws_controller, scene.reconciler, scene.scheduler]
            draw = random.Random(seed)
            weights = [draw.random() for _ in actors]
            for actor in draw.choices(actors, weights, k=TURNS):
                actor()
            scene.run()
            assert scene.bound() == 3, f"seed {seed}"
            ends.add(repr([(group["metadata"]["name"], group["spec"]) for group in scene.groups()]))
        assert len(ends) == 1


def a_new_leader_has_a_new_group(provider: Provider) -> None:
    """A leader deleted again and again comes back whole; no name is used twice, nothing is left over."""
    scene = Scene(provider, room=3)
    scene.apply(size=3)
    scene.run()
    used = names_of(scene)
    for _ in range(5):
        scene.delete_leader()
        scene.room = 3
        scene.run()
        assert scene.bound() == 3
        used += names_of(scene)
        check_minimums(scene, 3)
    assert len({*used}) == len(used) == 6


def a_dead_leaders_group_is_not_trusted(provider: Provider) -> None:
    """A group of the right name that another leader owns is neither written nor counted as ready."""
    scene = Scene(provider)
    scene.apply(size=2)
    scene.run(scene.lws_controller, scene.reconciler)
    (group,) = scene.groups()
    stale = merged(group, {"metadata": {"ownerReferences": [{"kind": "Pod", "name": "vllm-0", "uid": "dead"}]}})
    stale["metadata"]["ownerReferences"][0]["controller"] = True
    scene.world.put(stale)
    assert not scene.reconciler()
    scene.world.remove(stale)
    scene.run()
    assert scene.bound() == 2
    (group,) = scene.groups()
    assert group["metadata"]["ownerReferences"][0]["uid"] != "dead"


def an_edited_or_deleted_group_is_repaired(provider: Provider) -> None:
    """Its minimum is put back and fields of others stay; a deleted one is made anew, under its name."""
    scene = Scene(provider)
    scene.apply(size=3)
    scene.run(scene.lws_controller, scene.reconciler)
    (group,) = scene.groups()
    theirs: JsonObject = {"metadata": {"annotations": {"theirs": "kept"}}, "spec": {"theirs": 7}}
    edited = merged(group, merged(theirs, {"spec": _with_minimum(scene, group, 1)}))
    scene.world.put(edited)
    scene.run(scene.reconciler)
    (repaired,) = scene.groups()
    assert (scene.minimum(repaired), repaired["spec"]["theirs"]) == (3, 7)
    assert repaired["metadata"]["annotations"]["theirs"] == "kept"
    scene.world.remove(repaired)
    scene.run()
    assert names_of(scene) == [found["metadata"]["name"] for found in scene.groups()]
    check_minimums(scene, 3)


def _with_minimum(scene: Scene, group: JsonObject, minimum: int) -> JsonObject:
    path = scene.provider.minimum.split(".")
    spec: JsonObject = {path[-1]: minimum}
    for step in reversed(path[:-1]):
        spec = {step: spec}
    assert scene.minimum(merged(group, {"spec": spec})) == minimum
    return spec


def the_size_is_that_which_is_built(provider: Provider) -> None:
    """A leader of an old revision says three and LWS builds two: the group is of two, else it could never start."""
    scene = Scene(provider)
    scene.apply(size=3)
    scene.run(scene.lws_controller)
    worker_set = scene.world.objects["StatefulSet", "team-a", "vllm-0"]
    scene.world.put(merged(worker_set, {"spec": {"replicas": 1}}))
    scene.world.remove(scene.world.objects["Pod", "team-a", "vllm-0-2"])
    scene.run(scene.reconciler, scene.scheduler)
    assert scene.bound() == 2
    check_minimums(scene, 2)


def roles_are_groups_of_their_own(provider: Provider) -> None:
    """Two LWS of one DisaggregatedSet: a group for each replica of each role, and none over both."""
    scene = Scene(provider)
    for role, size in (("prefill", 2), ("decode", 3)):
        marks = {"disaggregatedset.x-k8s.io/name": "pd", "disaggregatedset.x-k8s.io/role": role}
        scene.apply(f"pd-{role}", size=size, replicas=2, labels=marks, pod={"metadata": {"labels": marks}})
    scene.run()
    assert scene.bound() == 10
    roles: dict[str | None, list[str]] = {}
    for pod in scene.pods():
        roles.setdefault(scene.group_of(pod), []).append(pod["metadata"]["labels"][f"{LWS}name"])
    assert sorted((len(pods), *{*pods}) for pods in roles.values()) == [
        (2, "pd-prefill"),
        (2, "pd-prefill"),
        (3, "pd-decode"),
        (3, "pd-decode"),
    ]


def subgroups_are_one_flat_group(provider: Provider) -> None:
    """A replica with subgroups is placed as one group of its whole size; no group selects by subgroup."""
    scene = Scene(provider)
    policy = {"subGroupPolicy": {"subGroupSize": 2}}
    marks = {"labels": {f"{LWS}subgroup-index": "0"}, "annotations": {f"{LWS}subgroup-size": "2"}}
    scene.apply(size=4, spec_of_template=policy, pod={"metadata": marks})
    scene.run()
    assert scene.bound() == 4
    assert len(names_of(scene)) == 1
    assert "subgroup" not in repr([group["spec"] for group in scene.groups()]).lower()
    check_minimums(scene, 4)
