"""What the cache shows of one replica: who belongs to it, how large it is built, what it asks."""

from typing import Any

import msgspec
import pytest

from gangs.intents import Intent
from reconciler.replicas import NotYet, Sight, have_arrived, read_replica, real_size, revision_data, whole_requests
from schedulers.contract import Arrival, Replica
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.sights import (
    COSCHEDULING,
    EXCLUSIVE,
    LEADER_READY,
    NATIVE,
    Plan,
    World,
    decoded,
    group,
    pods_of,
    replica,
    revision,
    worker_set,
)


def seen(age: float = 10.0, **difference: Any) -> Sight:
    return World(*replica(**difference)).sight(age=age)


def read(sight: Sight, strangers: int = 0) -> Replica:
    found = read_replica(sight, NATIVE, Intent(), strangers=strangers)
    assert isinstance(found, Replica)
    return found


SIZES = {
    "the worker StatefulSet counts, where the live size was larger": ({"size": 2, "annotated": 3}, 2),
    "the worker StatefulSet counts, where the live size was smaller": ({"size": 3, "annotated": 2}, 3),
    "without it the annotation is all there is": ({"size": 3, "annotated": 4, "worker_set": False}, 4),
    "a replica of one": ({"size": 1, "worker_set": False}, 1),
    "nobody gets workers once the live size is 1": ({"size": 1, "annotated": 2, "worker_set": False}, 1),
}


@pytest.mark.parametrize(("difference", "size"), SIZES.values(), ids=SIZES.keys())
def test_the_size_is_what_is_built(difference: dict[str, Any], size: int) -> None:
    """LWS 0.8 annotates old-revision replicas with the live size, so the StatefulSet is believed before it."""
    assert real_size(seen(**difference)) == size


def test_what_a_group_depends_on_is_read() -> None:
    """Names, size, minimum and the whole replica's requests, the missing worker's from its template."""
    assert read(seen(size=3, workers=1)) == Replica(
        namespace=NAMESPACE,
        lws="vllm",
        index=0,
        revision="69fbc5554",
        group=Plan().group,
        size=3,
        minimum=3,
        requests={"cpu": "3", "nvidia.com/gpu": "24"},
        late=None,
        priority_class="",
        intent=Intent(),
        template_size=3,
    )


PATIENCE = {
    "in time, no StatefulSet, just seen": ({"worker_set": False}, 0.5, 1.5),
    "late workers have no StatefulSet to wait for": ({"worker_set": False, "late": LEADER_READY}, 0.5, None),
    "a replica of one has none either": ({"worker_set": False, "size": 1}, 0.5, None),
    "an old replica of one may get workers": ({"worker_set": False, "size": 2, "annotated": 1}, 0.5, 1.5),
    "an old replica of two may get some of an LWS of one": (
        {"worker_set": False, "size": 1, "annotated": 2},
        0.5,
        1.5,
    ),
    "with the StatefulSet nothing is a guess": ({}, 0.0, None),
    "after two seconds the annotation is believed": ({"worker_set": False}, 2.0, None),
}


@pytest.mark.parametrize(("difference", "age", "seconds"), PATIENCE.values(), ids=PATIENCE.keys())
def test_a_size_that_is_a_guess_is_waited_for(difference: dict[str, Any], age: float, seconds: float | None) -> None:
    """A group made from a guess would be written twice; but not for ever."""
    found = read_replica(seen(age=age, **difference), NATIVE, Intent())
    wanted = "its worker StatefulSet is not there yet: the size is a guess"
    assert (found == NotYet(wanted, seconds)) if seconds is not None else isinstance(found, Replica)


def test_a_group_that_exists_is_kept_right_without_waiting() -> None:
    """Who has a group already is never told to wait for the StatefulSet."""
    world = World(*replica(worker_set=False), group(Plan()))
    assert isinstance(read_replica(world.sight(age=0.0), NATIVE, Intent()), Replica)


def test_without_its_lws_a_replica_is_not_judged() -> None:
    """The LWS says whether workers come late; a group made without it could never start."""
    sight = msgspec.structs.replace(seen(), lws=None)
    assert read_replica(sight, NATIVE, Intent()) == NotYet("its LeaderWorkerSet is not in the cache", 1.0)


def test_without_a_template_for_missing_workers_a_replica_is_not_judged() -> None:
    """Half of the requests would be worse than none."""
    sight = msgspec.structs.replace(seen(worker_set=False, size=2), revisions=())
    assert read_replica(sight, NATIVE, Intent()) == NotYet("the template of its workers is not in the cache", 1.0)


LATE: dict[str, tuple[dict[str, Any], int]] = {
    "leader alone": ({"worker_set": False}, 1),
    "StatefulSet, no worker yet": ({"workers": 0}, 1),
    "some workers": ({"workers": 2}, 1),
    "all workers": ({"workers": 3}, 4),
}


@pytest.mark.parametrize("late", [LEADER_READY, EXCLUSIVE], ids=["LeaderReady", "exclusive-topology"])
@pytest.mark.parametrize(("difference", "minimum"), LATE.values(), ids=LATE.keys())
def test_the_minimum_is_raised_when_late_workers_are_there(late: Any, difference: dict[str, Any], minimum: int) -> None:
    """One while the leader has to go first, the size once nobody is missing; the requests are always the whole."""
    found = read(seen(size=4, late=late, **difference))
    assert (found.minimum, found.requests["nvidia.com/gpu"]) == (minimum, "32")
    assert found.late is not None


def test_a_raised_minimum_stays_while_a_worker_is_there() -> None:
    """A worker replaced in place does not lower and raise it again."""
    plan = Plan(size=4, late=LEADER_READY)
    live = group(plan)
    assert live["spec"]["schedulingPolicy"]["gang"]["minCount"] == 4
    assert read(World(*replica(size=4, late=LEADER_READY, workers=2), live).sight()).minimum == 4
    assert read(World(*replica(size=4, late=LEADER_READY, workers=0), live).sight()).minimum == 1


STRANGERS = {"none": (0, 3), "one": (1, 2), "all but the leader": (2, 1), "more than there are": (5, 1)}


@pytest.mark.parametrize(("strangers", "minimum"), STRANGERS.values(), ids=STRANGERS.keys())
def test_the_minimum_goes_without_strangers_and_is_never_below_one(strangers: int, minimum: int) -> None:
    """Pods that can't become members must not be waited for; a minimum of 0 would be refused."""
    assert read(seen(size=3), strangers=strangers).minimum == minimum


ARRIVALS = {
    "all exist": ([{}, {}], Arrival.EXIST, True),
    "one is missing": ([{}], Arrival.EXIST, False),
    "one has finished": ([{}, {"status": {"phase": "Failed"}}], Arrival.EXIST, False),
    "exist but are not bound": ([{}, {}], Arrival.BOUND, False),
    "all bound": ([{"spec": {"nodeName": "n1"}}] * 2, Arrival.BOUND, True),
}


@pytest.mark.parametrize(("changes", "arrival", "there"), ARRIVALS.values(), ids=ARRIVALS.keys())
def test_late_workers_arrive_by_existing_or_by_being_bound(
    changes: list[JsonObject], arrival: Arrival, *, there: bool
) -> None:
    """What counts is the scheduler's own rule."""
    pods = pods_of(Plan(size=3, changes={f"vllm-0-{i + 1}": change for i, change in enumerate(changes)}))
    workers = [decoded(pod) for pod in pods[1 : 1 + len(changes)]]
    assert have_arrived(workers, 2, arrival) is there


def test_workers_are_told_by_the_chain_of_controllers() -> None:
    """A pod that only claims the leader's name, or belongs to an earlier StatefulSet of that name, is nobody's."""
    stray = pods_of(Plan(size=3, life=7))[2]
    world = World(*replica(size=3, workers=1), stray)
    sight = world.sight()
    assert [pod.metadata.name for pod in sight.workers] == ["vllm-0-1", "vllm-0-2"]
    assert [pod.metadata.name for pod in sight.pods] == ["vllm-0", "vllm-0-1"]


def test_a_statefulset_of_an_earlier_leader_is_not_believed() -> None:
    """While the old one is collected, the new leader's size is its own guess."""
    world = World(*replica(size=2, life=2, annotated=3, worker_set=False), worker_set(Plan(size=5, life=1)))
    assert world.sight().worker_set is None
    assert real_size(world.sight()) == 3


def test_requests_come_from_the_pods_that_exist() -> None:
    """What a webhook added to a stored worker counts; a finished one counts as its template."""
    bigger = {"spec": {"overhead": {"cpu": "500m"}}}
    sight = seen(size=3, changes={"vllm-0-1": bigger, "vllm-0-2": bigger | {"status": {"phase": "Failed"}}})
    found = whole_requests(sight, 3)
    assert found is not None
    assert found["cpu"] == 3_500_000_000


def test_the_revision_is_the_lws_own() -> None:
    """StatefulSets have revisions with the same label and other data."""
    own = revision(Plan(gpus=3))
    other = revision(Plan(gpus=5))
    other["metadata"] |= {"ownerReferences": [{"kind": "StatefulSet", "uid": "x", "controller": True}]}
    data = revision_data([decoded(other), decoded(own)], "69fbc5554")
    assert data is not None
    template = data.spec.leader_worker_template.worker_template.spec
    assert template.containers is not None
    assert template.containers[0].resources is not None
    assert template.containers[0].resources.requests == {"cpu": "1", "nvidia.com/gpu": "3"}
    assert revision_data([decoded(other), decoded(own)], "other") is None


def test_words_are_read_in_their_order() -> None:
    """Pod before LWS before namespace before configuration."""
    namespace = {
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "annotations": {"lockstep.dev/schedule-timeout": "30"}},
    }
    world = World(*replica(provider=COSCHEDULING), namespace)
    found = read_replica(world.sight(), COSCHEDULING, Intent(schedule_timeout=10))
    assert isinstance(found, Replica)
    assert found.intent == Intent(schedule_timeout=30)
    nearer = {"lockstep.dev/schedule-timeout": "40"}
    world = World(*replica(provider=COSCHEDULING, lws_annotations=nearer), namespace)
    found = read_replica(world.sight(), COSCHEDULING, Intent(schedule_timeout=10))
    assert isinstance(found, Replica)
    assert found.intent == Intent(schedule_timeout=40)
