"""The webhook as an ASGI application: `POST /mutate` first, everything else to Flask.

The whole body is read under a deadline in the event loop, before anything is decided, so a peer that stalls costs one
waiting coroutine and nothing else (`facts` of the slow-peer test are in `tests/webhook/test_attacks.py`).
"""

import asyncio

from webhook.admission import Admission
from webhook.bridge import AsgiApplication, Headers, Receive, Scope, Send
from webhook.reviews import Decision
from webhook.transport import MAX_BODY, TOO_LARGE, TOO_LATE, TOO_MANY, find_refusal, seconds_allowed

PATH = "/mutate"

SMALL_BODY = 64 << 10
"""Bytes up to which a body is read without waiting for a place among the large ones."""

LARGE_BODIES = 8
"""Bodies above `SMALL_BODY` that are held at the same time: 24 MiB at most."""

_LINGER_SECONDS = 1.0
_LINGER_BYTES = 8 << 20


class Front:
    """ASGI callable that answers `POST /mutate` itself and hands the rest on."""

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
        return path == PATH and method == "POST" and find_refusal(*_header_values(headers)) is None

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
                await _send(send, admission.refuse(body, started), closing=True)
                await _linger(receive)
            else:
                await _send(send, admission.answer(body, started), closing=False)
        finally:
            telemetry.in_flight -= 1

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Decision | None:
        """The whole body, or why it is refused; None when the peer went away."""
        refusal = find_refusal(*_header_values(scope["headers"]))
        if refusal is not None:
            return refusal
        reading = _Reading(receive)
        seconds = seconds_allowed(scope["query_string"].decode("latin-1"), self._most_seconds)
        try:
            async with asyncio.timeout(seconds):
                await reading.read_to(SMALL_BODY)
                if reading.unfinished:
                    return await self._large_body(reading)
        except TimeoutError:
            return TOO_LATE
        return reading.outcome()

    async def _large_body(self, reading: "_Reading") -> bytes | Decision | None:
        """The rest of a body that turned out not to be small."""
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._large.acquire()
        except TimeoutError:
            return TOO_MANY
        try:
            await reading.read_to(MAX_BODY)
        finally:
            self._large.release()
        return reading.outcome()


class _Reading:
    """A body in the middle of being read."""

    __slots__ = ("_ended", "_gone", "_pieces", "_receive", "_size")

    def __init__(self, receive: Receive) -> None:
        self._gone = False
        self._ended = False
        self._receive = receive
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def unfinished(self) -> bool:
        """Whether more is to come."""
        return not (self._ended or self._gone)

    def outcome(self) -> bytes | Decision | None:
        """The body, or that it is too large; None when the peer went away."""
        if self._gone:
            return None
        if self._size > MAX_BODY:
            return TOO_LARGE
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    async def read_to(self, most: int) -> None:
        """Read an unfinished body on until it ended, the peer went away or more than `most` bytes are there."""
        while self._size <= most:
            message = await self._receive()
            if message["type"] != "http.request":
                self._gone = True
                return
            self._pieces.append(message["body"])
            self._size += len(message["body"])
            if not message["more_body"]:
                self._ended = True
                return


def _header_values(headers: Headers) -> tuple[str, str, str]:
    """Content-Type, Content-Encoding and Content-Length."""
    content_type = content_encoding = content_length = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            content_encoding = value
        elif name == b"content-length":
            content_length = value
    return content_type.decode("latin-1"), content_encoding.decode("latin-1"), content_length.decode("latin-1")


def headers_of(answer: Decision) -> Headers:
    """The headers that go with an answer."""
    return [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(answer.body)),
    ]


async def _send(send: Send, answer: Decision, *, closing: bool) -> None:
    headers = headers_of(answer)
    if closing:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _linger(receive: Receive) -> None:
    """Take in what a refused peer still sends, for a moment: closing on unread bytes would reset the answer away."""
    taken = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while taken < _LINGER_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message["more_body"]:
                    return
                taken += len(message["body"])
    except TimeoutError:
        return
