"""The service as an ASGI application: bodies are read whole under a deadline, then judged in threads.

A peer that stalls costs one waiting coroutine. Reviews of many objects take seconds, so they have a thread and a queue
of their own beside admissions, and health checks are answered in between.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from policies.service.application import MAX_BODY, REVIEW, VALIDATE, VALIDATE_WARN
from policies.service.telemetry import Telemetry
from serving.bodies import Reading, linger, send_answer
from serving.bridge import Headers, Receive, Scope, Send, WsgiBridge, environ_of
from serving.deadlines import seconds_allowed

REVIEW_SECONDS: Final = 30.0
ADMISSION_SECONDS: Final = 10.0
"""The API server's default for a webhook's timeoutSeconds."""

LARGE_BODIES: Final = 4
"""Bodies above `SMALL_BODY` that are read at the same time: 32 MiB at most."""

SMALL_BODY: Final = 64 << 10
_WAIT_SECONDS: Final = 1.0


class Refusal(msgspec.Struct, frozen=True):
    """An answer without a look at the body's content."""

    status: int
    body: bytes
    content_type: str = "application/json"


def refusal(status: int, message: str) -> Refusal:
    """Word one."""
    return Refusal(status, msgspec.json.encode({"message": message}))


TOO_LARGE: Final = refusal(413, f"body: must be at most {MAX_BODY} bytes, got more")
TOO_LATE: Final = refusal(408, "body: must arrive before the deadline, got less")
TOO_MANY: Final = refusal(503, "request: must wait, got too many at once")
TOO_LONG: Final = refusal(503, "request: must be answered before the deadline, got no answer yet")

Answered = tuple[int, Headers, bytes]


class Lane:
    """One kind of request: threads that answer it, and how many may wait for them."""

    def __init__(self, seconds: float, threads: int, most_waiting: int) -> None:
        """Take a request at most so many seconds from its head to its answer."""
        self.seconds = seconds
        self.waiting = 0
        self.most_waiting = most_waiting
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="lane")


class Front:
    """ASGI callable around the Flask application."""

    def __init__(self, bridge: WsgiBridge, telemetry: Telemetry, retire: Callable[[], None]) -> None:
        """Answer with `bridge`; `retire` is told after every review, to end the process where it has grown."""
        self._bridge = bridge
        self._telemetry = telemetry
        self._retire = retire
        self._large = asyncio.Semaphore(LARGE_BODIES)
        admissions = Lane(ADMISSION_SECONDS, 2, 64)
        self._lanes: Mapping[str, Lane] = {
            VALIDATE: admissions,
            VALIDATE_WARN: admissions,
            REVIEW: Lane(REVIEW_SECONDS, 1, 8),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        lane = self._lanes.get(scope["path"]) if scope["method"] == "POST" else None
        if lane is None:
            await self._bridge(scope, receive, send)
            return
        started = time.monotonic()
        self._telemetry.in_flight += 1
        try:
            status = await self._answer(scope, receive, send, lane)
        finally:
            self._telemetry.in_flight -= 1
        if status:
            self._telemetry.record(scope["path"], status, time.monotonic() - started)
        self._retire()

    async def _answer(self, scope: Scope, receive: Receive, send: Send, lane: Lane) -> int:
        """Answer a review and give the status; 0 where the peer went away."""
        seconds = seconds_allowed(scope["query_string"].decode("latin-1"), lane.seconds)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        body = await self._body(scope, receive, deadline)
        if body is None:
            return 0
        if isinstance(body, Refusal):
            await send_answer(send, body, closing=True)
            await linger(receive)
            return body.status
        answered = await self._judge(environ_of(scope, body), lane, deadline)
        if isinstance(answered, Refusal):
            await send_answer(send, answered, closing=False)
            return answered.status
        status, headers, content = answered
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})
        return status

    async def _judge(self, environ: dict[str, Any], lane: Lane, deadline: float) -> Answered | Refusal:
        """Let a thread answer; it goes on where the deadline passes, so it keeps its place in the lane."""
        if lane.waiting >= lane.most_waiting:
            return TOO_MANY
        lane.waiting += 1
        work = asyncio.get_running_loop().run_in_executor(lane.pool, self._bridge.call, environ)
        work.add_done_callback(lambda _: _leave(lane))
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(work)
        except TimeoutError:
            work.cancel()  # where no thread has begun with it
            return TOO_LONG

    async def _body(self, scope: Scope, receive: Receive, deadline: float) -> bytes | Refusal | None:
        """The whole body, or why it is refused; None when the peer went away."""
        if _length(scope["headers"]) > MAX_BODY:
            return TOO_LARGE
        reading = Reading(receive)
        try:
            async with asyncio.timeout_at(deadline):
                await reading.read_to(SMALL_BODY)
                if reading.unfinished and not await self._read_large(reading):
                    return TOO_MANY
        except TimeoutError:
            return TOO_LATE
        if reading.gone:
            return None
        return TOO_LARGE if reading.size > MAX_BODY else reading.body()

    async def _read_large(self, reading: Reading) -> bool:
        """Read the rest of a body that turned out not to be small; false where there is no room."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._large.acquire()
        except TimeoutError:
            return False
        try:
            await reading.read_to(MAX_BODY)
        finally:
            self._large.release()
        return True


def _leave(lane: Lane) -> None:
    lane.waiting -= 1


def _length(headers: Headers) -> int:
    """The announced length; 0 where there is none, or none that our parser would let through."""
    text = next((value for name, value in headers if name == b"content-length"), b"")
    return int(text[:20]) if text.isdigit() else 0
