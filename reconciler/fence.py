"""The fence: keeps a process from writing once it may no longer be the leader. Pure but for its lock."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.clocks import Clock, SystemClock
from reconciler.contract import CALL_SECONDS, JSON, NO_QUERY, Api, Conflict, Response, Stream
from reconciler.telemetry import Meters

WRITE_SECONDS: Final = 4.0
"""How long a write may take when nobody says; fits between the default end of leading and of the lease."""


class NotLeader(Exception):  # noqa: N818 - reads as what is the case
    """A write was held back because this process is not, or may soon no longer be, the leader."""


class Fence:
    """Whether this process may write now. Closed until opened; closes by itself when its time is up."""

    def __init__(self, clock: Clock | None = None, *, open_for_ever: bool = False) -> None:
        """Start closed, or open for good where there is no election."""
        self._clock = clock or SystemClock()
        self._lock = threading.Condition()
        self._held_until = self._safe_until = float("inf") if open_for_ever else float("-inf")
        self._in_flight = 0
        self._refused = False

    @classmethod
    def always(cls) -> "Fence":
        """Make a fence that is open: for a process without rivals."""
        return cls(open_for_ever=True)

    def held(self) -> bool:
        """Tell whether this process is the leader now."""
        return self._clock.now() < self._held_until

    def check(self, timeout: float) -> None:
        """Refuse a write that could still be under way when another may lead.

        Args:
            timeout: longest time in seconds that the write may take.

        Raises:
            NotLeader: the write must not be made.
        """
        now = self._clock.now()
        self._refused = self._refused or now >= self._held_until or now + timeout > self._safe_until
        if now >= self._held_until:
            raise NotLeader("this process does not hold the lease")
        if now + timeout > self._safe_until:
            raise NotLeader(f"the lease is safe for {self._safe_until - now:.1f} s, a write may take {timeout:.1f} s")

    @contextlib.contextmanager
    def writing(self, timeout: float) -> Iterator[None]:
        """Check, and be counted as under way while the write lasts."""
        with self._lock:
            self.check(timeout)
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._lock.notify_all()

    def open_until(self, held: float, safe: float) -> bool:
        """Open: leader until `held`, writes done by `safe`; tells whether a write was refused since the last time."""
        with self._lock:
            self._held_until, self._safe_until = held, safe
            refused, self._refused = self._refused, False
            return refused

    def close(self) -> None:
        """Let nothing begin any more."""
        self.open_until(float("-inf"), float("-inf"))

    def wait_idle(self, timeout: float) -> bool:
        """Wait until no write is under way; tells whether that was in time."""
        with self._lock:
            return self._lock.wait_for(lambda: self._in_flight == 0, timeout)


class FencedApi:
    """An `Api` whose writes stop at the fence and are counted."""

    def __init__(self, api: Api, fence: Fence, meters: Meters | None = None, *, longest: float = WRITE_SECONDS) -> None:
        """Stand before `api`; a write takes `longest` seconds at most unless its caller says otherwise."""
        self._api, self._fence, self._meters = api, fence, meters or Meters()
        self._longest = longest

    def request(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float | None = None,
    ) -> Response:
        """Make one call, see `contract.Api.request`; reads pass freely.

        Raises:
            NotLeader: a write was held back.
        """
        if method == "GET":
            return self._api.request(method, path, query, timeout=CALL_SECONDS if timeout is None else timeout)
        limit = self._longest if timeout is None else timeout
        outcome = "failed"
        try:
            with self._fence.writing(limit):
                answer = self._api.request(method, path, query, body=body, content_type=content_type, timeout=limit)
            outcome = "ok"
        except NotLeader:
            outcome = "fenced"
            raise
        except Conflict:
            outcome = "conflict"
            raise
        finally:
            self._meters.wrote(method.lower(), _plural(path), outcome)
        return answer

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Open a stream; reads pass freely."""
        return self._api.stream(path, query, read_timeout=read_timeout)


def _plural(path: str) -> str:
    """Read the resource out of a path: the part before the name, or the last one of a collection."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[0] == "namespaces" and len(parts) > 2:  # noqa: PLR2004 - namespaces/<name>/<plural>
        parts = parts[2:]
    return parts[0]
