"""Cases of the field that speak of checks: what a review of manifests, or of a cluster, says about each."""

from typing import Any, Final

import pytest

from policies.findings import ERROR, NOTE, WARNING, Verdict
from policies.objects import Subject
from policies.reviewing import review
from policies.snapshot import Snapshot
from policies.targets import Target
from tests.builders import JsonObject
from tests.policies.rules import judged, messages
from tests.reconciler.sights import (
    COSCHEDULING,
    NATIVE,
    PROVIDERS,
    VOLCANO,
    Plan,
    World,
    group,
    leader_worker_set,
    merged,
    pods_of,
    worker_set,
)


def only(verdict: Verdict, rule: str) -> str:
    """Give the one message of a rule."""
    (message,) = messages(verdict, rule)
    return message


LWS: Final = "leaderworkerset.sigs.k8s.io/"
TEMPLATE: Final = "spec.leaderWorkerTemplate"


def lws(scheduler: str = "volcano", size: int = 4, **difference: Any) -> JsonObject:
    """Build an LWS with one template; `difference` is merged in (RFC 7386)."""
    pod = {"spec": {"schedulerName": scheduler, "containers": [{"name": "vllm", "image": "registry.example/vllm:1"}]}}
    base = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm", "namespace": "team-a"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": size, "workerTemplate": pod}},
    }
    return merged(base, difference)


def templates(**changes: JsonObject) -> JsonObject:
    """Say what differs in `leaderWorkerTemplate`."""
    return {"leaderWorkerTemplate": changes}


def rules_of(*contents: JsonObject) -> set[tuple[str, str]]:
    """Review some objects; gives rule and severity of each finding."""
    return {(found.rule, found.severity) for found in judged(*contents).findings}


@pytest.mark.parametrize(
    ("provider", "told"),
    [(NATIVE, [("late-workers-have-room", NOTE)]), (VOLCANO, []), (COSCHEDULING, [])],
    ids=["native", "volcano", "coscheduling"],
)
def test_c02_what_is_not_protected_is_said(provider: Any, told: list[tuple[str, str]]) -> None:
    """C02: where the scheduler knows no resources, the report says that the replica is not protected once it runs."""
    assert sorted(rules_of(lws(provider.scheduler_names[0], spec={"startupPolicy": "LeaderReady"}))) == told


def late_world(annotation: str, minimum: int) -> list[JsonObject]:
    """Build an LWS of four with an annotation, its leader, and a group with a minimum."""
    plan = Plan(provider=VOLCANO, size=4, workers=0)
    made = merged(group(Plan(provider=VOLCANO, size=4)), {"spec": {"minMember": minimum}})
    return [lws(metadata={"annotations": {LWS + annotation: "rack"}}), pods_of(plan)[0], made]


def test_c13_exclusive_topology_allows_no_whole_minimum() -> None:
    """C13: with exclusive-topology a minimum of the size is refused, and the annotation is named; 1 passes."""
    (message,) = messages(judged(*late_world("exclusive-topology", 4)), "late-group-starts-with-one")
    assert message == (
        "spec.minMember: must be 1 until all workers exist, since "
        'metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology] of LeaderWorkerSet "vllm" makes '
        "them late, got 4"
    )
    assert messages(judged(*late_world("exclusive-topology", 1)), "late-group-starts-with-one") == []


def test_c13_the_floor_is_that_of_the_whole_replica() -> None:
    """C13: minimum 1 passes with the floor of all four pods only."""
    contents = late_world("exclusive-topology", 1)
    contents[0]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": "8"}
    }
    assert messages(judged(*contents), "group-floor-covers-replica") == []
    low = merged(contents[2], {"spec": {"minResources": {"nvidia.com/gpu": "8"}}})
    assert messages(judged(*contents[:2], low), "group-floor-covers-replica") == [
        'spec.minResources[nvidia.com/gpu]: must be at least 32, what the 4 pods of replica "vllm-0" ask for, got "8"'
    ]


def test_c13_exclusive_subgroups_are_not_denied() -> None:
    """C13: with the subgroup annotation alone the whole size is the right minimum."""
    contents = late_world("subgroup-exclusive-topology", 4)
    assert not messages(judged(*contents), "late-group-starts-with-one")
    assert not messages(judged(*contents), "group-minimum-is-the-size")


def test_c17_lws_and_lockstep_are_not_both_writers() -> None:
    """C17: an LWS that makes its own groups is refused beside ours, and passes where Lockstep is kept away."""
    both = lws("default-scheduler", spec={"scheduling": {"policy": {"gang": {}}}})
    assert ("one-gang-system-per-lws", ERROR) in rules_of(both)
    away = templates(workerTemplate={"metadata": {"labels": {"lockstep.dev/gang": "off"}}})
    assert rules_of(merged(both, {"spec": away})) == set()


def test_c17_a_group_of_another_writer_is_found() -> None:
    """C17: a group of a replica whose controller is not the leader is found, and so is a second group."""
    ours = _owned(group(Plan(provider=VOLCANO)))
    theirs = merged(ours, {"metadata": {"name": "vllm-0-69fbc5554", "labels": {"lockstep.dev/group": None}}})
    theirs["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "name": "vllm",
            "uid": "lws",
            "controller": True,
        }
    ]
    assert messages(judged(theirs), "podgroup-controlled-by-leader") == [
        'metadata.ownerReferences: must name leader pod "vllm-0" as the controller, got LeaderWorkerSet "vllm"'
    ]
    twin = merged(ours, {"metadata": {"name": "vllm-0-69fbc5554", "labels": {"lockstep.dev/group": None}}})
    assert len(messages(judged(lws(size=2), ours, twin), "one-gang-system-per-lws")) == 1


def _owned(obj: JsonObject) -> JsonObject:
    for owner in obj["metadata"]["ownerReferences"]:
        owner.setdefault("apiVersion", {"Pod": "v1", "StatefulSet": "apps/v1"}[owner["kind"]])
    return obj


@pytest.mark.parametrize(
    ("metadata", "spec", "path"),
    [
        (
            {"annotations": {"scheduling.k8s.io/group-name": "mine"}},
            {},
            "metadata.annotations[scheduling.k8s.io/group-name]",
        ),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "mine"}}, {}, "metadata.labels[scheduling.x-k8s.io/pod-group]"),
        ({}, {"schedulingGroup": {"podGroupName": "mine"}}, "spec.schedulingGroup.podGroupName"),
    ],
    ids=["volcano", "coscheduling", "native"],
)
def test_c18_a_group_in_the_template_is_said(metadata: JsonObject, spec: JsonObject, path: str) -> None:
    """C18: a template that carries a group is a warning with its field: it is kept, and Lockstep makes none."""
    verdict = judged(lws(spec=templates(workerTemplate={"metadata": metadata, "spec": spec})))
    assert verdict.allowed
    (found,) = [each for each in verdict.findings if each.rule == "templates-name-no-group"]
    assert (found.severity, found.path) == (WARNING, f"{TEMPLATE}.workerTemplate.{path}")


LEVELS: Final = ("pod", "leaderworkerset", "namespace")


@pytest.mark.parametrize("strongest", range(len(LEVELS)), ids=LEVELS)
def test_c21_every_level_gives_its_value(strongest: int) -> None:
    """C21: queue and priority class are read from pod template, LWS, then namespace; an unknown queue is found."""
    plan = Plan(provider=VOLCANO)
    set_, pods = leader_worker_set(plan), pods_of(plan)
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    for level, obj in list(enumerate((pods[0], set_, namespace)))[strongest:]:
        words = {
            "lockstep.dev/queue": f"queue-{LEVELS[level]}",
            "lockstep.dev/priority-class": f"class-{LEVELS[level]}",
        }
        obj["metadata"].setdefault("annotations", {}).update(words)
    world = World(set_, namespace, worker_set(plan), *pods)
    world.settle()
    (made,) = world.of_kind("PodGroup")
    word = LEVELS[strongest]
    assert (made["spec"]["queue"], made["spec"]["priorityClassName"]) == (f"queue-{word}", f"class-{word}")
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    snapshot = Snapshot([made, queue], complete=["Queue.scheduling.volcano.sh"])
    verdict = review([Subject(made)], snapshot, Target())
    assert f'spec.queue: must name a Queue.scheduling.volcano.sh that exists, got "queue-{word}"' in messages(verdict)


def test_c21_a_word_that_is_not_honoured_is_said() -> None:
    """C21: a timeout that no group of that scheduler can hold is said, on the level where it stands."""
    verdict = judged(lws(metadata={"annotations": {"lockstep.dev/schedule-timeout": "60"}}))
    assert only(verdict, "intent-words-are-honoured") == (
        "metadata.annotations[lockstep.dev/schedule-timeout]: must be left out for Volcano, where the nearest is "
        'sla-waiting-time of its sla plugin, after which a waiting group goes first, got "60"'
    )


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_c22_a_minimum_of_one_needs_an_explanation(provider: Any) -> None:
    """C22: minimum 1 for eight pods is found, unless startup policy or exclusive placement explain it."""
    plan = Plan(provider=provider, size=8)
    path = f"spec.{provider.minimum}"
    low = merged(
        group(plan),
        {"spec": {"minMember": 1} if path == "spec.minMember" else {"schedulingPolicy": {"gang": {"minCount": 1}}}},
    )
    leader, scheduler = pods_of(plan)[0], provider.scheduler_names[0]
    assert messages(judged(lws(scheduler, 8), leader, low), "group-minimum-is-the-size") == [
        f'{path}: must be 8, the pods of replica "vllm-0", whose workers come with their leader, got 1'
    ]
    for reason in (
        {"spec": {"startupPolicy": "LeaderReady"}},
        {"metadata": {"annotations": {LWS + "exclusive-topology": "x"}}},
    ):
        assert not messages(judged(lws(scheduler, 8, **reason), leader, low), "group-minimum-is-the-size")


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_c23_subgroups_are_said_to_be_flat(provider: Any) -> None:
    """C23: subgroups under a scheduler whose groups are flat are reported, and the flat group passes."""
    scheduler = provider.scheduler_names[0]
    divided = lws(scheduler, spec=templates(subGroupPolicy={"subGroupSize": 2}))
    verdict = judged(divided)
    assert verdict.allowed
    assert only(verdict, "subgroups-kept-by-scheduler") == (
        f"{TEMPLATE}.subGroupPolicy: must be left out where groups are flat, got subgroups for scheduler "
        f'"{scheduler}", which are not enforced'
    )
    flat = _owned(group(Plan(provider=provider, size=4)))
    assert not [found for found in judged(divided, flat).findings if found.object.kind == "PodGroup" and found.counts]


def test_c24_two_roles_are_not_merged() -> None:
    """C24: prefill and decode have groups of their own; one gang for both is refused in clear words."""
    roles = [Plan(provider=VOLCANO, lws=role) for role in ("decode", "prefill")]
    names = {group(role)["metadata"]["name"] for role in roles}
    assert len(names) == len(roles)
    pods = [
        merged(pods_of(role)[0], {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "llama"}}})
        for role in roles
    ]
    assert only(judged(*pods), "group-spans-one-replica") == (
        'metadata.annotations[scheduling.k8s.io/group-name]: must name a group of replica "prefill-0" only, not of '
        '"decode-0" with pod "decode-0", got "llama"'
    )


def test_c26_both_templates_name_the_scheduler() -> None:
    """C26: a scheduler on one template only is found with the field to fix."""
    leader = {"spec": {"containers": [{"name": "vllm", "image": "registry.example/vllm:1"}]}}
    assert messages(judged(lws(spec=templates(leaderTemplate=leader))), "templates-name-one-scheduler") == [
        f'{TEMPLATE}.leaderTemplate.spec.schedulerName: must be "volcano" as in the worker template, got nothing'
    ]
    worker = lws(
        spec=templates(
            leaderTemplate=merged(leader, {"spec": {"schedulerName": "volcano"}}),
            workerTemplate={"spec": {"schedulerName": None}},
        )
    )
    assert messages(judged(worker), "templates-name-one-scheduler") == [
        f'{TEMPLATE}.workerTemplate.spec.schedulerName: must be "volcano" as in the leader template, got nothing'
    ]


def test_c30_mixed_priority_is_found() -> None:
    """C30: a class on the worker template alone is mixed priority; the same on both is none."""
    leader = {"spec": {"schedulerName": "volcano", "containers": []}}
    mixed = lws(spec=templates(leaderTemplate=leader, workerTemplate={"spec": {"priorityClassName": "high"}}))
    assert ("templates-share-priority-class", ERROR) in rules_of(mixed)
    both = merged(mixed, {"spec": templates(leaderTemplate={"spec": {"priorityClassName": "high"}})})
    assert rules_of(both) == set()


def test_c31_a_group_without_a_floor_is_found() -> None:
    """C31: a group that can say what it needs, and does not, is found; none is needed where nobody asks."""
    plan = Plan(provider=COSCHEDULING)
    bare = merged(group(plan), {"spec": {"minResources": None}})
    assert len(messages(judged(*pods_of(plan), worker_set(plan), bare), "group-floor-covers-replica")) == 2
    nothing = [merged(pod, {"spec": {"containers": [{"name": "a"}]}}) for pod in pods_of(plan)]
    assert not messages(judged(*nothing, worker_set(plan), bare), "group-floor-covers-replica")


@pytest.mark.parametrize(("given", "got"), [(0, "0"), (None, "nothing")])
def test_c38_a_minimum_below_one_is_refused(given: int | None, got: str) -> None:
    """C38: a minimum of 0, or none, is refused for every scheduler."""
    for provider in PROVIDERS:
        native = provider is NATIVE
        spec = {"schedulingPolicy": {"gang": {"minCount": given}}} if native else {"minMember": given}
        low = merged(_owned(group(Plan(provider=provider))), {"spec": spec})
        found = messages(judged(low), "podgroup-minimum-positive")
        assert found == [f"spec.{provider.minimum}: must be at least 1, got {got}"]


def test_c39_a_minimum_nobody_can_meet_is_found() -> None:
    """C39: a minimum above the pods that the group can ever have is found, whatever the annotation guesses."""
    plan = Plan(provider=COSCHEDULING, size=3, annotated=9)
    high = merged(group(plan), {"spec": {"minMember": 9}})
    assert messages(judged(*pods_of(plan), worker_set(plan), high), "group-minimum-within-replica") == [
        'spec.minMember: must be at most 3, the size of replica "vllm-0", got 9'
    ]


def test_c40_every_task_group_is_listed() -> None:
    """C40: a pod whose task group its leader does not list is found, and so is a sum that is not the size."""
    task = "yunikorn.apache.org/task-group"
    leader, worker = pods_of(Plan(provider=VOLCANO, stamped=False))
    listed = '[{"name": "leader", "minMember": 1}, {"name": "worker", "minMember": 1}]'
    leader["metadata"]["annotations"] |= {f"{task}-name": "leader", f"{task}s": listed}
    worker["metadata"]["annotations"] |= {f"{task}-name": "worker"}
    assert not messages(judged(leader, worker), "task-groups-cover-the-replica")
    worker["metadata"]["annotations"][f"{task}-name"] = "workers"
    leader["metadata"]["annotations"][f"{LWS}size"], got = "3", 'got "workers"'
    assert messages(judged(leader, worker), "task-groups-cover-the-replica") == [
        f"metadata.annotations[{task}s]: must have minimums that add up to 3, the pods of the replica, got 2",
        f'metadata.annotations[{task}-name]: must name a task group that the leader lists ("leader", "worker"), {got}',
    ]


def test_c41_two_incarnations_in_one_group_are_found() -> None:
    """C41: a pod of the old incarnation in the group that the new one uses is found."""
    old, new = pods_of(Plan(provider=NATIVE)), pods_of(Plan(provider=NATIVE, key="7" * 40, life=2))
    name = old[0]["spec"]["schedulingGroup"]["podGroupName"]
    new[0]["spec"]["schedulingGroup"]["podGroupName"] = name
    (message,) = messages(judged(new[0], old[1]), "group-spans-one-replica")
    assert "must name a group of its own incarnation only" in message


def test_c05_a_group_of_a_dead_leader_is_found() -> None:
    """C05: a group whose owner has another UID than the leader that lives is found."""
    plan = Plan(provider=VOLCANO)
    leader = merged(pods_of(plan)[0], {"metadata": {"uid": "again"}})
    (message,) = messages(judged(leader, _owned(group(plan))), "group-owner-is-alive")
    assert message.startswith('metadata.ownerReferences[0].uid: must be "again", the UID of pod "vllm-0"')


def test_c32_a_kind_that_is_not_served_is_found() -> None:
    """C32: an LWS for a scheduler whose group kind is not served is found, with group, version and kind."""
    contents = [lws()]
    snapshot = Snapshot(contents, served=["podgroups.scheduling.k8s.io/v1beta1"])
    verdict = review([Subject(content) for content in contents], snapshot, Target())
    assert only(verdict, "group-api-is-served") == (
        f"{TEMPLATE}.workerTemplate.spec.schedulerName: must be a scheduler whose groups the API server serves "
        '(podgroups.scheduling.volcano.sh/v1beta1), got "volcano"'
    )


def test_c03_members_follow_their_scheduler() -> None:
    """C03: a pod with Volcano's stamp on another scheduler is found: nobody would place it as a gang."""
    pod = merged(pods_of(Plan(provider=VOLCANO))[0], {"spec": {"schedulerName": "default-scheduler"}})
    assert only(judged(pod), "members-use-the-groups-scheduler") == (
        'spec.schedulerName: must be "volcano", which knows the group of '
        'metadata.annotations[scheduling.k8s.io/group-name], got "default-scheduler"'
    )
