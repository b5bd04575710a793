"""Hostile peers against the running server: none costs anyone else their answer.

The four slow peers are those that stall thread-pool servers; 200 of each are held open while an honest client asks.
"""

import re
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.builders import leader_pod, review
from tests.webhook.serving import Served, read_to_end, trusting

HOSTILE = 200
HONEST_SECONDS = 1.0
CUT_OFF_SECONDS = 9.0
HEAD = b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def _silent(server: Served, _: ssl.SSLContext) -> socket.socket:
    return server.connect_plain()


def _half_hello(server: Served, _: ssl.SSLContext) -> socket.socket:
    plain = server.connect_plain()
    plain.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
    return plain


def _tls_only(server: Served, context: ssl.SSLContext) -> socket.socket:
    return server.connect(context)


def _partial_head(server: Served, context: ssl.SSLContext) -> socket.socket:
    connection = server.connect(context)
    connection.sendall(HEAD)
    return connection


def _stalled_body(server: Served, context: ssl.SSLContext) -> socket.socket:
    connection = server.connect(context)
    connection.sendall(HEAD.replace(b"10s", b"3s") + b'Content-Length: 10000\r\n\r\n{"kind":')
    return connection


def _stalled_large_body(server: Served, context: ssl.SSLContext) -> socket.socket:
    connection = server.connect(context)
    connection.sendall(HEAD.replace(b"10s", b"3s") + b"Content-Length: 3000000\r\n\r\n" + b" " * 70_000)
    return connection


@contextmanager
def _held(open_one: Callable[[], socket.socket]) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(open_one()) for _ in range(HOSTILE)]


def _seconds_of_a_review(server: Served) -> float:
    begun = time.monotonic()
    assert server.mutate(review(leader_pod())).status == 200
    return time.monotonic() - begun


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(_silent, id="no ClientHello"),
        pytest.param(_half_hello, id="half a ClientHello"),
        pytest.param(_tls_only, id="TLS and no request"),
        pytest.param(_partial_head, id="half a head"),
        pytest.param(_stalled_body, id="a body that stalls"),
        pytest.param(_stalled_large_body, id="a large body that stalls"),
    ],
)
def test_slow_peers(server: Served, attack: Callable[[Served, ssl.SSLContext], socket.socket]) -> None:
    """200 of them: an honest review is answered within a second, and each is cut off by its deadline."""
    context = trusting(server.folder / "ca.crt")
    opened = time.monotonic()
    with _held(lambda: attack(server, context)) as connections:
        assert min(_seconds_of_a_review(server) for _ in range(3)) < HONEST_SECONDS
        last_opened = time.monotonic()
        for connection in connections:
            connection.settimeout(CUT_OFF_SECONDS)
            read_to_end(connection)
        assert time.monotonic() - last_opened < CUT_OFF_SECONDS
    assert time.monotonic() - opened < 60
    assert server.mutate(review(leader_pod())).status == 200


def test_a_head_dripped_byte_by_byte_gets_no_more_time(server: Served) -> None:
    """The deadline is on the whole head: each byte does not buy another."""
    begun = time.monotonic()
    with server.connect() as connection:
        sent = _send_until_closed(connection, [bytes([byte]) for byte in HEAD * 2], pause=0.1)
    assert 4 < time.monotonic() - begun < CUT_OFF_SECONDS
    assert 40 < sent < 90


def test_a_body_dripped_gets_408(server: Served) -> None:
    """The deadline is on the whole body too, and is what the caller's timeout allows."""
    begun = time.monotonic()
    with server.connect() as connection:
        connection.sendall(HEAD.replace(b"10s", b"2s") + b"Content-Length: 10000\r\n\r\n")
        while not select.select([connection], [], [], 0.1)[0]:
            connection.sendall(b" ")
        received = connection.recv(1000)
    assert 1.5 < time.monotonic() - begun < 4.0
    assert received.startswith(b"HTTP/1.1 408 Request Timeout")
    assert b"connection: close" in received
    assert received.endswith(b"body: must arrive before the deadline")


FOR_EVER = 1_000_000
"""More sends than fit into the time that the server gives a peer, whatever the machine."""


@pytest.mark.parametrize(
    ("requests", "pause"),
    [
        pytest.param(50, 0.0, id="in a flood"),
        pytest.param(1, 0.002, id="one request after the other"),
    ],
)
def test_a_peer_that_reads_no_answers(server: Served, requests: int, pause: float) -> None:
    """Asking for ever without reading ends in a closed connection, not in memory."""
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * requests
    before = server.resident_kib()
    with server.connect() as connection:
        connection.settimeout(30.0)
        sent = _send_until_closed(connection, [request] * FOR_EVER, pause)
    assert sent < FOR_EVER
    assert server.resident_kib() - before < 16 << 10
    assert server.mutate(review(leader_pod())).status == 200


def test_connections_are_bounded(server: Served) -> None:
    """Beyond the bound the longest unused connection goes, so a newcomer is always answered."""
    context = trusting(server.folder / "ca.crt")
    with ExitStack() as stack:
        idle = []
        for _ in range(1050):
            connection = stack.enter_context(server.connect(context))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            idle.append(connection)
        assert server.mutate(review(leader_pod())).status == 200
        assert idle[0].recv(10) == b""
        idle[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle[-1].recv(1000).startswith(b"HTTP/1.1 200")


def test_connections_that_come_and_go_leave_no_memory(server: Served) -> None:
    """A new connection for each of 600 reviews costs nothing that stays: no lost connection is held on to."""
    for _ in range(100):
        server.mutate(review(leader_pod()))
    before = server.resident_kib()
    for _ in range(600):
        server.mutate(review(leader_pod()))
    assert server.resident_kib() - before < 4 << 10


def _review_with(head: bytes) -> bytes:
    return HEAD + head + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(
            _review_with(b"Content-Length: 3\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n",
            400,
            id="length and chunked",
        ),
        pytest.param(_review_with(b"Content-Length: 3\r\nContent-Length: 4") + b"{}  ", 400, id="two lengths"),
        pytest.param(_review_with(b"Content-Length: -1"), 400, id="a length below zero"),
        pytest.param(_review_with(b"Content-Length: +3") + b"{} ", 400, id="a length with a sign"),
        pytest.param(_review_with(b"Content-Length: 0x3") + b"{} ", 400, id="a length in hex"),
        pytest.param(_review_with(b"Content-Length : 3") + b"{} ", 400, id="a blank before the colon"),
        pytest.param(_review_with(b"Transfer-Encoding: chunked, identity") + b"0\r\n\r\n", 400, id="chunked not last"),
        pytest.param(_review_with(b"Transfer-Encoding: xchunked") + b"0\r\n\r\n", 400, id="an unknown coding"),
        pytest.param(_review_with(b"Transfer-Encoding:\x0bchunked") + b"0\r\n\r\n", 400, id="a control character"),
        pytest.param(_review_with(b"Transfer-Encoding: chunked") + b"zz\r\n", 400, id="a chunk size that is no number"),
        pytest.param(_review_with(b"Transfer-Encoding: chunked") + b"-1\r\n", 400, id="a chunk size below zero"),
        pytest.param(
            _review_with(b"Transfer-Encoding: chunked") + b"2\r\n{}XX0\r\n\r\n", 400, id="a chunk longer than it says"
        ),
        pytest.param(_review_with(b"Folded: a\r\n b\r\nContent-Length: 2") + b"{}", 400, id="a folded header"),
        pytest.param(b"POST /mutate HTTP/1.1\r\nHost: x\nContent-Length: 2\r\n\r\n{}", 400, id="a bare line feed"),
        pytest.param(b"POST /mutate HTTP/2.0\r\nHost: x\r\n\r\n", 400, id="a version that we do not speak"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="HTTP/2 without having agreed on it"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400, id="TLS inside TLS"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 500 + b"\r\n", 431, id="too many headers"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 20_000 + b"\r\n\r\n", 431, id="a header too long"),
        pytest.param(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, id="a path too long"),
    ],
)
def test_smuggling_shapes(server: Served, sent: bytes, status: int) -> None:
    """A request whose end could be read in two ways is refused and its connection closed: nothing behind it counts."""
    hidden = b"GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n"
    received = server.say(sent + hidden)
    assert received.startswith(f"HTTP/1.1 {status} ".encode())
    assert len(re.findall(rb"HTTP/1\.1 [0-9]{3} ", received)) == 1
    assert b"Traceback" not in received


@pytest.mark.parametrize(
    "upgrade",
    [
        pytest.param(
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
            id="WebSocket",
        ),
        pytest.param(b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", id="HTTP/2 in clear text"),
    ],
)
def test_no_upgrade(server: Served, upgrade: bytes) -> None:
    """Nobody talks the server into another protocol."""
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\n"
    with server.connect() as connection:
        connection.sendall(head + upgrade + b"\r\n\r\n")
        received = connection.recv(1000)
    assert b"101 " not in received.partition(b"\r\n")[0]
    assert b" 500 " not in received.partition(b"\r\n")[0]


def test_plain_http_on_the_tls_port(server: Served) -> None:
    """Clear text is not answered, and harms nobody."""
    with server.connect_plain() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200" not in read_to_end(connection)
    assert server.mutate(review(leader_pod())).status == 200


def test_a_peer_that_resets(server: Served) -> None:
    """200 connections reset in the middle of a body leave nothing behind."""
    context = trusting(server.folder / "ca.crt")
    with _held(lambda: _stalled_body(server, context)) as connections:
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    deadline = time.monotonic() + 10
    while "lockstep_webhook_requests_in_flight 0.0" not in server.ask("GET", "/metrics").body.decode():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nothing_of_all_this_was_a_bug(server: Served) -> None:
    """After the attacks of this module the log holds no traceback, and the process is the same one."""
    assert server.process.poll() is None
    assert [line for line in server.lines() if line.get("level") in ("error", "critical") or "text" in line] == []


def _send_until_closed(connection: ssl.SSLSocket, pieces: list[bytes], pause: float) -> int:
    """Send piece by piece until the server has closed; give the number of pieces."""
    for number, piece in enumerate(pieces):
        try:
            connection.sendall(piece)
        except (ConnectionError, ssl.SSLError):
            return number
        time.sleep(pause)
    return len(pieces)
