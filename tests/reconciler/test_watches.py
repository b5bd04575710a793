"""Which kinds are watched, and whom each change concerns."""

from typing import Any

import pytest

from reconciler.cache import Cache
from reconciler.telemetry import Meters
from reconciler.watches import Hints, Placed, Watches
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.fake_api import FakeApi, InProcess
from tests.reconciler.sights import (
    LEADER,
    NATIVE,
    Plan,
    World,
    decoded,
    group,
    leader_worker_set,
    merged,
    pods_of,
    replica,
    revision,
    worker_set,
)

KIND = NATIVE.kinds[0]
SECOND = (NAMESPACE, "vllm-1")


class Heard:
    """Hints about a cluster of two replicas, and what they led to."""

    def __init__(self) -> None:
        """Nothing has been heard yet."""
        self.keys: list[tuple[str, str]] = []
        self.growths = 0
        self.cache = World(*replica(), *replica(index=1, key="7" * 40)).cache()
        self.hints = Hints(self.cache, self.keys.append, self._grow)

    def _grow(self) -> None:
        self.growths += 1


@pytest.fixture
def heard() -> Heard:
    """Hints with nothing heard."""
    return Heard()


def test_a_pod_concerns_its_leader(heard: Heard) -> None:
    """Added, changed, gone; both lives where one change shows two."""
    leader, worker = map(decoded, pods_of(Plan()))
    other = decoded(
        merged(pods_of(Plan())[1], {"metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/leader-name": "vllm-1"}}})
    )
    heard.hints.pod(None, leader)
    heard.hints.pod(worker, None)
    assert heard.keys == [LEADER, LEADER]
    heard.hints.pod(worker, other)
    assert heard.keys[2:] == [LEADER, SECOND]


def test_only_workers_statefulsets_concern_anybody(heard: Heard) -> None:
    """That of the leaders is owned by the LWS."""
    heard.hints.stateful_set(None, decoded(worker_set(Plan())))
    heard.hints.stateful_set(decoded(worker_set(Plan())), None)
    assert heard.keys == [LEADER, LEADER]
    owner = {"ownerReferences": [{"kind": "LeaderWorkerSet", "name": "vllm", "uid": "lws/vllm", "controller": True}]}
    heard.hints.stateful_set(None, decoded(merged(worker_set(Plan()), {"metadata": owner})))
    assert len(heard.keys) == 2


LWS_CHANGES: dict[str, tuple[JsonObject, int]] = {
    "status or version alone": ({"status": {"replicas": 3}, "metadata": {"resourceVersion": "9"}}, 0),
    "the spec": ({"spec": {"startupPolicy": "LeaderReady"}}, 2),
    "annotations, where the words stand": ({"metadata": {"annotations": {"lockstep.dev/queue": "gold"}}}, 2),
    "another life": ({"metadata": {"uid": "new"}}, 2),
}


@pytest.mark.parametrize(("change", "leaders"), LWS_CHANGES.values(), ids=LWS_CHANGES.keys())
def test_an_lws_concerns_its_leaders_when_what_is_read_changes(heard: Heard, change: JsonObject, leaders: int) -> None:
    """Its status changes with every pod: of 200 replicas that would be 200 looks at each."""
    lws = leader_worker_set(Plan())
    heard.hints.lws(decoded(lws), decoded(merged(lws, change)))
    assert len(heard.keys) == leaders


def test_an_lws_that_comes_or_goes_concerns_its_leaders(heard: Heard) -> None:
    """Late or early, whatever the order of the watches."""
    heard.hints.lws(None, decoded(leader_worker_set(Plan())))
    heard.hints.lws(decoded(leader_worker_set(Plan())), None)
    assert heard.keys == [LEADER, SECOND] * 2


def test_a_revision_concerns_the_leaders_of_its_lws(heard: Heard) -> None:
    """One without the label, nobody."""
    heard.hints.revision(None, decoded(revision(Plan())))
    assert heard.keys == [LEADER, SECOND]
    heard.hints.revision(None, decoded(merged(revision(Plan()), {"metadata": {"labels": None}})))
    assert len(heard.keys) == 2


def namespace(annotations: JsonObject) -> Any:
    """The replicas' namespace."""
    return decoded({"kind": "Namespace", "metadata": {"name": NAMESPACE, "annotations": annotations}})


def test_a_namespace_concerns_everybody_in_it_when_its_annotations_change(heard: Heard) -> None:
    """Words stand there."""
    heard.hints.namespace(namespace({"a": "b"}), namespace({"a": "b"}))
    assert heard.keys == []
    heard.hints.namespace(None, namespace({}))
    heard.hints.namespace(namespace({}), namespace({"a": "b"}))
    assert heard.keys == [LEADER, SECOND] * 2


def test_a_group_concerns_its_leader_and_ends_what_was_remembered(heard: Heard) -> None:
    """The watch has caught up with our write."""
    made = decoded(merged(group(Plan()), {"metadata": {"resourceVersion": "9"}}))
    heard.cache.written.remember(KIND, made)
    heard.hints.group(KIND, None, made)
    assert set(heard.keys) == {LEADER}
    assert heard.cache.group(KIND, NAMESPACE, Plan().group) is None
    heard.keys.clear()
    heard.hints.group(KIND, made, None)
    assert set(heard.keys) == {LEADER}


def test_room_that_is_given_back_is_growth(heard: Heard) -> None:
    """A placed pod that goes or finishes, a node that grows; one that comes is none."""
    heard.hints.placed(None, Placed())
    heard.hints.placed(Placed(), Placed())
    assert heard.growths == 0
    heard.hints.placed(Placed(), None)
    heard.hints.node(None, decoded({"kind": "Node", "metadata": {"name": "n1"}}))
    heard.hints.node(decoded({"kind": "Node", "metadata": {"name": "n1"}}), None)
    assert heard.growths == 2


def watches(*namespaces: str) -> Watches:
    """Watches of a process, not started."""
    cache = Cache()
    hints = Hints(cache, lambda _: None, lambda: None)
    return Watches(InProcess(FakeApi()), cache, hints, namespaces, Meters())


def test_everything_is_watched_once_in_all_namespaces() -> None:
    """LWS's own objects by its label; groups of a kind whole, since theirs may lose a label."""
    titles = [(watch.target.title, watch.target.label_selector) for watch in watches().of_objects()]
    lws = "leaderworkerset.sigs.k8s.io/name"
    assert titles == [
        ("pods", lws),
        ("leaderworkersets.leaderworkerset.x-k8s.io", ""),
        ("statefulsets.apps", lws),
        ("controllerrevisions.apps", lws),
        ("namespaces", ""),
        ("nodes", ""),
    ]
    [groups] = watches().of_groups(KIND)
    assert (groups.target.title, groups.target.label_selector) == ("podgroups.scheduling.k8s.io", "")


def test_namespaces_are_watched_one_by_one_and_nodes_once() -> None:
    """Whoever may only see some namespaces sees those."""
    made = watches("a", "b")
    assert [watch.target.namespace for watch in made.of_objects()] == ["a", "b"] * 4 + ["", ""]
    assert [watch.target.namespace for watch in made.of_groups(KIND)] == ["a", "b"]


def test_placed_pods_are_those_that_hold_capacity() -> None:
    """One that finishes leaves the selection as if it were deleted."""
    [watch] = watches().of_placed_pods()
    assert watch.target.field_selector == "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
