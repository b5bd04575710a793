"""What the cache puts together, and whom a change concerns."""

from typing import Any

from gangs.members import Malformed
from reconciler.cache import Cache, is_leader
from reconciler.objects import GroupObject, Pod
from tests.builders import LWS, NAMESPACE
from tests.reconciler.sights import LEADER, NATIVE, Plan, World, decoded, group, merged, pods_of, replica

KIND = NATIVE.kinds[0]


def cache_of(*objects: Any) -> Cache:
    return World(*objects).cache()


def test_a_sight_holds_everything_about_one_leader() -> None:
    """Its pods, StatefulSet, LWS, revisions, namespace and the group that its members name."""
    namespace = {"kind": "Namespace", "metadata": {"name": NAMESPACE}}
    others = replica(index=1, key="7" * 40)
    sight = cache_of(*replica(), *others, group(Plan()), namespace).sight(LEADER, KIND, age=3.0, recreations=2)
    assert not isinstance(sight, Malformed | None)
    assert sight.leader.metadata.name == "vllm-0"
    assert [pod.metadata.name for pod in sight.workers] == ["vllm-0-1"]
    assert sight.stateful_set is not None
    assert sight.lws is not None
    assert sight.group is not None
    assert sight.group.metadata.name == sight.member.group == Plan().group
    assert [known.metadata.name for known in sight.revisions] == ["vllm-69fbc5554-1"]
    assert sight.namespace is not None
    assert (sight.age, sight.recreations) == (3.0, 2)


def test_without_a_served_kind_there_is_no_group() -> None:
    """Whatever other kinds hold under that name."""
    sight = cache_of(*replica(), group(Plan())).sight(LEADER, None, age=0.0, recreations=0)
    assert not isinstance(sight, Malformed | None)
    assert sight.group is None


def test_who_is_no_leader_has_no_sight() -> None:
    """Workers, and pods that are not there."""
    cache = cache_of(*replica())
    assert cache.sight((NAMESPACE, "vllm-0-1"), KIND, age=0.0, recreations=0) is None
    assert cache.sight((NAMESPACE, "vllm-9"), KIND, age=0.0, recreations=0) is None


def test_a_pod_with_the_leaders_index_and_no_lws_has_no_sight() -> None:
    """It is of no LWS."""
    pod = merged(pods_of(Plan())[0], {"metadata": {"labels": {f"{LWS}name": None}}})
    assert cache_of(pod).sight(LEADER, KIND, age=0.0, recreations=0) is None


def test_a_malformed_leader_is_told_by_its_problem() -> None:
    """In the words of `gangs.members`."""
    pod = merged(pods_of(Plan())[0], {"metadata": {"annotations": {f"{LWS}size": "two"}}})
    problem = cache_of(pod).sight(LEADER, KIND, age=0.0, recreations=0)
    assert str(problem) == f'metadata.annotations[{LWS}size]: must be a whole number of at least 1, got "two"'


def test_a_leader_has_the_index_and_names_no_leader() -> None:
    """By both (kubernetes-sigs/lws#391)."""
    leader, worker = (decoded(pod) for pod in pods_of(Plan()))
    nested = decoded(merged(pods_of(Plan())[1], {"metadata": {"labels": {f"{LWS}worker-index": "0"}}}))
    assert [is_leader(pod) for pod in (leader, worker, nested)] == [True, False, False]


def test_a_change_concerns_the_leader_it_is_about() -> None:
    """A leader itself; for a worker the leader it names, also when that one is not there."""
    cache = cache_of(*replica())
    leader, worker = cache.pods.objects()
    assert list(cache.leaders_of_pod(leader)) == [LEADER]
    assert list(cache.leaders_of_pod(worker)) == [LEADER]
    assert list(Cache().leaders_of_pod(worker)) == [LEADER]
    assert list(cache.leaders_of_pod(Pod())) == []


def test_a_group_concerns_its_owner_and_who_computes_its_name() -> None:
    """A deleted group of a dead leader concerns the living one whose name is the same."""
    cache = cache_of(*replica(life=2))
    stale: GroupObject = decoded(group(Plan(life=1)))
    assert set(cache.leaders_of_group(stale)) == {LEADER}
    bare = decoded({"kind": "PodGroup", "metadata": {"name": Plan().group, "namespace": NAMESPACE}})
    assert set(cache.leaders_of_group(bare)) == {LEADER}
    other = decoded(merged(group(Plan()), {"metadata": {"name": "other", "namespace": "elsewhere"}}))
    assert list(cache.leaders_of_group(other)) == [("elsewhere", "vllm-0")]


def test_leaders_are_found_by_lws_namespace_and_all() -> None:
    """Never workers."""
    cache = cache_of(*replica(), *replica(index=1, key="7" * 40), *replica(lws="other"))
    assert cache.leaders_of_lws(NAMESPACE, "vllm") == [LEADER, (NAMESPACE, "vllm-1")]
    assert cache.leaders_of_lws("elsewhere", "vllm") == []
    assert len(cache.leaders_of_namespace(NAMESPACE)) == len(cache.leaders()) == 3
    assert [pod.metadata.name for pod in cache.leader_pods()] == ["vllm-0", "vllm-1", "other-0"]


def test_the_lws_of_a_pod_is_found_by_its_label() -> None:
    """In the pod's namespace."""
    cache = cache_of(*replica())
    found = cache.lws_of(cache.pods.objects()[1])
    assert found is not None
    assert found.metadata.name == "vllm"
    assert cache.lws_of(Pod()) is None


def test_our_own_write_is_seen_before_the_watch_shows_it() -> None:
    """And the watch's newer state before our older write."""
    cache = cache_of(*replica())
    made = decoded(merged(group(Plan()), {"metadata": {"resourceVersion": "900"}}))
    cache.written.remember(KIND, made)
    assert cache.group(KIND, NAMESPACE, Plan().group) == made
    assert Cache().group(KIND, NAMESPACE, Plan().group) is None
