"""The webhook as an ASGI application: `POST /mutate` first, everything else to Flask.

The whole body is read under a deadline in the event loop, before anything is decided, so a peer that stalls costs one
waiting coroutine and nothing else (`facts` of the slow-peer test are in `tests/webhook/test_attacks.py`).
"""

import asyncio

from serving.bodies import Immediate, Reading, content_headers, linger, send_answer
from serving.bridge import AsgiApplication, Headers, Receive, Scope, Send
from serving.deadlines import seconds_allowed
from webhook.admission import Admission
from webhook.reviews import Decision
from webhook.transport import MAX_BODY, TOO_LARGE, TOO_LATE, TOO_MANY, find_refusal

PATH = "/mutate"

SMALL_BODY = 64 << 10
"""Bytes up to which a body is read without waiting for a place among the large ones."""

LARGE_BODIES = 8
"""Bodies above `SMALL_BODY` that are held at the same time: 24 MiB at most."""

_WAIT_SECONDS = 1.0


class Front(Immediate):
    """ASGI callable that answers `POST /mutate` itself and hands the rest on."""

    most_body = MAX_BODY

    def __init__(self, admission: Admission, rest: AsgiApplication, most_seconds: float) -> None:
        """Allow a request `most_seconds` at most, whatever its caller asks for."""
        self._admission = admission
        self._rest = rest
        self._most_seconds = most_seconds
        self._large = asyncio.Semaphore(LARGE_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["path"] == PATH and scope["method"] == "POST":
            await self._mutate(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def accepts(self, method: str, path: str, headers: Headers) -> bool:
        """Whether a request is a review as far as its head tells."""
        return path == PATH and method == "POST" and find_refusal(*content_headers(headers)) is None

    def answer_arrived(self, body: bytes) -> Decision:
        """Answer an accepted request whose body, at most `MAX_BODY` long, is there already."""
        return self._admission.answer(body, self._admission.clock())

    async def _mutate(self, scope: Scope, receive: Receive, send: Send) -> None:
        admission = self._admission
        started = admission.clock()
        telemetry = admission.telemetry
        telemetry.in_flight += 1
        try:
            body = await self._body(scope, receive)
            if body is None:
                return
            if isinstance(body, Decision):
                await send_answer(send, admission.refuse(body, started), closing=True)
                await linger(receive)
            else:
                await send_answer(send, admission.answer(body, started), closing=False)
        finally:
            telemetry.in_flight -= 1

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Decision | None:
        """The whole body, or why it is refused; None when the peer went away."""
        refusal = find_refusal(*content_headers(scope["headers"]))
        if refusal is not None:
            return refusal
        reading = Reading(receive)
        seconds = seconds_allowed(scope["query_string"].decode("latin-1"), self._most_seconds)
        try:
            async with asyncio.timeout(seconds):
                await reading.read_to(SMALL_BODY)
                if reading.unfinished:
                    return await self._large_body(reading)
        except TimeoutError:
            return TOO_LATE
        return _outcome(reading)

    async def _large_body(self, reading: Reading) -> bytes | Decision | None:
        """The rest of a body that turned out not to be small."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._large.acquire()
        except TimeoutError:
            return TOO_MANY
        try:
            await reading.read_to(MAX_BODY)
        finally:
            self._large.release()
        return _outcome(reading)


def _outcome(reading: Reading) -> bytes | Decision | None:
    """The body, or that it is too large; None when the peer went away."""
    if reading.gone:
        return None
    return TOO_LARGE if reading.size > MAX_BODY else reading.body()
