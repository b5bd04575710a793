"""Requests' bodies and answers over ASGI, piece by piece."""

import asyncio
from abc import ABC, abstractmethod
from typing import Protocol

from serving.bridge import Headers, Receive, Scope, Send

_LINGER_SECONDS = 1.0
_LINGER_BYTES = 8 << 20


class Answer(Protocol):
    """What goes back."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def body(self) -> bytes:
        """HTTP body."""

    @property
    def content_type(self) -> str:
        """Of the body."""


class Immediate(ABC):
    """An application that answers some requests by itself, at once, when their bodies are there.

    Attributes:
        most_body: bytes of such a body at most.
    """

    most_body: int

    @abstractmethod
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any request, over ASGI."""

    @abstractmethod
    def accepts(self, method: str, path: str, headers: Headers) -> bool:
        """Whether a request can be answered at once, as far as its head tells."""

    @abstractmethod
    def answer_arrived(self, body: bytes) -> Answer:
        """Answer an accepted request."""


class Reading:
    """A body in the middle of being read."""

    __slots__ = ("_ended", "_gone", "_pieces", "_receive", "_size")

    def __init__(self, receive: Receive) -> None:
        """Read from an ASGI server."""
        self._gone = False
        self._ended = False
        self._receive = receive
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def unfinished(self) -> bool:
        """Whether more is to come."""
        return not (self._ended or self._gone)

    @property
    def gone(self) -> bool:
        """Whether the peer went away."""
        return self._gone

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size

    def body(self) -> bytes:
        """Give what was read."""
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


def content_headers(headers: Headers) -> tuple[str, str, str]:
    """Give Content-Type, Content-Encoding and Content-Length; empty where absent."""
    content_type = content_encoding = content_length = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            content_encoding = value
        elif name == b"content-length":
            content_length = value
    return content_type.decode("latin-1"), content_encoding.decode("latin-1"), content_length.decode("latin-1")


def headers_of(answer: Answer) -> Headers:
    """Give the headers that go with an answer."""
    return [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(answer.body)),
    ]


async def send_answer(send: Send, answer: Answer, *, closing: bool) -> None:
    """Send an answer, the last on its connection where it is closing."""
    headers = headers_of(answer)
    if closing:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def linger(receive: Receive) -> None:
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
