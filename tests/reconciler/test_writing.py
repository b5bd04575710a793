"""Actions carried out on an API server."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from reconciler.actions import CreateGroup, DeletePod, LookAgain, OpenGate, PatchGroup, PatchPod, Say
from reconciler.cache import Cache
from reconciler.contract import ApiError, Conflict, Forbidden, NotFound
from reconciler.fence import Fence, FencedApi, NotLeader
from reconciler.objects import GroupObject, LeaderWorkerSet
from reconciler.recorder import Recorder
from reconciler.writing import Writer
from tests.reconciler.fake_api import Answer, FakeApi, InProcess, eventually
from tests.reconciler.sights import NATIVE, Plan, World, decoded, leader_worker_set, replica

KIND = NATIVE.kinds[0]
GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"
NAME = Plan().group


class Bench:
    """A writer on a fake API server, without HTTP."""

    def __init__(self, fence: Fence | None = None) -> None:
        """Write through `fence`, by default an open one."""
        self.fake, self.cache = FakeApi(), Cache()
        fenced = FencedApi(InProcess(self.fake), fence or Fence.always())
        self.recorder = Recorder(fenced)
        self.writer = Writer(fenced, self.cache, self.recorder)

    def do(self, action: Any, lws: LeaderWorkerSet | None = None) -> None:
        """Carry out an action."""
        self.writer.carry_out(action, lws)

    def group(self) -> GroupObject | None:
        """What is known of the group."""
        return self.cache.group(KIND, "team-a", NAME)

    def paths(self) -> list[tuple[str, str]]:
        """What was asked of the server."""
        return [(seen.method, seen.path) for seen in self.fake.requests]


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A writer whose recorder runs."""
    bench = Bench()
    bench.recorder.start()
    yield bench
    bench.recorder.stop()


def creation() -> CreateGroup:
    """The creation of a usual replica's group."""
    [action] = World(*replica()).decide().actions
    assert isinstance(action, CreateGroup)
    return action


def patch(**spec: Any) -> PatchGroup:
    """A change of that group."""
    return PatchGroup(KIND, "team-a", NAME, {"spec": spec})


def test_a_created_group_is_known_at_once(bench: Bench) -> None:
    """By the server's answer, with UID and version, before any watch shows it."""
    bench.do(creation())
    made = bench.group()
    assert made is not None
    assert made.metadata.resource_version == bench.fake.names(GROUPS)["team-a", NAME]
    assert made.metadata.uid
    assert bench.paths() == [("POST", "/apis/scheduling.k8s.io/v1beta1/namespaces/team-a/podgroups")]


def test_a_group_that_exists_already_is_read_and_tried_again(bench: Bench) -> None:
    """AlreadyExists is no success: the next decision has to see whose it is (C46)."""
    theirs = bench.fake.create(GROUPS, "team-a", NAME, spec={"theirs": True})
    with pytest.raises(Conflict):
        bench.do(creation())
    made = bench.group()
    assert made is not None
    assert made.metadata.uid == theirs["metadata"]["uid"]
    assert made.spec == {"theirs": True}


def test_a_patch_keeps_what_it_does_not_name(bench: Bench) -> None:
    """And its answer is known at once."""
    bench.fake.create(GROUPS, "team-a", NAME, spec={"minMember": 1, "theirs": True})
    bench.do(patch(minMember=2))
    made = bench.group()
    assert made is not None
    assert made.spec == {"minMember": 2, "theirs": True}
    assert bench.fake.requests[-1].headers["content-type"] == "application/merge-patch+json"


FAILURES = {"gone": (404, NotFound), "changed meanwhile": (409, Conflict), "forbidden": (403, Forbidden)}


@pytest.mark.parametrize(("status", "error"), FAILURES.values(), ids=FAILURES.keys())
def test_a_patch_that_fails_is_told(bench: Bench, status: int, error: type[Exception]) -> None:
    """Where the object is another or gone, what was remembered of it is forgotten."""
    bench.do(creation())
    bench.fake.fault(lambda seen: seen.method == "PATCH", Answer(status, b"{}"))
    with pytest.raises(error):
        bench.do(patch(minMember=2))
    assert (bench.group() is None) == (status != 403)


def test_a_touch_writes_one_annotation(bench: Bench) -> None:
    """Which scheduler looks at is the provider's matter."""
    bench.do(creation())
    bench.writer.touch(KIND, "team-a", NAME, "lockstep.dev/capacity-grew", "now")
    body = msgspec.json.decode(bench.fake.requests[-1].body)
    assert body == {"metadata": {"annotations": {"lockstep.dev/capacity-grew": "now"}}}
    made = bench.group()
    assert made is not None
    assert made.metadata.annotations == {"lockstep.dev/capacity-grew": "now"}


def test_a_touch_of_a_group_that_is_gone_is_no_matter(bench: Bench) -> None:
    """Its replica is gone with it; nothing is made."""
    bench.fake.create(GROUPS, "team-a", "another")
    bench.writer.touch(KIND, "team-a", NAME, "lockstep.dev/capacity-grew", "now")
    assert set(bench.fake.names(GROUPS)) == {("team-a", "another")}


def test_a_pod_is_patched_and_deleted_by_its_uid(bench: Bench) -> None:
    """A deletion names the UID as its precondition; one that is gone already is no matter."""
    bench.fake.create(PODS, "team-a", "vllm-0")
    bench.do(PatchPod("team-a", "vllm-0", {"metadata": {"labels": {"a": "b"}}}))
    assert bench.fake.objects[PODS]["team-a", "vllm-0"]["metadata"]["labels"] == {"a": "b"}
    for _ in range(2):
        bench.do(DeletePod("team-a", "vllm-0", "u1"))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}}
    assert msgspec.json.decode(bench.fake.requests[-1].body) == options
    assert bench.fake.names(PODS) == {}


def test_a_successor_of_the_same_name_is_not_deleted(bench: Bench) -> None:
    """The server refuses: that is the end of it."""
    bench.fake.create(PODS, "team-a", "vllm-0")
    bench.fake.fault(lambda seen: seen.method == "DELETE", Answer(409, b"{}"))
    bench.do(DeletePod("team-a", "vllm-0", "u0"))
    assert ("team-a", "vllm-0") in bench.fake.names(PODS)


def test_what_is_said_becomes_an_event_on_the_lws(bench: Bench) -> None:
    """With reason, message and type; without an LWS there is nobody to tell."""
    lws = decoded(leader_worker_set(Plan()))
    bench.do(Say("StampDropped", "the gate is off", "native"), lws)
    bench.do(Say("StampDropped", "the gate is off", "native"), None)
    assert eventually(lambda: bench.fake.names(EVENTS))
    [event] = bench.fake.objects[EVENTS].values()
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "StampDropped", "the gate is off")
    assert event["involvedObject"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "namespace": "team-a",
        "name": "vllm",
        "uid": "lws/vllm",
    }


def test_to_look_again_is_no_write(bench: Bench) -> None:
    """It is the loop's."""
    bench.do(LookAgain(1.0, "later"))
    assert bench.fake.requests == []


@pytest.mark.parametrize("action", [creation(), patch(a=1), PatchPod("a", "b", {}), DeletePod("a", "b", "u")])
def test_nothing_is_written_behind_a_closed_fence(action: Any) -> None:
    """Whatever the action; nothing is sent, nothing is remembered."""
    bench = Bench(Fence())
    with pytest.raises(NotLeader):
        bench.do(action)
    assert bench.fake.requests == []
    assert bench.group() is None


def test_a_gate_is_opened_and_those_of_others_stay(bench: Bench) -> None:
    """By name, whatever stands beside it; with it comes what the scheduler reads."""
    gates = [{"name": "theirs"}, {"name": "lockstep.dev/group"}]
    bench.fake.create(PODS, "team-a", "vllm-0", spec={"schedulingGates": gates})
    uid = bench.fake.objects[PODS]["team-a", "vllm-0"]["metadata"]["uid"]
    gone = [{"$patch": "delete", "name": "lockstep.dev/group"}]
    body = {"metadata": {"uid": uid, "annotations": {"a": "b"}}, "spec": {"schedulingGates": gone}}
    bench.do(OpenGate("team-a", "vllm-0", body))
    pod = bench.fake.objects[PODS]["team-a", "vllm-0"]
    assert pod["spec"]["schedulingGates"] == [{"name": "theirs"}]
    assert pod["metadata"]["annotations"] == {"a": "b"}


def test_a_patch_for_a_pod_that_was_made_anew_is_a_conflict(bench: Bench) -> None:
    """The API server calls it invalid; nobody is told of a refusal, and the next decision sees the new pod."""
    bench.fake.create(PODS, "team-a", "vllm-0")
    message = 'Pod "vllm-0" is invalid: metadata.uid: Invalid value: "0": field is immutable'
    bench.fake.fault(lambda seen: seen.method == "PATCH", Answer(422, msgspec.json.encode({"message": message})))
    with pytest.raises(Conflict):
        bench.do(PatchPod("team-a", "vllm-0", {"metadata": {"uid": "0"}}))
    bench.fake.fault(lambda seen: seen.method == "PATCH", Answer(422, msgspec.json.encode({"message": "no"})))
    with pytest.raises(ApiError) as refused:
        bench.do(PatchPod("team-a", "vllm-0", {"metadata": {"uid": "0"}}))
    assert not isinstance(refused.value, Conflict)
