"""Discovery follows what the server serves, and never forgets by mistake."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.api import HttpApi, load_api
from reconciler.contract import ApiError, CallFailed, object_path
from reconciler.discovery import Discovery, served_plurals, served_versions, serves
from schedulers.contract import GroupKind
from tests.reconciler.fake_api import Answer, FakeApi, InProcess, eventually, kubeconfig

NEW = GroupKind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
OLD = GroupKind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")
OTHER = GroupKind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
PODS = GroupKind("", "v1", "Pod", "pods")


def serve(fake: FakeApi, *kinds: GroupKind) -> None:
    """Let the server serve exactly these kinds."""
    roots = {object_path(kind) for kind in kinds}
    for root in roots:
        fake.objects.setdefault(root, {})
    fake.unserved = set(fake.objects) - roots


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def told() -> list[frozenset[GroupKind]]:
    return []


@pytest.fixture
def discovery(fake: FakeApi, told: list[frozenset[GroupKind]]) -> Discovery:
    return Discovery(InProcess(fake), [NEW, OLD, OTHER], on_change=told.append)


PATHS = {
    "all pods": (PODS, ("",), "/api/v1/pods"),
    "pods of a namespace": (PODS, ("team-a",), "/api/v1/namespaces/team-a/pods"),
    "a subresource of a group's object": (
        NEW,
        ("team-a", "g", "status"),
        "/apis/scheduling.k8s.io/v1beta1/namespaces/team-a/podgroups/g/status",
    ),
    "a name that tries to leave its place": (PODS, ("a/../b", "?x#"), "/api/v1/namespaces/a%2F..%2Fb/pods/%3Fx%23"),
}


@pytest.mark.parametrize(("kind", "rest", "path"), PATHS.values(), ids=PATHS)
def test_paths(kind: GroupKind, rest: tuple[str, ...], path: str) -> None:
    """Paths are built per kind, with every part encoded."""
    assert object_path(kind, *rest) == path


def test_versions_and_plurals(fake: FakeApi) -> None:
    """Groups give their versions and resources; what is not served gives nothing."""
    serve(fake, NEW, OLD, PODS)
    api = InProcess(fake)
    assert served_versions(api, "scheduling.k8s.io") == ("v1alpha2", "v1beta1")
    assert served_versions(api, "scheduling.volcano.sh") == ()
    assert served_plurals(api, "", "v1") == {"pods"}
    assert [serves(api, kind) for kind in (NEW, OTHER, PODS)] == [True, False, True]


def test_c32_a_kind_that_appears_later_is_picked_up(
    fake: FakeApi, discovery: Discovery, told: list[frozenset[GroupKind]]
) -> None:
    """A scheduler installed after us is found at the next poll, and only changes are told."""
    discovery.poll()
    assert (discovery.served, discovery.complete, told) == (frozenset(), True, [])
    serve(fake, OTHER)
    discovery.poll()
    discovery.poll()
    assert told == [{OTHER}]


def test_complete_means_passed_on_too(fake: FakeApi) -> None:
    """Who hears of a kind has prepared for it before discovery counts as complete."""
    serve(fake, OTHER)
    seen: list[bool] = []
    one = Discovery(InProcess(fake), [OTHER], on_change=lambda _: seen.append(one.complete))
    one.poll()
    assert (seen, one.complete) == ([False], True)


def test_a_kind_is_dropped_when_it_is_absent_twice(
    fake: FakeApi, discovery: Discovery, told: list[frozenset[GroupKind]]
) -> None:
    """A server that has just started may not know its custom kinds for a moment; a removed kind stays away."""
    serve(fake, NEW, OTHER)
    discovery.poll()
    serve(fake, NEW)
    discovery.poll()
    assert OTHER in discovery.served
    serve(fake, NEW, OTHER)
    discovery.poll()
    serve(fake, NEW)
    discovery.poll()
    assert OTHER in discovery.served
    discovery.poll()
    assert discovery.served == {NEW}
    assert told == [{NEW, OTHER}, {NEW}]


def test_the_preferred_version_that_is_served(fake: FakeApi, discovery: Discovery) -> None:
    """Of a provider's kinds the first served one is used, none where none is."""
    discovery.poll()
    assert discovery.first([NEW, OLD]) is None
    serve(fake, OLD)
    discovery.poll()
    assert discovery.first([NEW, OLD]) == OLD
    serve(fake, OLD, NEW)
    discovery.poll()
    assert discovery.first([NEW, OLD]) == NEW


ODD = {
    "an error": Answer(503, b""),
    "no document": Answer(200, b"<html>"),
    "another document": Answer(200, b'{"resources": 7}'),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_a_server_that_does_not_tell_changes_nothing(fake: FakeApi, discovery: Discovery, answer: Answer) -> None:
    """What was known stays while the answer is no answer, and a start without any answer is not complete."""
    fake.fault(lambda _: True, answer, times=3)
    discovery.poll()
    completes = [discovery.complete]
    serve(fake, NEW)
    discovery.poll()
    completes.append(discovery.complete)
    assert (set(discovery.served), completes) == ({NEW}, [False, True])
    fake.fault(lambda _: True, answer, times=9)
    for _ in range(3):
        discovery.poll()
    assert discovery.served == {NEW}


def test_errors_are_not_absence(fake: FakeApi) -> None:
    """Asked directly, an error is raised and never taken for "not served"."""
    fake.fault(lambda _: True, Answer(503), times=2)
    with pytest.raises(ApiError):
        served_versions(InProcess(fake), "g")
    with pytest.raises(CallFailed):
        serves(InProcess(fake), NEW)


@pytest.fixture
def served(fake: FakeApi, tmp_path: Path) -> Iterator[HttpApi]:
    fake.start()
    api = load_api(kubeconfig(tmp_path, fake))
    yield api
    api.close()
    fake.stop()


def test_polls_in_a_thread_until_stopped(fake: FakeApi, served: HttpApi) -> None:
    """Started, it follows by itself; stopped, it asks no more."""
    discovery = Discovery(served, [NEW], every=0.05)
    discovery.start()
    serve(fake, NEW)
    assert eventually(lambda: NEW in discovery.served)
    serve(fake)
    assert eventually(lambda: NEW not in discovery.served)
    assert discovery.stop()
    asked = len(fake.requests)
    assert not eventually(lambda: len(fake.requests) > asked, 0.2)
