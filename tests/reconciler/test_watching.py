"""List and watch against a real HTTP server that does what real ones do on bad days."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.api import HttpApi, load_api
from reconciler.pacing import Backoff
from reconciler.store import Store
from reconciler.telemetry import Meters
from reconciler.watching import Settings, Target, Watch
from schedulers.contract import GroupKind
from tests.reconciler.fake_api import Answer, FakeApi, Seen, Silence, eventually, kubeconfig

PODS = GroupKind("", "v1", "Pod", "pods")
ROOT = "/api/v1/pods"
FAST = Settings(page=3, call=2.0, server_timeout=2.0, margin=0.5, settled=0.2, backoff=Backoff(0.02, 0.1))


class Meta(msgspec.Struct, frozen=True):
    """Identity of an object."""

    name: str
    namespace: str
    resourceVersion: str  # noqa: N815
    uid: str


class Pod(msgspec.Struct, frozen=True):
    """What these tests read of an object."""

    metadata: Meta
    spec: dict[str, int] = {}


class Bench:
    """A server, a watch on it, and a mirror built from nothing but the hints."""

    def __init__(self, fake: FakeApi, api: HttpApi) -> None:
        """Prepare; `watch` starts."""
        self.fake, self.api, self.meters = fake, api, Meters()
        self.store: Store[Pod] = Store({"spec": lambda pod: [pod.spec["x"]] if pod.spec else []})
        self.mirror: dict[tuple[str, str], str] = {}
        self.hints: list[tuple[Pod | None, Pod | None]] = []
        self.started: list[Watch[Pod]] = []

    def watch(self, target: Target | None = None, **more: Any) -> Watch[Pod]:
        """Start a watch."""
        arguments: dict[str, Any] = {"settings": FAST, "meters": self.meters} | more
        decode = msgspec.json.Decoder(Pod).decode
        watch = Watch(self.api, target or Target(PODS), decode, self.store, self._hint, **arguments)
        watch.start()
        self.started.append(watch)
        return watch

    def _hint(self, old: Pod | None, new: Pod | None) -> None:
        self.hints.append((old, new))
        pod = new or old
        assert pod is not None
        key = (pod.metadata.namespace, pod.metadata.name)
        assert self.mirror.get(key) == (old.metadata.resourceVersion if old else None)
        if new is None:
            del self.mirror[key]
        else:
            self.mirror[key] = new.metadata.resourceVersion

    def known(self) -> dict[tuple[str, str], str]:
        """Give namespace and name -> version of what the store has."""
        pods = (pod.metadata for pod in self.store.objects())
        return {(meta.namespace, meta.name): meta.resourceVersion for meta in pods}

    def agrees(self) -> bool:
        """Compare server, store and mirror."""
        return self.fake.names(ROOT) == self.known() == self.mirror

    def count(self, name: str, **labels: str) -> float:
        """Read a counter."""
        return self.meters.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    fake = FakeApi().start()
    api = load_api(kubeconfig(tmp_path, fake))
    made = Bench(fake, api)
    yield made
    for watch in made.started:
        assert watch.stop()
    api.close()
    fake.stop()


def of_watch(seen: Seen) -> bool:
    return seen.watches


def of_list(seen: Seen) -> bool:
    return seen.lists


def of_later_page(seen: Seen) -> bool:
    return "continue" in seen.query


def test_lists_in_pages_and_follows(bench: Bench) -> None:
    """Ten objects come in four pages; what is created, changed and deleted afterwards arrives by itself."""
    for number in range(10):
        bench.fake.create(ROOT, "default", f"p{number}")
    watch = bench.watch()
    assert watch.wait_synced(5)
    assert (len(bench.store), bench.fake.count(of_later_page)) == (10, 3)
    bench.fake.update(ROOT, "default", "p3", spec={"x": 7})
    bench.fake.delete(ROOT, "default", "p4")
    bench.fake.create(ROOT, "other", "q")
    assert eventually(bench.agrees)
    assert [pod.metadata.name for pod in bench.store.by_index("spec", 7)] == ["p3"]
    assert bench.fake.count(of_list) == 1


def test_asks_for_what_it_should(bench: Bench) -> None:
    """Pages have a limit; a watch asks for bookmarks, a server timeout and the list's version, with its selectors."""
    watch = bench.watch(Target(PODS, "default", label_selector="a=b", field_selector="c=d"), luck=lambda: 0.5)
    assert watch.wait_synced(5)
    assert eventually(lambda: bench.fake.count(of_watch) > 0)
    first, then = bench.fake.requests[:2]
    selectors = {"labelSelector": "a=b", "fieldSelector": "c=d"}
    assert first.query == selectors | {"limit": "3"}
    assert then.query == selectors | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "timeoutSeconds": "2",
    }
    assert then.path == "/api/v1/namespaces/default/pods"


def test_c68_quiet_watch_delivers_the_first_object(bench: Bench) -> None:
    """A kind without objects outlives many server timeouts and compactions, and the first object arrives at once."""
    bench.fake.bookmark_every = 0.1
    quick = msgspec.structs.replace(FAST, server_timeout=1.0)
    watch = bench.watch(settings=quick)
    assert watch.wait_synced(5)
    for _ in range(10):
        bench.fake.create("/api/v1/others", "default", f"noise-{time.monotonic_ns()}")
        time.sleep(0.15)
        bench.fake.compact()
        time.sleep(0.15)
    assert bench.fake.count(of_watch) > 2
    assert bench.fake.count(of_list) == 1
    bench.fake.create(ROOT, "default", "first")
    assert eventually(bench.agrees, 2)


@pytest.mark.parametrize("in_stream", [False, True], ids=["as an HTTP answer", "as an event in the stream"])
def test_c64_gone_leads_to_a_new_list(bench: Bench, *, in_stream: bool) -> None:
    """410, as an answer or in the stream, ends in list and watch anew, and no Status object is handed on."""
    bench.fake.gone_in_stream = in_stream
    bench.fake.create(ROOT, "default", "stays")
    bench.fake.create(ROOT, "default", "goes")
    watch = bench.watch()
    assert watch.wait_synced(5)
    assert eventually(lambda: bench.fake.count(of_watch) == 1)
    with bench.fake.changed:
        bench.fake.delete(ROOT, "default", "goes")
        bench.fake.create(ROOT, "default", "comes")
        bench.fake.compact()
    assert eventually(bench.agrees)
    bench.fake.create(ROOT, "default", "later")
    assert eventually(bench.agrees)
    assert all(isinstance(part, Pod | None) for hint in bench.hints for part in hint)
    assert bench.count("lockstep_watch_relists_total", resource="pods", reason="gone") >= 1


def test_c64_no_busy_loop(bench: Bench) -> None:
    """A server that answers every watch with 410 is asked at growing intervals."""
    bench.fake.fault(of_watch, Answer(410, b'{"kind": "Status", "code": 410, "reason": "Expired"}'), times=10_000)
    bench.watch()
    time.sleep(1.0)
    assert 5 <= bench.fake.count(of_watch) <= 25


def test_a_stream_that_ends_at_once_is_no_busy_loop(bench: Bench) -> None:
    """Empty answers with status 200 are asked for at growing intervals too."""
    bench.fake.fault(of_watch, Answer(200), times=10_000)
    watch = bench.watch()
    time.sleep(1.0)
    assert 5 <= bench.fake.count(of_watch) <= 25
    assert eventually(lambda: watch.problem == "the stream ended at once")


def test_c65_silent_connection_is_replaced(bench: Bench) -> None:
    """A stream that went dead without a word is given up after server timeout and margin, and nothing is missed."""
    bench.fake.fault(of_watch, Silence())
    quick = msgspec.structs.replace(FAST, server_timeout=1.0, margin=0.5)
    watch = bench.watch(settings=quick)
    assert watch.wait_synced(5)
    assert eventually(lambda: bench.fake.count(of_watch) == 1)
    began = time.monotonic()
    bench.fake.create(ROOT, "default", "missed")
    assert eventually(lambda: watch.activity_age() > 0.5, 2)
    assert eventually(bench.agrees, 5)
    assert 0.5 < time.monotonic() - began < 3


def test_after_a_long_silence_the_version_is_not_trusted(bench: Bench) -> None:
    """Behind a dead connection the server may have been replaced, so after a long silence the list is made anew."""
    bench.fake.fault(of_watch, Silence())
    watch = bench.watch(settings=msgspec.structs.replace(FAST, server_timeout=1.0, margin=0.1, trust=0.5))
    assert watch.wait_synced(5)
    assert eventually(lambda: bench.fake.count(of_list) == 2)
    assert bench.count("lockstep_watch_relists_total", resource="pods", reason="silent") == 1


def test_a_stream_that_outlives_its_timeout_is_replaced(bench: Bench) -> None:
    """A proxy that keeps a stream alive for ever does not keep us: the server's timeout counts."""
    bench.fake.heeds_timeouts, bench.fake.bookmark_every = False, 0.05
    quick = msgspec.structs.replace(FAST, server_timeout=1.0, margin=0.3, backoff=Backoff(1.0, 1.0))
    watch = bench.watch(settings=quick)
    assert watch.wait_synced(5)
    assert eventually(lambda: "outlived" in watch.problem, 5)


def test_survives_a_server_restart_without_missing_events(bench: Bench) -> None:
    """Changes made while the watch could not reach the server are all there once it can, and it goes on by itself."""
    for number in range(5):
        bench.fake.create(ROOT, "default", f"p{number}")
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.stop()
    bench.fake.delete(ROOT, "default", "p1")
    bench.fake.create(ROOT, "default", "p9")
    assert eventually(lambda: watch.problem != "")
    bench.fake.start()
    assert eventually(bench.agrees)
    bench.fake.create(ROOT, "default", "after")
    assert eventually(bench.agrees)


def test_survives_a_restart_in_which_nothing_changed(bench: Bench) -> None:
    """A restarted server at the same version is followed again, without a single hint for unchanged objects."""
    bench.fake.create(ROOT, "default", "same")
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.stop()
    assert eventually(lambda: watch.problem != "")
    bench.fake.start()
    assert eventually(lambda: watch.problem == "")
    assert len(bench.hints) == 1
    bench.fake.create(ROOT, "default", "new")
    assert eventually(bench.agrees)


def test_a_server_with_an_older_history_is_believed(bench: Bench) -> None:
    """After a restore from a backup the server's lower versions are the truth."""
    for number in range(3):
        bench.fake.create(ROOT, "default", f"p{number}")
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.stop()
    assert eventually(lambda: bench.count("lockstep_watch_failures_total", resource="pods") >= 2)
    bench.fake.objects.clear()
    bench.fake.history.clear()
    bench.fake.version = 5
    bench.fake.create(ROOT, "default", "restored")
    bench.fake.start()
    assert eventually(bench.agrees)
    bench.fake.create(ROOT, "default", "next")
    assert eventually(bench.agrees)


def test_history_that_expires_while_paging(bench: Bench) -> None:
    """A continue token that is too old starts the list again, and the third time it is taken in one piece."""
    for number in range(7):
        bench.fake.create(ROOT, "default", f"p{number}")
    bench.fake.fault(of_later_page, Answer(410, b'{"code": 410, "reason": "Expired"}'), times=2)
    watch = bench.watch()
    assert watch.wait_synced(5)
    assert bench.agrees()
    assert [seen.query.get("limit", "all") for seen in bench.fake.requests if seen.lists] == ["3", "3", "all"]


def test_too_many_requests_are_waited_out(bench: Bench) -> None:
    """The server's Retry-After is longer than our back-off, so it counts."""
    bench.fake.fault(of_list, Answer(429, b"", (("Retry-After", "1"),)))
    began = time.monotonic()
    assert bench.watch().wait_synced(5)
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"kind": "Status", "metadata": {}}', b'{"kind": "PodList", "metadata": {}, "items": []}', b"<html>"],
    ids=["nothing", "an array", "a Status", "a list without version", "a page of a proxy"],
)
def test_an_answer_that_is_no_list(bench: Bench, body: bytes) -> None:
    """An odd answer never empties the store or counts as synced; the next good one does."""
    bench.fake.create(ROOT, "default", "a")
    bench.fake.fault(of_list, Answer(200, body), times=3)
    watch = bench.watch()
    assert watch.wait_synced(5)
    assert bench.fake.count(of_list) == 4
    assert bench.agrees()


def test_one_odd_item_poisons_nothing(bench: Bench) -> None:
    """Objects that can't be decoded are counted and skipped, in lists and in events; the others all arrive."""
    bench.fake.create(ROOT, "default", "good")
    bench.fake.create(ROOT, "default", "odd", spec="not a map")
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.create(ROOT, "default", "odd-too", spec=["neither"])
    bench.fake.create(ROOT, "default", "unindexable", spec={"y": 1})
    bench.fake.create(ROOT, "default", "good-too")
    assert eventually(lambda: {name for _, name in bench.known()} == {"good", "good-too"})
    assert bench.count("lockstep_bad_items_total", resource="pods") == 3
    bench.fake.update(ROOT, "default", "odd", spec={"x": 1})
    assert eventually(lambda: bench.store.get("default", "odd") is not None)


def test_an_object_that_becomes_odd_keeps_its_last_good_state(bench: Bench) -> None:
    """While the same life of an object can't be read, what was known stays, also through a new list."""
    bench.fake.create(ROOT, "default", "a", spec={"x": 1})
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.update(ROOT, "default", "a", spec="odd")
    bench.fake.compact()
    bench.fake.cut()
    assert eventually(lambda: bench.fake.count(of_list) >= 2)
    time.sleep(0.1)
    pod = bench.store.get("default", "a")
    assert pod is not None
    assert pod.spec == {"x": 1}


def test_a_new_life_that_is_odd_replaces_the_old_one(bench: Bench) -> None:
    """A re-created object that can't be read leaves nothing behind of the one that is gone."""
    bench.fake.create(ROOT, "default", "a", spec={"x": 1})
    watch = bench.watch()
    assert watch.wait_synced(5)
    with bench.fake.changed:
        bench.fake.delete(ROOT, "default", "a")
        bench.fake.create(ROOT, "default", "a", spec="odd")
    assert eventually(lambda: bench.store.get("default", "a") is None)


def test_an_event_that_is_no_json_is_made_good_by_a_list(bench: Bench) -> None:
    """A garbled line may have been any change, so the truth is listed again."""
    bench.fake.create(ROOT, "default", "a")
    bench.fake.fault(of_watch, Answer(200, b'{"type": "DELE\x00\n'))
    bench.watch()
    assert eventually(lambda: bench.fake.count(of_list) == 2)
    assert eventually(bench.agrees)
    assert bench.count("lockstep_watch_relists_total", resource="pods", reason="broken") == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "ADDED", "object": {"kind": "Status", "metadata": {}, "code": 500}}',
        b'{"type": "ADDED", "object": {"metadata": {"name": ""}}}',
        b'{"type": "ADDED", "object": 7}',
        b'{"type": "TELEPORTED", "object": {"metadata": {"name": "a", "namespace": "default"}}}',
    ],
    ids=["a Status as an object", "an object without a name", "a number", "an unknown type"],
)
def test_odd_events_are_passed_over(bench: Bench, line: bytes) -> None:
    """What no server should send changes nothing and stops nothing."""
    bench.fake.create(ROOT, "default", "a")
    bench.fake.fault(of_watch, Answer(200, line + b"\n"))
    watch = bench.watch()
    assert watch.wait_synced(5)
    assert eventually(lambda: bench.fake.count(of_watch) >= 2)
    assert bench.agrees()


def test_an_error_event_without_sense_is_a_failure(bench: Bench) -> None:
    """An ERROR event backs off like an error answer, with the server's words."""
    line = b'{"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError", "message": "oh"}}\n'
    bench.fake.fault(of_watch, Answer(200, line), times=1000)
    watch = bench.watch()
    assert eventually(lambda: watch.problem == "500 InternalError: oh")
    assert bench.hints == []


def test_hints_that_fail_stop_nothing(bench: Bench) -> None:
    """A callback that raises is counted, and the watch goes on."""

    def broken(_old: Pod | None, new: Pod | None) -> None:
        raise LookupError(new)

    store: Store[Pod] = Store()
    decode = msgspec.json.Decoder(Pod).decode
    watch = Watch(bench.api, Target(PODS), decode, store, broken, settings=FAST, meters=bench.meters)
    bench.started.append(watch)
    watch.start()
    bench.fake.create(ROOT, "default", "a")
    bench.fake.create(ROOT, "default", "b")
    assert eventually(lambda: len(store) == 2)
    assert eventually(lambda: bench.count("lockstep_bad_items_total", resource="pods") == 2)


def test_two_namespaces_share_a_store(bench: Bench) -> None:
    """A new list of one namespace leaves the other's objects alone."""
    for namespace in ("a", "b", "c"):
        bench.fake.create(ROOT, namespace, "p")
    watches = [bench.watch(Target(PODS, namespace)) for namespace in ("a", "b")]
    assert all(watch.wait_synced(5) for watch in watches)
    with bench.fake.changed:
        bench.fake.delete(ROOT, "a", "p")
        bench.fake.compact()
    assert eventually(lambda: set(bench.known()) == {("b", "p")})


def test_a_kind_that_is_not_served_is_waited_for(bench: Bench) -> None:
    """A missing kind is reported, not fatal; once served, its objects arrive."""
    bench.fake.unserved.add(ROOT)
    watch = bench.watch()
    assert eventually(lambda: watch.problem.startswith("404 NotFound"))
    assert not watch.has_synced
    bench.fake.unserved.clear()
    bench.fake.create(ROOT, "default", "a")
    assert eventually(bench.agrees)


def test_ages(bench: Bench) -> None:
    """An outage makes the activity old while progress stays young; a stopped thread is infinitely old."""
    watch = bench.watch()
    assert watch.wait_synced(5)
    bench.fake.stop()
    assert eventually(lambda: watch.activity_age() > 0.6, 5)
    assert watch.progress_age() < 0.5
    assert bench.count("lockstep_watch_age_seconds", resource="pods") > 0.5
    assert watch.stop()
    assert watch.progress_age() == float("inf")


@pytest.mark.parametrize("state", ["following", "silent", "unreachable", "listing"])
def test_stops_at_once_in_every_state(bench: Bench, state: str) -> None:
    """Stopping takes no longer than a moment whatever the watch waits for."""
    faults: dict[str, Callable[[], None]] = {
        "following": lambda: None,
        "silent": lambda: bench.fake.fault(of_watch, Silence()),
        "unreachable": bench.fake.stop,
        "listing": lambda: setattr(bench.fake, "latency", 0.3),
    }
    faults[state]()
    patient = msgspec.structs.replace(FAST, server_timeout=60.0, backoff=Backoff(60.0, 60.0))
    watch = bench.watch(settings=patient)
    time.sleep(0.2)
    began = time.monotonic()
    assert watch.stop()
    assert time.monotonic() - began < 1.5


def test_thread_count_is_constant(bench: Bench) -> None:
    """Cuts, new lists and new streams are all done by the one thread of the watch."""
    watch = bench.watch()
    assert watch.wait_synced(5)

    def ours() -> list[str]:
        return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("watch"))

    for _ in range(10):
        bench.fake.cut()
        bench.fake.compact()
        time.sleep(0.05)
    assert ours() == ["watch pods"]


STEP = st.one_of(
    st.tuples(st.just("create"), st.integers(0, 9)),
    st.tuples(st.just("create"), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("re-create"), st.integers(0, 9)),
    st.tuples(
        st.sampled_from(["compact", "cut", "restart", "pause", "410", "429", "500", "garbage", "gone page"]), st.just(0)
    ),
)


def restart(fake: FakeApi) -> None:
    """Close the port and open it again."""
    fake.stop()
    fake.start()


def play(fake: FakeApi, what: str, number: int) -> None:
    """Make one thing happen on the server."""
    name = f"p{number}"
    exists = ("default", name) in fake.names(ROOT)
    acts: dict[str, Callable[[], object]] = {
        "create": lambda: exists or fake.create(ROOT, "default", name),
        "update": lambda: exists and fake.update(ROOT, "default", name, spec={"x": 1}),
        "delete": lambda: fake.delete(ROOT, "default", name) if exists else None,
        "compact": fake.compact,
        "cut": fake.cut,
        "restart": lambda: restart(fake),
        "pause": lambda: time.sleep(0.03),
        "410": lambda: fake.fault(of_watch, Answer(410, b'{"code": 410}')),
        "429": lambda: fake.fault(of_list, Answer(429)),
        "500": lambda: fake.fault(lambda _: True, Answer(500)),
        "garbage": lambda: fake.fault(of_watch, Answer(200, b"}{\n")),
        "gone page": lambda: fake.fault(of_later_page, Answer(410, b'{"code": 410}')),
    }
    if what == "re-create":
        with fake.changed:
            acts["delete"]()
            fake.create(ROOT, "default", name)
        return
    acts[what]()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=25), in_stream=st.booleans())
def test_any_history_ends_with_store_equal_to_server(
    tmp_path: Path, steps: list[tuple[str, int]], *, in_stream: bool
) -> None:
    """Whatever happens in whatever order, server, store and a mirror built from hints are the same in the end."""
    fake = FakeApi().start()
    fake.gone_in_stream, fake.bookmark_every = in_stream, 0.05
    api = load_api(kubeconfig(tmp_path, fake))
    bench = Bench(fake, api)
    watch = bench.watch()
    try:
        for what, number in steps:
            play(fake, what, number)
        assert eventually(bench.agrees), (fake.names(ROOT), bench.known(), bench.mirror, watch.problem)
    finally:
        watch.stop()
        api.close()
        fake.stop()
