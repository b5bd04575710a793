"""The whole reconciler against an API server over HTTP: watches, queue, election, writes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api import load_api
from reconciler.contract import ApiError, Conflict, Forbidden, NotFound, TooManyRequests
from reconciler.leases import Durations, LeaseName
from reconciler.loop import Reconciler, Settings, is_refusal
from schedulers.configuration import default_configuration
from tests.builders import NAMESPACE
from tests.reconciler.fake_api import Answer, FakeApi, Seen, Silence, eventually, kubeconfig, status
from tests.reconciler.sights import (
    COSCHEDULING,
    Plan,
    group,
    leader_worker_set,
    merged,
    pods_of,
    revision,
    worker_set,
)

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/events"
STATEFUL_SETS = "/apis/apps/v1/statefulsets"
REVISIONS = "/apis/apps/v1/controllerrevisions"
LEADER_WORKER_SETS = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
LEASES = "/apis/coordination.k8s.io/v1/leases"
NATIVE_GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
COSCHEDULING_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
LEASE = LeaseName("lockstep", "lockstep-reconciler")
SETTINGS = Settings(lease=LEASE, discovery=0.1, durations=Durations(15.0, 10.0, 0.2))

Start = Callable[[], Reconciler]


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    """An API server that serves the kinds of two schedulers."""
    fake = FakeApi()
    fake.objects |= {NATIVE_GROUPS: {}, COSCHEDULING_GROUPS: {}}
    yield fake.start()
    fake.stop()


@pytest.fixture
def start(fake: FakeApi, tmp_path: Path) -> Iterator[Start]:
    """A function that starts a reconciler; it is stopped at the test's end."""
    running: list[Reconciler] = []
    api = load_api(kubeconfig(tmp_path, fake))

    def start() -> Reconciler:
        reconciler = Reconciler(api, default_configuration(), SETTINGS, identity="one")
        running.append(reconciler)
        reconciler.start()
        return reconciler

    yield start
    for reconciler in running:
        reconciler.stop()
    api.close()


def put(fake: FakeApi, plan: Plan) -> None:
    """Create a replica as LWS would: owners have the UIDs that the server gave them."""
    name = plan.leader_name
    if (NAMESPACE, plan.lws) not in fake.objects.get(LEADER_WORKER_SETS, {}):
        fake.write(LEADER_WORKER_SETS, NAMESPACE, leader_worker_set(plan), create=True)
        fake.write(REVISIONS, NAMESPACE, revision(plan), create=True)
    leader, *workers = pods_of(plan)
    uid = fake.write(PODS, NAMESPACE, leader, create=True)["metadata"]["uid"]
    owned = merged(worker_set(plan), owner("Pod", name, uid))
    uid = fake.write(STATEFUL_SETS, NAMESPACE, owned, create=True)["metadata"]["uid"]
    for worker in workers:
        fake.write(PODS, NAMESPACE, merged(worker, owner("StatefulSet", name, uid)), create=True)


def owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    """Change of who controls an object."""
    return {"metadata": {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": True}]}}


def has_group(fake: FakeApi, plan: Plan, root: str = NATIVE_GROUPS) -> bool:
    """Tell whether a replica has its group."""
    return (NAMESPACE, plan.group) in fake.names(root)


def writes(fake: FakeApi, *methods: str) -> int:
    """Count the writes to group objects."""
    return fake.count(lambda seen: seen.method in methods and "podgroups" in seen.path and not seen.dry)


def events(fake: FakeApi) -> list[tuple[str, str]]:
    """Give reason and message of the events."""
    with fake.changed:
        return [(event["reason"], event["message"]) for event in fake.objects.get(EVENTS, {}).values()]


FIRST = Plan(index=0)
SECOND = Plan(index=1, key="7" * 40)


def test_each_group_is_created_once_and_nothing_else_is_written(fake: FakeApi, start: Start) -> None:
    """One POST a replica and no PATCH, whatever else changes; a second replica later shows that all was seen."""
    put(fake, FIRST)
    start()
    assert eventually(lambda: has_group(fake, FIRST))
    with fake.changed:
        made = fake.objects[NATIVE_GROUPS][NAMESPACE, FIRST.group]
        leader = fake.objects[PODS][NAMESPACE, "vllm-0"]
    assert made["metadata"]["ownerReferences"][0]["uid"] == leader["metadata"]["uid"]
    assert made["spec"] == {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}}
    fake.update(LEADER_WORKER_SETS, NAMESPACE, "vllm", status={"replicas": 1})
    fake.update(NATIVE_GROUPS, NAMESPACE, FIRST.group, status={"conditions": []})
    fake.update(PODS, NAMESPACE, "vllm-0", status={"phase": "Running"})
    put(fake, SECOND)
    assert eventually(lambda: has_group(fake, SECOND))
    assert writes(fake, "POST") == 2
    assert writes(fake, "PATCH", "PUT", "DELETE") == 0


def test_our_own_writes_are_known_though_the_watch_is_silent(fake: FakeApi, start: Start) -> None:
    """The group is not made twice while its watch shows nothing."""
    fake.fault(lambda seen: seen.watches and seen.path == NATIVE_GROUPS, Silence())
    put(fake, FIRST)
    start()
    assert eventually(lambda: has_group(fake, FIRST))
    fake.update(PODS, NAMESPACE, "vllm-0", status={"phase": "Running"})
    put(fake, SECOND)
    assert eventually(lambda: has_group(fake, SECOND))
    assert writes(fake, "POST") == 2


def test_nothing_is_written_before_the_caches_are_whole(fake: FakeApi, start: Start) -> None:
    """A group that is there, and not listed yet, is not made again."""
    put(fake, FIRST)
    leader = fake.objects[PODS][NAMESPACE, "vllm-0"]["metadata"]["uid"]
    fake.write(NATIVE_GROUPS, NAMESPACE, merged(group(FIRST), owner("Pod", "vllm-0", leader)), create=True)

    def lists_groups(seen: Seen) -> bool:
        return seen.path == NATIVE_GROUPS and not seen.watches

    fake.fault(lists_groups, Answer(500, b"{}"), times=2)
    start()
    put(fake, SECOND)
    assert eventually(lambda: has_group(fake, SECOND))
    assert fake.count(lists_groups) == 3
    assert writes(fake, "POST") == 1


def test_deletions_and_edits_by_hand_are_repaired(fake: FakeApi, start: Start) -> None:
    """Fields of others survive the repair (C27)."""
    put(fake, FIRST)
    start()
    assert eventually(lambda: has_group(fake, FIRST))
    edited = {"schedulingPolicy": {"gang": {"minCount": 1}}, "theirs": True}
    fake.update(NATIVE_GROUPS, NAMESPACE, FIRST.group, spec=edited)
    mended = {"schedulingPolicy": {"gang": {"minCount": 2}}, "theirs": True}

    def spec() -> object:
        with fake.changed:
            return fake.objects[NATIVE_GROUPS].get((NAMESPACE, FIRST.group), {}).get("spec")

    assert eventually(lambda: spec() == mended)
    fake.delete(NATIVE_GROUPS, NAMESPACE, FIRST.group)
    assert eventually(lambda: has_group(fake, FIRST))


def test_who_does_not_lead_writes_nothing_until_it_does(fake: FakeApi, start: Start) -> None:
    """Not a group, not an event; with the Lease come the groups of the replicas that were there before (C68)."""
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 2, "leaseTransitions": 1}
    fake.create(LEASES, LEASE.namespace, LEASE.name, spec=spec | {"renewTime": "2026-11-29T22:05:32.000000Z"})
    put(fake, FIRST)
    reconciler = start()
    fenced = {"outcome": "fenced"}
    registry = reconciler.meters.registry
    assert eventually(lambda: registry.get_sample_value("lockstep_reconcile_seconds_count", fenced))
    assert fake.count(lambda seen: seen.method != "GET") == 0
    assert eventually(lambda: has_group(fake, FIRST))
    assert writes(fake, "POST") == 1


REFUSALS = {
    "forbidden": (403, "Forbidden", "podgroups is forbidden"),
    "invalid": (422, "Invalid", "spec.queue: must be open"),
}


@pytest.mark.parametrize(("code", "reason", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refused_write_is_told_and_tried_again(
    fake: FakeApi, start: Start, code: int, reason: str, message: str
) -> None:
    """In the server's words, on the LWS."""
    answer = Answer(code, json.dumps(status(code, reason, message)).encode())
    fake.fault(lambda seen: seen.method == "POST" and "podgroups" in seen.path, answer)
    put(fake, FIRST)
    start()
    assert eventually(lambda: ("WriteRefused", f"vllm-0: {code} {reason}: {message}") in events(fake))
    assert eventually(lambda: has_group(fake, FIRST))


def test_a_busy_server_is_no_refusal(fake: FakeApi, start: Start) -> None:
    """Tried again, and nobody is told."""
    fake.fault(lambda seen: seen.method == "POST" and "podgroups" in seen.path, Answer(429, b"{}"), times=2)
    put(fake, FIRST)
    start()
    assert eventually(lambda: has_group(fake, FIRST))
    assert events(fake) == []


def test_a_kind_that_is_served_later_is_picked_up(fake: FakeApi, start: Start) -> None:
    """Until then it is said; nothing has to be restarted."""
    del fake.objects[COSCHEDULING_GROUPS]
    plan = Plan(provider=COSCHEDULING)
    put(fake, plan)
    reconciler = start()
    message = "the cluster serves none of podgroups.scheduling.x-k8s.io/v1alpha1: no group is made"
    assert eventually(lambda: ("GroupKindNotServed", message) in events(fake))
    with fake.changed:
        fake.objects[COSCHEDULING_GROUPS] = {}
    assert eventually(lambda: has_group(fake, plan, COSCHEDULING_GROUPS))
    assert "podgroups.scheduling.x-k8s.io" in reconciler.ready()


def test_waiting_groups_are_touched_when_a_node_comes(fake: FakeApi, start: Start) -> None:
    """Coscheduling forgets them; kube-scheduler does not, and its groups are left alone."""
    plan = Plan(provider=COSCHEDULING, lws="b")
    put(fake, plan)
    put(fake, FIRST)
    start()
    assert eventually(lambda: has_group(fake, plan, COSCHEDULING_GROUPS) and has_group(fake, FIRST))

    def touched() -> bool:
        with fake.changed:
            made = fake.objects[COSCHEDULING_GROUPS][NAMESPACE, plan.group]
            return "lockstep.dev/capacity-grew" in made["metadata"].get("annotations", {})

    fake.create(NODES, "", "n1", spec={}, status={"allocatable": {"cpu": "8"}})
    assert eventually(touched)
    assert fake.count(lambda seen: seen.method == "PATCH" and "scheduling.k8s.io" in seen.path) == 0


def test_a_malformed_leader_is_told(fake: FakeApi, start: Start) -> None:
    """By field and value; others go on."""
    put(fake, FIRST)
    broken = merged(pods_of(SECOND)[0], {"metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/size": "two"}}})
    fake.write(PODS, NAMESPACE, broken, create=True)
    start()
    path = "metadata.annotations[leaderworkerset.sigs.k8s.io/size]"
    message = f'pod team-a/vllm-1: {path}: must be a whole number of at least 1, got "two"'
    assert eventually(lambda: ("MalformedPod", message) in events(fake))
    assert eventually(lambda: has_group(fake, FIRST))


def test_ready_means_whole_caches_and_alive_means_no_watch_hangs(fake: FakeApi, start: Start) -> None:
    """Each check by its name; a watch whose list does not come keeps it from being ready, not from being alive."""

    def lists_nodes(seen: Seen) -> bool:
        return seen.path == NODES and not seen.watches

    fake.fault(lists_nodes, Answer(500, b"{}"), times=2)
    reconciler = start()
    assert eventually(lambda: [name for name, problem in reconciler.ready().items() if problem] == ["nodes"])
    assert reconciler.ready()["nodes"] == "not synced"
    assert not any(reconciler.alive().values())
    assert eventually(lambda: not any(reconciler.ready().values()))
    assert reconciler.ready().keys() - {"discovery"} == reconciler.alive().keys() - {"election", "workers"}


def test_of_two_watches_with_one_title_the_one_with_a_problem_counts(fake: FakeApi, start: Start) -> None:
    """Pods are watched twice where a scheduler forgets its groups."""
    fake.fault(lambda seen: seen.path == PODS and "fieldSelector" not in seen.query, Answer(500, b"{}"), times=50)
    reconciler = start()
    assert eventually(lambda: fake.count(lambda seen: seen.watches and "fieldSelector" in seen.query))
    assert reconciler.ready()["pods"] == "not synced"


ERRORS: dict[str, tuple[ApiError, bool]] = {
    "forbidden": (Forbidden(403, "Forbidden", ""), True),
    "invalid": (ApiError(422, "Invalid", ""), True),
    "too large": (ApiError(413, "RequestEntityTooLarge", ""), True),
    "changed meanwhile": (Conflict(409, "Conflict", ""), False),
    "gone": (NotFound(404, "NotFound", ""), False),
    "busy": (TooManyRequests(429, "TooManyRequests", ""), False),
    "a server error": (ApiError(500, "InternalError", ""), False),
}


@pytest.mark.parametrize(("error", "lasting"), ERRORS.values(), ids=ERRORS.keys())
def test_a_refusal_lasts_until_somebody_changes_something(error: ApiError, *, lasting: bool) -> None:
    """What another try may mend is none."""
    assert is_refusal(error) is lasting
