"""The work queue's promises, most of them on its rules without threads and with a clock in hand."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reconciler.pacing import Backoff, TokenBucket
from reconciler.work_queue import Line, WorkQueue
from tests.reconciler.clocks import HandClock
from tests.reconciler.fake_api import eventually


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def queue(clock: HandClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, backoff=Backoff(1.0, 8.0), bucket=TokenBucket(1000, 1000), luck=lambda: 1.0)


def test_keys_come_in_the_order_they_were_added(queue: WorkQueue[str]) -> None:
    """First in, first out."""
    for key in "abc":
        queue.add(key)
    assert [queue.get(0), queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", "c", None]


def test_a_key_waits_once_and_keeps_its_place(queue: WorkQueue[str]) -> None:
    """Adding a waiting key again neither doubles nor moves it."""
    for key in "abaab":
        queue.add(key)
    assert len(queue) == 2
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", None]


def test_a_key_in_work_is_handed_to_nobody_else(queue: WorkQueue[str]) -> None:
    """Added during work, a key comes again afterwards, once, and not before."""
    queue.add("a")
    assert queue.get(0) == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get(0) is None
    queue.done("a")
    assert queue.get(0) == "a"
    queue.done("a")
    assert queue.get(0) is None


def test_a_busy_key_does_not_starve_the_others(queue: WorkQueue[str]) -> None:
    """A key that is added again and again takes its turn behind all that wait."""
    for key in "abc":
        queue.add(key)
    order = []
    for _ in range(6):
        got = queue.get(0)
        assert got is not None
        order.append(got)
        queue.add(got)
        queue.done(got)
    assert "".join(order) == "abcabc"


def test_delayed_keys_come_when_they_are_due(queue: WorkQueue[str], clock: HandClock) -> None:
    """Not before, in the order of their times, not of their adding."""
    queue.add_after("late", 3)
    queue.add_after("soon", 1)
    assert queue.get(0) is None
    clock.time += 1
    assert queue.get(0) == "soon"
    assert queue.get(0) is None
    clock.time += 5
    assert queue.get(0) == "late"


def test_the_earliest_of_several_delays_counts(queue: WorkQueue[str], clock: HandClock) -> None:
    """A shorter delay moves a key forward, a longer one does nothing, and it comes once."""
    for seconds in (5, 2, 9):
        queue.add_after("a", seconds)
    clock.time += 2
    assert queue.get(0) == "a"
    queue.done("a")
    clock.time += 100
    assert queue.get(0) is None


def test_no_delay_is_now(queue: WorkQueue[str]) -> None:
    """Zero and less mean at once."""
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert [queue.get(0), queue.get(0)] == ["a", "b"]


def test_a_delayed_key_that_is_in_work_comes_afterwards(queue: WorkQueue[str], clock: HandClock) -> None:
    """A delay that ends during work on the key makes it come again after that work."""
    queue.add("a")
    assert queue.get(0) == "a"
    queue.add_after("a", 1)
    clock.time += 2
    assert queue.get(0) is None
    queue.done("a")
    assert queue.get(0) == "a"


def test_back_off_grows_by_key_and_is_forgotten(queue: WorkQueue[str]) -> None:
    """Each failure in a row doubles the wait up to the cap; a success starts over; other keys are not concerned."""
    waits = [queue.add_failed("a") for _ in range(5)]
    assert waits == [1, 2, 4, 8, 8]
    assert queue.failures("a") == 5
    assert queue.add_failed("b") == 1
    queue.forget("a")
    assert (queue.failures("a"), queue.add_failed("a")) == (0, 1)


def test_the_servers_wish_is_the_least_wait(queue: WorkQueue[str]) -> None:
    """Retry-After counts where it is longer than the back-off."""
    assert queue.add_failed("a", at_least=7) == 7
    assert queue.add_failed("a", at_least=0.5) == 2


def test_retries_of_all_keys_share_a_bucket(clock: HandClock) -> None:
    """When many keys fail at once their retries are spread at the bucket's rate."""
    queue: WorkQueue[int] = WorkQueue(clock=clock, backoff=Backoff(0.001, 1), bucket=TokenBucket(2, 2), luck=lambda: 0)
    assert [round(queue.add_failed(key), 3) for key in range(5)] == [0.001, 0.001, 0.5, 1.0, 1.5]


def test_depth_and_wait(queue: WorkQueue[str], clock: HandClock) -> None:
    """The queue tells how many wait and for how long."""
    assert (len(queue), queue.oldest_wait()) == (0, 0)
    queue.add("a")
    clock.time += 3
    queue.add("b")
    assert (len(queue), queue.oldest_wait()) == (2, 3)


def test_shut_down_hands_out_the_rest(queue: WorkQueue[str], clock: HandClock) -> None:
    """Ready keys are still handed out, new and delayed ones are not, then everybody is sent home."""
    queue.add("a")
    queue.add_after("b", 1)
    queue.shut_down()
    queue.add("c")
    clock.time += 5
    assert [queue.get(), queue.get()] == ["a", None]


def test_shut_down_may_discard(queue: WorkQueue[str]) -> None:
    """On request nothing more is handed out."""
    queue.add("a")
    queue.shut_down(discard=True)
    assert queue.get() is None


def test_drain_waits_for_work_under_way() -> None:
    """Draining ends when the last key is done, and tells when that takes too long."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert queue.get() == "a"
    assert not queue.drain(0.05)
    threading.Timer(0.05, queue.done, ["a"]).start()
    assert queue.drain(5)


def test_waiting_workers_wake_for_each_reason() -> None:
    """A worker that waits wakes for a new key, for a delayed one, and for the end."""
    queue: WorkQueue[str] = WorkQueue()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.get)
        queue.add("now")
        assert waiting.result(5) == "now"
        waiting = pool.submit(queue.get)
        queue.add_after("later", 0.05)
        assert waiting.result(5) == "later"
        waiting = pool.submit(queue.get)
        queue.shut_down()
        assert waiting.result(5) is None


def test_many_workers_never_share_a_key() -> None:
    """With eight workers and many hints each key is in one pair of hands at a time, and no hint is lost."""
    queue: WorkQueue[int] = WorkQueue()
    hinted, handled = [0] * 20, [0] * 20
    busy: set[int] = set()
    shared: list[int] = []

    def work() -> None:
        while (key := queue.get()) is not None:
            shared.extend([key] if key in busy else [])
            busy.add(key)
            handled[key] = hinted[key]
            busy.discard(key)
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for number in range(3000):
        hinted[number % 20] += 1
        queue.add(number % 20)
    assert queue.drain(20)
    for worker in workers:
        worker.join(5)
    assert (handled, shared) == (hinted, [])
    assert eventually(lambda: not any(worker.is_alive() for worker in workers))


KEYS = st.integers(0, 4)


class LineModel(RuleBasedStateMachine):
    """Compares `Line` with the plainest model: a list, two sets and a dictionary of times."""

    def __init__(self) -> None:
        """Start both empty."""
        super().__init__()
        self.line: Line[int] = Line()
        self.waiting: list[int] = []
        self.working: set[int] = set()
        self.again: set[int] = set()
        self.due: dict[int, float] = {}
        self.now = 0.0

    def model_add(self, key: int) -> None:
        """Add to the model."""
        if key in self.working:
            self.again.add(key)
        elif key not in self.waiting:
            self.waiting.append(key)

    @rule(key=KEYS)
    def add(self, key: int) -> None:
        """Add a key."""
        self.line.add(key, self.now)
        self.model_add(key)

    @rule(key=KEYS, seconds=st.integers(1, 5))
    def add_later(self, key: int, seconds: int) -> None:
        """Add a key for later."""
        self.line.add_at(key, self.now + seconds)
        self.due[key] = min(self.due.get(key, float("inf")), self.now + seconds)

    @rule(seconds=st.integers(1, 3))
    def pass_time(self, seconds: int) -> None:
        """Let time pass."""
        self.now += seconds

    @rule()
    def take(self) -> None:
        """Take a key; among keys that got due at the same moment any order will do."""
        taken = self.line.take(self.now)
        ripe = sorted((due, key) for key, due in self.due.items() if due <= self.now)
        moments = [due for due, _ in ripe]
        for _, key in ripe:
            del self.due[key]
            self.model_add(key)
        if len(moments) == len(set(moments)):
            assert taken == (self.waiting[0] if self.waiting else None)
        else:
            assert (taken is None) == (not self.waiting)
        if taken is not None:
            self.waiting.remove(taken)
            self.working.add(taken)
            # Where several got due at once the model follows the line's order from here on.
            self.waiting.sort(key=list(self.line.ready).index)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """Give a key back."""
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.line.done(key)
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)

    @invariant()
    def nothing_waits_and_works(self) -> None:
        """A key is never ready and in work at once."""
        assert not self.line.ready.keys() & self.line.working.keys()
        assert list(self.line.ready) == self.waiting
        assert self.line.working.keys() == self.working


TestLineModel = LineModel.TestCase


@given(failures=st.integers(1, 10_000), luck=st.floats(0, 1, exclude_max=True))
def test_back_off_stays_in_bounds(failures: int, luck: float) -> None:
    """However many failures, the wait is between half and the whole of base to cap, without overflow."""
    assert 0.25 <= Backoff(0.5, 30.0).delay(failures, luck) <= 30.0


@given(gaps=st.lists(st.floats(0, 10), max_size=50), rate=st.floats(0.1, 100), burst=st.integers(1, 20))
def test_a_bucket_never_gives_more_than_its_rate(gaps: list[float], rate: float, burst: int) -> None:
    """Over any stretch of time no more than burst plus rate times time is taken."""
    bucket, now, taken = TokenBucket(rate, burst), 5.0, 0
    for gap in gaps:
        now += gap
        taken += bucket.take(now)
    assert taken <= burst + rate * sum(gaps) + 1e-6
    assert taken >= min(len(gaps), burst)


@given(gaps=st.lists(st.floats(0, 2), min_size=1, max_size=50))
def test_reservations_are_spaced(gaps: list[float]) -> None:
    """Every reservation lies no earlier than the one before, and they are at least 1/rate apart beyond the burst."""
    bucket, now, moments = TokenBucket(2.0, 3), 0.0, list[float]()
    for gap in gaps:
        now += gap
        moments.append(now + bucket.reserve(now))
    for early, late in zip(moments, moments[3:], strict=False):
        assert late - early >= 0.5 - 1e-9
