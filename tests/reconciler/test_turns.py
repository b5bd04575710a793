"""Whose gates are opened, and in whose words a replica waits; what the gatekeeper remembers."""

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.actions import LookAgain
from reconciler.contract import ApiError, CallFailed, Forbidden, Unreachable
from reconciler.gatekeeper import Gatekeeper
from reconciler.overview import replica_entries
from reconciler.replicas import Sight
from reconciler.snapshot import Snapshot
from reconciler.turns import line_up, take_turns
from schedulers.configuration import Configuration, default_configuration
from tests.builders import JsonObject
from tests.reconciler.sights import LEADER_READY, NATIVE, YUNIKORN, World, decoded, fill, merged, replica

CONFIGURATION = default_configuration()
OPEN: JsonObject = {"spec": {"schedulingGates": None}}
BOUND: JsonObject = {"spec": {"schedulingGates": None, "nodeName": "n1"}}


def created(minute: int) -> JsonObject:
    """Change of the creation time of a pod."""
    return {"metadata": {"creationTimestamp": f"2026-11-29T22:{minute:02}:00Z"}}


def waiting(name: str, minute: int, *changes: JsonObject, **difference: Any) -> list[JsonObject]:
    """Build a replica of YuniKorn's whose leader was created in a minute; each change is of one pod."""
    pods = [f"{name}-0", f"{name}-0-1", f"{name}-0-2"]
    by_name = dict(zip(pods, changes, strict=False))
    by_name[pods[0]] = merged(by_name.get(pods[0], {}), created(minute))
    return replica(provider=YUNIKORN, lws=name, changes=by_name, **difference)


def sights(world: World) -> Iterator[Sight]:
    """See every replica."""
    cache = world.cache()
    for key in cache.leaders():
        found = cache.sight(key, None, age=10.0, recreations=0)
        assert isinstance(found, Sight)
        yield found


def opened(*replicas: list[JsonObject], configuration: Configuration = CONFIGURATION) -> list[str]:
    """Give the leaders of the replicas whose gates are opened."""
    world = World(*(obj for one in replicas for obj in one), configuration=configuration)
    turns = take_turns(line_up(sights(world), configuration), configuration)
    return [opening.place.title for opening in turns.openings]


def test_the_oldest_goes_first() -> None:
    """By the creation of its leader, whatever its name."""
    assert opened(waiting("a", 3), waiting("b", 1), waiting("c", 2)) == ["team-a/b-0"]


def test_of_the_same_second_the_name_decides() -> None:
    """So that every process comes to the same answer, in whatever order it sees them."""
    assert opened(waiting("b", 1), waiting("a", 1)) == opened(waiting("a", 1), waiting("b", 1)) == ["team-a/a-0"]


def test_nobody_goes_while_another_holds_the_turn() -> None:
    """However much older."""
    assert opened(waiting("a", 1), waiting("b", 2, OPEN, OPEN)) == []
    assert opened(waiting("a", 1), waiting("b", 2, BOUND, OPEN)) == []


def test_the_holders_own_gates_are_opened_on() -> None:
    """A reconciler that was killed in between, or a worker that comes late."""
    assert opened(waiting("a", 1), waiting("b", 2, OPEN)) == ["team-a/b-0"]


def test_two_that_hold_the_turn_are_both_opened_on() -> None:
    """Someone has opened a gate by hand: half a gang is worth nothing, so it is made whole; the next waits for both."""
    held = [waiting("a", 1), waiting("b", 2, OPEN), waiting("c", 3, OPEN)]
    assert opened(*held) == ["team-a/b-0", "team-a/c-0"]


def test_what_is_placed_is_out_of_the_line() -> None:
    """Its turn is over."""
    assert opened(waiting("a", 1, BOUND, BOUND), waiting("b", 2)) == ["team-a/b-0"]


@pytest.mark.parametrize(
    "older",
    [
        waiting("a", 1, size=3, workers=1),
        waiting("a", 1, {"spec": {"schedulingGates": [{"name": "lockstep.dev/group"}, {"name": "kueue"}]}}),
        waiting("a", 1, {"metadata": {"deletionTimestamp": "2026-11-29T22:06:32Z"}}),
        waiting("a", 1, {"status": {"phase": "Failed"}}),
    ],
    ids=["a worker is missing", "another gate", "it is being deleted", "its leader has failed"],
)
def test_one_that_can_not_go_holds_up_nobody(older: list[JsonObject]) -> None:
    """It is passed over, and goes when it can."""
    assert opened(older, waiting("b", 2)) == ["team-a/b-0"]


def test_other_schedulers_are_not_in_the_line() -> None:
    """They have groups."""
    assert opened(replica(provider=NATIVE, lws="a"), waiting("b", 2)) == ["team-a/b-0"]


def test_a_size_that_is_a_guess_is_waited_for() -> None:
    """The moment when it is believed is said, for nothing else may happen until then."""
    world = World(*waiting("a", 1, size=1, annotated=1, worker_set=False))
    world.objects["LeaderWorkerSet", "team-a", "a"]["spec"]["leaderWorkerTemplate"]["size"] = 2
    cache = world.cache()
    young = cache.sight(("team-a", "a-0"), None, age=0.5, recreations=0)
    assert isinstance(young, Sight)
    turns = take_turns(line_up([young], CONFIGURATION), CONFIGURATION)
    assert turns.openings == ()
    assert turns.again is not None
    assert turns.again.seconds == 1.5


class Keeper:
    """A gatekeeper on a cache that a test lets lag behind."""

    def __init__(self, *replicas: list[JsonObject]) -> None:
        """Start with a cache that shows everything."""
        self.world = World(*(obj for one in replicas for obj in one))
        self.cache = self.world.cache()
        self.keeper = Gatekeeper(YUNIKORN, self.cache, CONFIGURATION)

    def look(self, error: CallFailed | None = None, *, done: bool = True, now: float = 0.0) -> list[str]:
        """Look, write, and tell the keeper; gives the pods that were opened."""
        works, _ = self.keeper.look(lambda _: 10.0, now)
        for work in works:
            if done:
                self.world.carry_out(work[1])
            self.keeper.tried(work, error)
        return [action.name for _, action in works]

    def catch_up(self) -> None:
        """Let the watch show how things are."""
        fill(self.cache.pods, self.world.of_kind("Pod"))


def test_nothing_is_opened_twice_while_the_watch_lags() -> None:
    """The model of the API server fails on a gate that is not there any more."""
    keeper = Keeper(waiting("a", 1))
    assert keeper.look() == ["a-0", "a-0-1"]
    assert keeper.look() == []
    keeper.catch_up()
    assert keeper.look() == []


def test_the_turn_is_taken_though_the_watch_lags() -> None:
    """An older replica that gets complete meanwhile waits for the one that was opened."""
    keeper = Keeper(waiting("a", 1, size=2, workers=0), waiting("b", 2))
    assert keeper.look() == ["b-0", "b-0-1"]
    keeper.world.put(*(obj for obj in waiting("a", 1) if obj["kind"] == "Pod"))
    behind = [obj for obj in keeper.world.of_kind("Pod") if obj["metadata"]["name"].startswith("a")]
    gated = [{"name": "lockstep.dev/group"}]
    lagging = [merged(obj, {"spec": {"schedulingGates": gated}}) for obj in keeper.world.of_kind("Pod")]
    fill(keeper.cache.pods, lagging)
    assert len(behind) == 2
    assert keeper.look() == []
    keeper.catch_up()
    assert keeper.look() == []


def test_without_an_answer_the_turn_counts_as_taken_and_the_gate_is_tried_again() -> None:
    """It may have been opened."""
    keeper = Keeper(waiting("a", 1))
    assert keeper.look(Unreachable("cut off"), done=False) == ["a-0", "a-0-1"]
    assert keeper.look() == ["a-0", "a-0-1"]


REFUSALS: dict[str, tuple[ApiError, bool]] = {
    "forbidden": (Forbidden(403, "Forbidden", ""), False),
    "a server error": (ApiError(504, "Timeout", ""), True),
}


@pytest.mark.parametrize(("error", "taken"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_gate_is_closed(error: ApiError, *, taken: bool) -> None:
    """Nobody holds the turn then, so that another may go when the first goes away; 5xx may have had its effect."""
    keeper = Keeper(waiting("a", 1, size=2), waiting("b", 2))
    keeper.look(error, done=False)
    short = [obj for obj in keeper.world.of_kind("Pod") if obj["metadata"]["name"] != "a-0-1"]
    fill(keeper.cache.pods, short)
    assert keeper.look() == ([] if taken else ["b-0", "b-0-1"])


def test_a_replica_whose_opening_is_refused_holds_up_nobody() -> None:
    """A label that is none, say: it is passed over for a minute, and tried again after the one that went before."""
    keeper = Keeper(waiting("a", 1), waiting("b", 2), waiting("c", 3))
    assert keeper.look(ApiError(422, "Invalid", "metadata.labels: must be"), done=False) == ["a-0", "a-0-1"]
    assert keeper.look() == ["b-0", "b-0-1"]
    for name in ("b-0", "b-0-1"):
        keeper.world.put(merged(keeper.world.objects["Pod", "team-a", name], {"spec": {"nodeName": "n1"}}))
    keeper.catch_up()
    assert keeper.look(now=61.0) == ["a-0", "a-0-1"]


def test_the_keeper_says_when_to_look_again() -> None:
    """For a size that is a guess."""
    world = World(*waiting("a", 1, size=1, annotated=1, worker_set=False))
    world.objects["LeaderWorkerSet", "team-a", "a"]["spec"]["leaderWorkerTemplate"]["size"] = 2
    keeper = Gatekeeper(YUNIKORN, world.cache(), CONFIGURATION)
    reason = "its worker StatefulSet is not there yet: the size is a guess"
    assert keeper.look(lambda _: 0.5, 0.0) == ([], LookAgain(1.5, reason))


def reasons(*replicas: list[JsonObject], configuration: Configuration = CONFIGURATION) -> list[tuple[str, str]]:
    """Give state and reason of every replica, as `lockstep status` shows them."""
    world = World(*(obj for one in replicas for obj in one), configuration=configuration)
    snapshot = Snapshot(world.cache(), frozenset(), None, {})
    return [(entry.state, entry.reason) for entry in replica_entries(snapshot, configuration)]


def test_status_says_behind_whom_a_replica_waits() -> None:
    """The one that holds the turn says what it holds, and how many wait for that."""
    found = reasons(waiting("a", 3), waiting("b", 2, OPEN, OPEN), waiting("c", 1))
    assert found[0] == ("gated", "waits for its turn behind team-a/b-0")
    assert found[2] == ("gated", "waits for its turn behind team-a/b-0")
    assert found[1][0] == "waits for capacity"
    held = "0 of its 0 placeholders have a node and hold it until all have one"
    assert found[1][1].startswith(f"{held}; 2 replicas wait for their turn behind it; asks ")


def test_status_says_what_placeholders_hold_and_what_is_said_of_them() -> None:
    """What its own hold is as good as free for a replica; why the others wait stands on them alone."""
    world = World(*waiting("a", 1, OPEN, OPEN))
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room in the queue"}
    container = {"name": "pause", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "8"}}}
    pods = [
        {"kind": "Pod", "spec": {"nodeName": "n1", "containers": [container]}},
        {"kind": "Pod", "spec": {"containers": [container]}, "status": {"conditions": [said]}},
    ]
    leader = world.objects["Pod", "team-a", "a-0"]
    key = ("team-a", leader["metadata"]["labels"]["lockstep.dev/group"])
    stand_ins = {key: tuple(decoded(pod) for pod in pods)}
    free = {"cpu": 10**9, "nvidia.com/gpu": 0}
    [entry] = replica_entries(Snapshot(world.cache(), frozenset(), free, {}, stand_ins), CONFIGURATION)
    held = "1 of its 2 placeholders have a node and hold it until all have one"
    assert entry.reason == f"{held}; asks nvidia.com/gpu 16, 8 free in sum (a sum is not a placement)"
    assert entry.words == "no room in the queue"


def test_status_says_what_else_a_gate_waits_for() -> None:
    """Pods that are missing, a gate of someone else, nothing at all."""
    assert reasons(waiting("a", 1, size=3, workers=1)) == [("gated", "its gate waits: 2 of 3 pods exist")]
    both = {"spec": {"schedulingGates": [{"name": "lockstep.dev/group"}, {"name": "kueue"}]}}
    assert reasons(waiting("a", 1, both)) == [
        ("gated", 'its gate waits: gate "kueue" holds its pods; waits for gate "kueue"')
    ]
    assert reasons(waiting("a", 1)) == [("gated", "its gate is being opened")]
    assert reasons(waiting("a", 1), waiting("b", 2))[1] == ("gated", "waits for its turn behind team-a/a-0")


def test_status_says_that_a_gate_is_left_over() -> None:
    """Its scheduler is not configured any more."""
    found = reasons(waiting("a", 1), configuration=Configuration({"default-scheduler": "native"}))
    reason = 'scheduler "yunikorn" is not configured; gate "lockstep.dev/group" is still on its pods, and comes off'
    assert found == [("not ours", reason)]


def test_status_does_not_repeat_what_was_said_of_a_gate_that_is_gone() -> None:
    """The condition SchedulingGated stays on pods of YuniKorn's; its placeholders alone say what is missing."""
    stale = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "is blocked"}
    pod = merged(OPEN, {"status": {"conditions": [stale]}})
    world = World(*waiting("a", 1, pod, pod))
    [entry] = replica_entries(Snapshot(world.cache(), frozenset(), None, {}), CONFIGURATION)
    assert entry.words == ""


def test_status_says_that_late_workers_are_waited_for() -> None:
    """Their leader is placed, their room is held, and the next waits."""
    late = waiting("a", 1, BOUND, late=LEADER_READY, worker_set=False)
    [first, second] = reasons(late, waiting("b", 2))
    assert first[0] == "waits for members"
    why = "1 of 2 pods exist: its workers come after its leader (spec.startupPolicy)"
    assert first[1].startswith(why)
    assert second[0] == "gated"
