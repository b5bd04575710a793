"""The work queue: a key is handed to one worker at a time, however often and from wherever it is added.

The semantics are those of client-go's workqueue (https://pkg.go.dev/k8s.io/client-go/util/workqueue): a key added
again while it waits is one piece of work; while it is worked on, it comes again afterwards.
"""

import heapq
import random
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from reconciler.clocks import Clock, SystemClock
from reconciler.pacing import Backoff, TokenBucket

K = TypeVar("K", bound=Hashable)


class Line(Generic[K]):
    """The queue's rules without threads: every call is told the time."""

    def __init__(self) -> None:
        """Start empty."""
        self.ready: dict[K, float] = {}
        self.working: dict[K, float | None] = {}
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._tie = 0

    def add(self, key: K, now: float) -> None:
        """Put a key at the end; one that waits keeps its place, one in work is noted for afterwards."""
        if key in self.working:
            self.working[key] = now if self.working[key] is None else self.working[key]
        else:
            self.ready.setdefault(key, now)

    def add_at(self, key: K, due: float) -> None:
        """Add a key at a later time; of several times for one key the earliest counts."""
        if due < self._due.get(key, float("inf")):
            self._due[key], self._tie = due, self._tie + 1
            heapq.heappush(self._later, (due, self._tie, key))

    def take(self, now: float) -> K | None:
        """Hand out the first ready key, `None` if there is none."""
        self._ripen(now)
        if not self.ready:
            return None
        key = next(iter(self.ready))
        del self.ready[key]
        self.working[key] = None
        return key

    def done(self, key: K) -> None:
        """Note the end of work; a key that was added meanwhile goes to the end."""
        again = self.working.pop(key)
        if again is not None:
            self.ready[key] = again

    def next_due(self) -> float | None:
        """Say when the next delayed key is due."""
        return self._later[0][0] if self._later else None

    def forget_later(self) -> None:
        """Drop all delayed keys."""
        self._later.clear()
        self._due.clear()

    def _ripen(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key, due)


class WorkQueue(Generic[K]):
    """A `Line` for threads, with back-off for keys that failed."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        bucket: TokenBucket | None = None,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Start empty.

        Args:
            clock: the queue's time.
            backoff: wait of a key by its failures in a row.
            bucket: bound on retries of all keys together.
            luck: draws from [0, 1).
        """
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff(0.2, 60.0)
        self._bucket = bucket or TokenBucket(10.0, 100)
        self._luck = luck
        self._line: Line[K] = Line()
        self._failures: dict[K, int] = {}
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        """Count the keys that are ready and wait for a worker."""
        with self._changed:
            return len(self._line.ready)

    def oldest_wait(self) -> float:
        """Seconds that the longest waiting ready key waits, 0 for none."""
        with self._changed:
            since = next(iter(self._line.ready.values()), None)
            return 0.0 if since is None else max(0.0, self._clock.now() - since)

    def add(self, key: K) -> None:
        """Ask for work on a key; nothing happens once shut down."""
        with self._changed:
            if not self._closed:
                self._line.add(key, self._clock.now())
                self._changed.notify_all()

    def add_after(self, key: K, seconds: float) -> None:
        """Ask for work on a key later; of several such wishes for one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        with self._changed:
            if not self._closed:
                self._line.add_at(key, self._clock.now() + seconds)
                self._changed.notify_all()

    def add_failed(self, key: K, at_least: float = 0.0) -> float:
        """Ask for work again after a failure; gives the seconds until then.

        Args:
            key: what failed.
            at_least: seconds that the server asked for.
        """
        with self._changed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            wait = max(at_least, self._backoff.delay(failures, self._luck()))
            wait = max(wait, self._bucket.reserve(self._clock.now()))
        self.add_after(key, wait)
        return wait

    def forget(self, key: K) -> None:
        """Note a success: the next failure is the first again."""
        with self._changed:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Count the failures in a row of a key."""
        with self._changed:
            return self._failures.get(key, 0)

    def get(self, timeout: float | None = None) -> K | None:
        """Wait for work. Each key got must be given back with `done`.

        Args:
            timeout: longest wait in seconds, `None` for as long as it takes.

        Returns:
            A key, or `None` after the timeout or when the queue is shut down and empty.
        """
        deadline = None if timeout is None else self._clock.now() + timeout
        with self._changed:
            while True:
                now = self._clock.now()
                key = self._line.take(now)
                if key is not None:
                    return key
                if self._closed or (deadline is not None and now >= deadline):
                    return None
                moments = [moment for moment in (deadline, self._line.next_due()) if moment is not None]
                self._changed.wait(min(moments) - now if moments else None)

    def done(self, key: K) -> None:
        """Give a key back after work on it, however that ended."""
        with self._changed:
            self._line.done(key)
            self._changed.notify_all()

    def shut_down(self, *, discard: bool = False) -> None:
        """Take no more keys. Ready ones are still handed out, unless discarded; delayed ones are dropped."""
        with self._changed:
            self._closed = True
            self._line.forget_later()
            if discard:
                self._line.ready.clear()
            self._changed.notify_all()

    def drain(self, timeout: float) -> bool:
        """Shut down and wait until all ready keys have been worked on; tells whether that was in time."""
        self.shut_down()
        with self._changed:
            return self._changed.wait_for(lambda: not self._line.ready and not self._line.working, timeout)
