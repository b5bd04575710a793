"""Leader election: the protocol with clocks in hand, a simulation of rivals on a bad network, and the real threads."""

import datetime as dt
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api import HttpApi, load_api
from reconciler.contract import JSON, NO_QUERY, Conflict, Response, Stream, Unreachable
from reconciler.fence import Fence, FencedApi, NotLeader
from reconciler.leases import Durations, Elector, LeaseName
from reconciler.telemetry import Meters
from tests.reconciler.clocks import HandClock
from tests.reconciler.fake_api import Answer, FakeApi, InProcess, Seen, Silence, eventually, kubeconfig

LEASE = LeaseName("lockstep-system", "lockstep")
ROOT = "/apis/coordination.k8s.io/v1/leases"


class Group:
    """Electors of one Lease that share a clock in hand."""

    def __init__(self) -> None:
        """Start without a Lease."""
        self.fake, self.clock, self.told = FakeApi(), HandClock(), list[str]()

    def elector(self, name: str) -> Elector:
        """Add a rival."""
        return Elector(
            InProcess(self.fake),
            LEASE,
            name,
            on_gained=lambda: self.told.append(f"{name} gained"),
            on_lost=lambda: self.told.append(f"{name} lost"),
            clock=self.clock,
            luck=lambda: 0.5,
        )

    def spec(self) -> dict[str, Any]:
        """Read the Lease."""
        spec: dict[str, Any] = self.fake.objects[ROOT][LEASE.namespace, LEASE.name]["spec"]
        return spec


@pytest.fixture
def group() -> Group:
    return Group()


def test_the_first_creates_the_lease(group: Group) -> None:
    """Without a Lease, standing for election creates it in MicroTime UTC, and leads."""
    group.clock.time = 1_900_000_000.5
    first = group.elector("first")
    assert first.attempt() == 2
    assert (first.fence.held(), first.holder, group.told) == (True, "first", ["first gained"])
    assert group.spec() == {
        "holderIdentity": "first",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-03-17T17:46:40.500000Z",
        "renewTime": "2030-03-17T17:46:40.500000Z",
        "leaseTransitions": 0,
    }


def test_renewals_move_only_the_renew_time(group: Group) -> None:
    """Keeping the Lease is one patch a time and leaves acquire time and transitions alone."""
    first = group.elector("first")
    first.attempt()
    before = dict(group.spec())
    group.clock.time += 2
    requests = len(group.fake.requests)
    first.attempt()
    after = group.spec()
    assert len(group.fake.requests) == requests + 1
    assert {key for key in after if after[key] != before[key]} == {"renewTime"}


def test_the_second_waits_a_full_term_from_its_own_look(group: Group) -> None:
    """A rival takes over only when it has seen no renewal for the lease duration, whatever the timestamps say."""
    first, second = group.elector("first"), group.elector("second")
    group.clock.utc = lambda: dt.datetime(1990, 1, 1, tzinfo=dt.UTC)  # type: ignore[method-assign]
    first.attempt()
    group.clock.time += 14
    second.attempt()
    group.clock.time += 14.9
    second.attempt()
    assert not second.fence.held()
    group.clock.time += 0.1
    second.attempt()
    assert (second.fence.held(), group.spec()["leaseTransitions"]) == (True, 1)


def test_the_second_follows_the_term_of_the_holder(group: Group) -> None:
    """A holder that asked for a longer term gets it, also from rivals with other settings."""
    group.elector("first").attempt()
    group.fake.update(ROOT, LEASE.namespace, LEASE.name, spec=group.spec() | {"leaseDurationSeconds": 60})
    second = group.elector("second")
    second.attempt()
    group.clock.time += 59
    second.attempt()
    assert not second.fence.held()
    group.clock.time += 1
    second.attempt()
    assert second.fence.held()


def test_a_renewal_that_is_seen_starts_the_wait_anew(group: Group) -> None:
    """As long as the holder renews, nobody else ever leads."""
    first, second = group.elector("first"), group.elector("second")
    first.attempt()
    for _ in range(20):
        group.clock.time += 2
        first.attempt()
        second.attempt()
    assert (first.fence.held(), second.fence.held()) == (True, False)


def test_two_that_create_at_once(group: Group) -> None:
    """Of two creations one wins; the other stands in line."""
    second = group.elector("second")
    group.fake.fault(lambda seen: seen.method == "GET", Answer(404, b"{}"))
    group.elector("first").attempt()
    group.fake.fault(lambda seen: seen.method == "GET", Answer(404, b"{}"))
    second.attempt()
    assert (second.fence.held(), group.spec()["holderIdentity"]) == (False, "first")


def test_leadership_ends_by_itself(group: Group) -> None:
    """Without a renewal the fence closes at the renew deadline, with nobody having to do anything."""
    first = group.elector("first")
    first.attempt()
    group.clock.time += 9.9
    assert first.fence.held()
    group.clock.time += 0.1
    assert not first.fence.held()


def test_the_term_counts_from_before_the_request(group: Group) -> None:
    """A renewal that took four seconds to be answered is four seconds old when the answer comes."""
    first = group.elector("first")

    class Slow(InProcess):
        def request(self, *args: Any, **more: Any) -> Response:
            answer = super().request(*args, **more)
            group.clock.time += 2
            return answer

    first._api = Slow(group.fake)
    first.attempt()
    group.clock.time += 7.9
    assert first.fence.held()
    group.clock.time += 0.1
    assert not first.fence.held()


def test_a_write_held_back_under_a_late_renewal_is_made_good(group: Group) -> None:
    """When a renewal comes so late that a write was refused, the leader is told to look at everything again."""
    first = group.elector("first")
    first.attempt()
    group.clock.time += 9.9
    with pytest.raises(NotLeader):
        first.fence.check(5)
    first.attempt()
    assert group.told == ["first gained", "first gained"]
    group.clock.time += 2
    first.attempt()
    assert group.told == ["first gained", "first gained"]


def test_loss_is_told_and_leadership_can_be_regained(group: Group) -> None:
    """When the server was away for too long the loss is told once; later the same process may lead again."""
    first = group.elector("first")
    first.attempt()
    group.fake.fault(lambda _: True, Silence(), times=6)
    for _ in range(6):
        group.clock.time += 2
        first.attempt()
    assert group.told == ["first gained", "first lost"]
    group.clock.time += 2
    first.attempt()
    assert (first.fence.held(), group.told[-1]) == (True, "first gained")


def test_a_stolen_lease_ends_leadership_at_once(group: Group) -> None:
    """A Lease that names another is believed, even before our term is over."""
    first = group.elector("first")
    first.attempt()
    group.fake.update(ROOT, LEASE.namespace, LEASE.name, spec=group.spec() | {"holderIdentity": "thief"})
    group.clock.time += 2
    first.attempt()
    assert (first.fence.held(), group.told) == (False, ["first gained", "first lost"])


def test_a_harmless_write_by_others_is_lived_with(group: Group) -> None:
    """Somebody's label on the Lease costs one more look, not the leadership, and stays."""
    first = group.elector("first")
    first.attempt()
    group.fake.update(ROOT, LEASE.namespace, LEASE.name, other="field")
    group.clock.time += 2
    first.attempt()
    assert (first.fence.held(), group.told) == (True, ["first gained"])
    assert group.fake.objects[ROOT][LEASE.namespace, LEASE.name]["other"] == "field"
    group.clock.time += 9
    assert first.fence.held()


def test_a_deleted_lease_is_made_again(group: Group) -> None:
    """Deleting the Lease makes the holder stand again like everybody else."""
    first = group.elector("first")
    first.attempt()
    group.fake.delete(ROOT, LEASE.namespace, LEASE.name)
    first.attempt()
    assert not first.fence.held()
    first.attempt()
    assert (first.fence.held(), group.spec()["holderIdentity"]) == (True, "first")


def test_a_renewal_whose_answer_is_lost_counts_for_nothing(group: Group) -> None:
    """The term is not prolonged by a write that may have happened; the next attempt settles it."""
    first = group.elector("first")
    first.attempt()
    group.clock.time += 2
    lease = group.fake.objects[ROOT][LEASE.namespace, LEASE.name]
    group.fake.write(ROOT, LEASE.namespace, lease, create=False)
    group.fake.fault(lambda seen: seen.method == "PATCH", Silence())
    first.attempt()
    group.clock.time += 2
    first.attempt()
    group.clock.time += 9
    assert first.fence.held()


DURATIONS = {
    "renew not below lease": (10.0, 10.0, 2.0),
    "retry not below renew": (15.0, 10.0, 10.0),
    "no retry": (15.0, 10.0, 0.0),
    "less than a second": (0.9, 0.5, 0.1),
}


@pytest.mark.parametrize("seconds", DURATIONS.values(), ids=DURATIONS)
def test_dangerous_durations_are_refused(seconds: tuple[float, float, float]) -> None:
    """Durations under which two could lead never start."""
    with pytest.raises(ValueError, match=r"^lease durations: must fall from lease"):
        Durations(*seconds)


def test_fence_leaves_room_for_the_write_itself() -> None:
    """A write is begun only if even its timeout ends before another may lead."""
    clock = HandClock()
    fence = Fence(clock)
    with pytest.raises(NotLeader, match="does not hold"):
        fence.check(1)
    fence.open_until(clock.time + 10, clock.time + 15)
    fence.check(15)
    clock.time += 9
    fence.check(6)
    with pytest.raises(NotLeader, match=r"safe for 6\.0 s, a write may take 6\.5 s"):
        fence.check(6.5)
    clock.time += 1
    with pytest.raises(NotLeader, match="does not hold"):
        fence.check(0.1)


def test_open_fence() -> None:
    """Without rivals every write may be made."""
    fence = Fence.always()
    fence.check(1e9)
    assert fence.held()


def test_fenced_api() -> None:
    """Reads pass a closed fence, writes do not reach the server, and all writes are counted by outcome."""
    fake, fence, meters = FakeApi(), Fence(), Meters()
    api = FencedApi(InProcess(fake), fence, meters)
    path = "/api/v1/namespaces/default/pods"
    api.request("GET", path)
    with pytest.raises(NotLeader):
        api.request("POST", path, body=b'{"metadata": {"name": "a"}}')
    assert [seen.method for seen in fake.requests] == ["GET"]
    fence.open_until(float("inf"), float("inf"))
    api.request("POST", path, body=b'{"metadata": {"name": "a"}}')
    with pytest.raises(Conflict):
        api.request("POST", path, body=b'{"metadata": {"name": "a"}}')
    fake.fault(lambda _: True, Silence())
    with pytest.raises(Unreachable):
        api.request("DELETE", path + "/a")

    def count(verb: str, outcome: str) -> float | None:
        labels = {"verb": verb, "kind": "pods", "outcome": outcome}
        return meters.registry.get_sample_value("lockstep_writes_total", labels)

    assert [count("post", outcome) for outcome in ("fenced", "ok", "conflict")] == [1, 1, 1]
    assert count("delete", "failed") == 1


class Network:
    """`Api` of one rival over a network that loses, delays and repeats nothing but patience."""

    def __init__(self, world: "World", name: str) -> None:
        """Connect `name`."""
        self.world, self.name, self.direct = world, name, InProcess(world.fake)

    def request(  # noqa: PLR0913 - the protocol's
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 10.0,
    ) -> Response:
        """Take some time before and after the effect; lose the call or its answer now and then."""
        there, back, fate = self.world.fate()
        self.world.pass_time(min(there, timeout), self.name)
        if fate == "lost" or there > timeout:
            raise Unreachable("lost on the way")
        answer = self.direct.request(method, path, query, body=body, content_type=content_type)
        self.world.pass_time(min(back, timeout - there), self.name)
        if fate == "answer lost" or there + back > timeout:
            raise Unreachable("answer lost")
        return answer

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Not used by elections."""
        raise NotImplementedError(path, query, read_timeout)


class Drifting(HandClock):
    """A clock with a start and a speed of its own."""

    def __init__(self, world: "World", offset: float, speed: float) -> None:
        """Follow the world's time."""
        super().__init__()
        self.world, self.offset, self.speed = world, offset, speed

    def now(self) -> float:
        """The rival's idea of the time."""
        return self.offset + self.world.time * self.speed


class World:
    """Three rivals, one time, and a check at every step that no two lead."""

    def __init__(self, seed: int, troubles: float) -> None:
        """Draw everything from `seed`."""
        self.fake, self.time, self.troubles = FakeApi(), 0.0, troubles
        self.random = random.Random(seed)
        self.rivals = {name: self._rival(name) for name in ("a", "b", "c")}
        self.next = {name: self.random.uniform(0, 3) for name in self.rivals}
        self.busy: set[str] = set()
        self.led: set[str] = set()

    def _rival(self, name: str) -> Elector:
        clock = Drifting(self, self.random.uniform(0, 1e6), self.random.uniform(0.976, 1.024))
        return Elector(Network(self, name), LEASE, name, clock=clock, luck=self.random.random)

    def fate(self) -> tuple[float, float, str]:
        """Draw what happens to a call."""
        slow = self.random.random() < self.troubles
        there, back = (self.random.uniform(0, 8 if slow else 0.2) for _ in range(2))
        lost = self.random.random() < self.troubles
        return there, back, self.random.choice(["lost", "answer lost"]) if lost else "arrives"

    def pass_time(self, seconds: float, caller: str = "") -> None:
        """Let the others go on while one waits for its call."""
        self.busy.add(caller)
        end = self.time + seconds
        while True:
            due = min(
                (moment, name) for name, moment in [*self.next.items(), ("", end)] if name not in self.busy - {""}
            )
            if due[0] >= end or due[1] == "":
                break
            self.time = max(self.time, due[0])
            self.act(due[1])
        self.time = max(self.time, end)
        self.busy.discard(caller)
        self.look()

    def act(self, name: str) -> None:
        """Let one rival make its attempt."""
        wait = self.rivals[name].attempt()
        self.next[name] = self.time + wait
        self.look()

    def look(self) -> None:
        """Check the invariant."""
        leaders = [name for name, rival in self.rivals.items() if rival.fence.held()]
        self.led.update(leaders)
        assert len(leaders) <= 1, leaders
        for leader, (name, rival) in itertools.product(leaders, self.rivals.items()):
            # Another's last write may be under way until the moment its fence calls safe.
            assert leader == name or rival._clock.now() >= rival.fence._safe_until, (leader, name)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), troubles=st.sampled_from([0.0, 0.1, 0.4, 0.8]))
def test_never_two_leaders(seed: int, troubles: float) -> None:
    """With drifting clocks, lost calls and answers and calls that hang, nobody leads while another can still write."""
    world = World(seed, troubles)
    world.pass_time(300)
    assert world.led or troubles > 0.3


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[FakeApi, HttpApi]]:
    fake = FakeApi().start()
    api = load_api(kubeconfig(tmp_path, fake))
    yield fake, api
    api.close()
    fake.stop()


QUICK = Durations(1.0, 0.6, 0.1)


def test_a_clean_stop_hands_the_lease_over(served: tuple[FakeApi, HttpApi]) -> None:
    """A process that stops lets the next one lead within a retry, not a term, and is told before it lets go."""
    fake, api = served
    told: list[str] = []
    first = Elector(api, LEASE, "first", durations=QUICK, on_lost=lambda: told.append(fake_holder(fake)))
    second = Elector(api, LEASE, "second", durations=QUICK)
    first.start()
    assert eventually(first.fence.held)
    second.start()
    time.sleep(0.3)
    assert not second.fence.held()
    began = time.monotonic()
    assert first.stop()
    assert told == ["first"]
    assert eventually(second.fence.held)
    assert time.monotonic() - began < 0.6
    assert second.stop()
    assert fake_holder(fake) == ""


def fake_holder(fake: FakeApi) -> str:
    holder: str = fake.objects[ROOT][LEASE.namespace, LEASE.name]["spec"]["holderIdentity"]
    return holder


def test_the_lease_is_not_handed_back_under_a_write(served: tuple[FakeApi, HttpApi]) -> None:
    """While a write is under way that nobody can call back, the Lease is left to run out."""
    fake, api = served
    first = Elector(api, LEASE, "first", durations=QUICK)
    first.start()
    assert eventually(first.fence.held)
    over = threading.Event()

    def write() -> None:
        with first.fence.writing(0.1):
            over.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    assert first.stop()
    assert (first.fence.held(), fake_holder(fake)) == (False, "first")
    over.set()
    writer.join(5)


def test_a_hung_call_does_not_outlive_the_lease(served: tuple[FakeApi, HttpApi]) -> None:
    """When the server takes a renewal and says nothing, the fence closes in time and another leads after the term."""
    fake, api = served
    lost = threading.Event()
    first = Elector(api, LEASE, "first", durations=QUICK, on_lost=lost.set)
    second = Elector(api, LEASE, "second", durations=QUICK)
    first.start()
    assert eventually(first.fence.held)
    fake.fault(is_patch_of("first"), Silence(headers=False), times=100)
    second.start()
    assert lost.wait(3)
    assert eventually(second.fence.held, 5)
    assert not first.fence.held()
    assert second.stop()
    assert first.stop()


def is_patch_of(name: str) -> Callable[[Seen], bool]:
    def match(seen: Seen) -> bool:
        return seen.method == "PATCH" and name.encode() in seen.body

    return match


def test_stop_without_start() -> None:
    """An election that never began ends at once."""
    elector = Elector(InProcess(FakeApi()), LEASE, "x")
    assert elector.stop()
    assert not elector.alive
