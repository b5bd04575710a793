"""Events: said once, never in a worker's way, never without bound."""

import threading
import time
from collections.abc import Iterator

import pytest

from reconciler.fence import Fence, FencedApi
from reconciler.pacing import TokenBucket
from reconciler.recorder import ObjectRef, Recorder, Remark
from reconciler.telemetry import Meters
from tests.reconciler.clocks import HandClock
from tests.reconciler.fake_api import Answer, FakeApi, InProcess, Seen, Silence, eventually

VLLM = ObjectRef("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "team-a", "vllm", "uid-1")
EVENTS = "/api/v1/events"


def of_events(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.endswith("/events")


class Desk:
    """A recorder on a fake server."""

    def __init__(self) -> None:
        """Start it."""
        self.fake, self.meters, self.clock = FakeApi(), Meters(), HandClock()
        self.fence = Fence.always()
        api = FencedApi(InProcess(self.fake), self.fence)
        self.recorder = Recorder(api, instance="pod-1", meters=self.meters, bucket=TokenBucket(1000, 1000), most=5)
        self.recorder.start()

    def count(self, outcome: str) -> float:
        """Count remarks by what became of them."""
        return self.meters.registry.get_sample_value("lockstep_events_total", {"outcome": outcome}) or 0


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    assert made.recorder.stop()


def test_the_event(desk: Desk) -> None:
    """An Event carries what was said, about whom, by whom."""
    desk.recorder.say(VLLM, "Warning", "KindNotServed", "podgroups are not served")
    assert eventually(lambda: desk.count("ok") == 1)
    ((key, event),) = desk.fake.objects[EVENTS].items()
    assert key == ("team-a", Remark(VLLM, "Warning", "KindNotServed", "podgroups are not served", "").name)
    assert event["involvedObject"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "namespace": "team-a",
        "name": "vllm",
        "uid": "uid-1",
    }
    said = {
        key: event[key] for key in ("type", "reason", "message", "reportingComponent", "reportingInstance", "count")
    }
    assert list(said.values()) == ["Warning", "KindNotServed", "podgroups are not served", "lockstep", "pod-1", 1]
    assert event["firstTimestamp"] == event["lastTimestamp"]


def test_the_same_thing_is_said_once(desk: Desk) -> None:
    """Repeats make no calls; another message, or the same subject in other words, is told apart rightly."""
    for _ in range(3):
        desk.recorder.say(VLLM, "Normal", "Waiting", "4 GPUs short")
    desk.recorder.say(VLLM, "Normal", "Waiting", "5 GPUs short")
    desk.recorder.say(VLLM, "Normal", "Stuck", "since 3 s", subject="group-1")
    assert eventually(lambda: desk.count("ok") == 3)
    desk.recorder.say(VLLM, "Normal", "Stuck", "since 9 s", subject="group-1")
    desk.recorder.say(VLLM, "Normal", "Waiting", "4 GPUs short")
    assert not eventually(lambda: desk.fake.count(of_events) > 3, 0.2)


def test_what_another_process_said_is_known(desk: Desk) -> None:
    """An Event that is there already counts as said, whoever wrote it."""
    name = Remark(VLLM, "Normal", "Waiting", "words", "").name
    desk.fake.create(EVENTS, "team-a", name)
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("known") == 1)
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert not eventually(lambda: desk.fake.count(of_events) > 1, 0.2)


def test_a_new_life_of_the_object_is_told_again(desk: Desk) -> None:
    """The same words about another uid are another Event."""
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    desk.recorder.say(ObjectRef(VLLM.api_version, VLLM.kind, "team-a", "vllm", "uid-2"), "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("ok") == 2)


def test_a_failed_write_is_made_later_and_nobody_waits(desk: Desk) -> None:
    """While the server is silent or unwell, saying returns at once; the Event is there in the end, once."""
    for fault in (Silence(), Answer(500), Answer(429)):
        desk.fake.fault(of_events, fault)
    began = time.monotonic()
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert time.monotonic() - began < 0.1
    assert eventually(lambda: desk.count("ok") == 1, 15)
    assert (desk.count("retried"), len(desk.fake.objects[EVENTS])) == (3, 1)


def test_a_refused_event_is_given_up(desk: Desk) -> None:
    """In a namespace that is being deleted no Event can be made; that is said once in the metrics and forgotten."""
    desk.fake.fault(of_events, Answer(403, b'{"code": 403, "reason": "Forbidden"}'))
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("refused") == 1)
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("ok") == 1)


def test_only_the_leader_speaks(desk: Desk) -> None:
    """Without the lease nothing is written and nothing is remembered as said."""
    desk.fence.close()
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("fenced") == 1)
    assert desk.fake.count(of_events) == 0
    desk.fence.open_until(float("inf"), float("inf"))
    desk.recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: desk.count("ok") == 1)


def test_memory_is_bounded() -> None:
    """Of more remarks than fit the oldest is dropped, and as many are remembered as may wait."""
    fake, meters = FakeApi(), Meters()
    recorder = Recorder(InProcess(fake), meters=meters, most=5, bucket=TokenBucket(1000, 1000))
    for number in range(12):
        recorder.say(VLLM, "Normal", "Waiting", f"words {number}")
    assert meters.registry.get_sample_value("lockstep_events_total", {"outcome": "dropped"}) == 7
    recorder.start()
    assert eventually(lambda: fake.count(of_events) == 5)
    for number in range(100, 120):
        recorder.say(VLLM, "Normal", "Waiting", f"words {number}")
        assert eventually(lambda: not recorder._waiting)
    assert len(recorder._said) == 5
    assert recorder.stop()


def test_what_lasts_is_said_again_when_the_server_has_forgotten() -> None:
    """Events live for an hour, so a remark made again after that is written again."""
    fake, clock = FakeApi(), HandClock()
    recorder = Recorder(InProcess(fake), clock=clock, remember=3600)
    recorder.start()
    recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: fake.count(of_events) == 1 and not recorder._waiting)
    fake.objects[EVENTS].clear()
    clock.time += 3599
    recorder.say(VLLM, "Normal", "Waiting", "words")
    clock.time += 1
    recorder.say(VLLM, "Normal", "Waiting", "words")
    assert eventually(lambda: len(fake.objects[EVENTS]) == 1)
    assert fake.count(of_events) == 2
    assert recorder.stop()


def test_events_are_rate_limited() -> None:
    """A flood is written at the bucket's pace, and stopping does not wait for it."""
    fake = FakeApi()
    recorder = Recorder(InProcess(fake), bucket=TokenBucket(1, 3))
    for number in range(20):
        recorder.say(VLLM, "Normal", "Waiting", f"words {number}")
    recorder.start()
    assert eventually(lambda: fake.count(of_events) == 3)
    assert not eventually(lambda: fake.count(of_events) > 3, 0.3)
    began = time.monotonic()
    assert recorder.stop()
    assert time.monotonic() - began < 1
    assert not [thread for thread in threading.enumerate() if thread.name == "events"]


NAMES = {
    "a usual name": ("vllm", "vllm."),
    "a name as long as can be": ("n" * 253, "n" * 236 + "."),
    "a name that would be cut after a dash": ("n" * 235 + "-" + "n" * 17, "n" * 235 + "."),
}


@pytest.mark.parametrize(("name", "start"), NAMES.values(), ids=NAMES)
def test_event_names(name: str, start: str) -> None:
    """Names of Events are the object's and 16 hex digits, and always legal."""
    ref = ObjectRef("v1", "Pod", "default", name, "u")
    made = Remark(ref, "Normal", "R", "m", "").name
    assert made.startswith(start)
    assert (len(made) - len(start), len(made) <= 253, made[len(start) :].isalnum()) == (16, True, True)


def test_events_of_cluster_wide_objects() -> None:
    """An Event about a node stands in namespace default and names no namespace."""
    remark = Remark(ObjectRef("v1", "Node", "", "n1", "u"), "Normal", "R", "x" * 2000, "")
    event = remark.event("lockstep", "i", "2030-01-01T00:00:00Z")
    assert (event["metadata"], remark.namespace) == ({"name": remark.name, "namespace": "default"}, "default")
    assert len(str(event["message"])) == 1024
