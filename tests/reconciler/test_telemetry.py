"""Metrics, health checks and the port that serves them."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from reconciler import health
from reconciler.health import HealthServer, listen, parse_address
from reconciler.telemetry import Meters


class Post:
    """A health server with checks that a test can set."""

    def __init__(self) -> None:
        """Listen on loopback."""
        self.meters, self.alive, self.ready = Meters(), dict[str, str](), dict[str, str]()
        address = ("127.0.0.1", 0)
        self.server = HealthServer(address, self.meters, alive=lambda: self.alive, ready=lambda: self.ready)
        self.server.start()

    def get(self, path: str, timeout: float = 5) -> tuple[int, str]:
        """Ask."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.server.stop()


def test_metrics(post: Post) -> None:
    """What the machinery counts is served in Prometheus' format."""
    post.meters.watch_age("pods", lambda: 3.5)
    post.meters.relisted("pods", "gone")
    post.meters.bad_item("pods")
    post.meters.watch_failed("pods")
    post.meters.queue(lambda: 4, lambda: 1.5)
    post.meters.retried()
    post.meters.leading(lambda: True)
    post.meters.wrote("patch", "podgroups", "ok")
    post.meters.event("ok")
    post.meters.reconciled(0.002, "ok")
    status, text = post.get("/metrics")
    assert status == 200
    lines = text.splitlines()
    for line in (
        'lockstep_watch_age_seconds{resource="pods"} 3.5',
        'lockstep_watch_relists_total{reason="gone",resource="pods"} 1.0',
        'lockstep_watch_failures_total{resource="pods"} 1.0',
        'lockstep_bad_items_total{resource="pods"} 1.0',
        "lockstep_queue_depth 4.0",
        "lockstep_queue_oldest_seconds 1.5",
        "lockstep_retries_total 1.0",
        "lockstep_leader 1.0",
        'lockstep_writes_total{kind="podgroups",outcome="ok",verb="patch"} 1.0',
        'lockstep_events_total{outcome="ok"} 1.0',
        'lockstep_reconcile_seconds_count{outcome="ok"} 1.0',
    ):
        assert line in lines


def test_checks(post: Post) -> None:
    """Each check is a line; one failing check makes the answer 503; the two sets are told apart."""
    post.alive |= {"watch pods": "", "election": ""}
    post.ready |= {"watch pods": "not synced", "kinds": ""}
    assert post.get("/healthz") == (200, "election: ok\nwatch pods: ok\n")
    assert post.get("/readyz?verbose") == (503, "kinds: ok\nwatch pods: not synced\n")
    assert post.get("/elsewhere")[0] == 404


def test_a_check_that_raises_does_not_end_the_server(post: Post) -> None:
    """A bug in a check costs that answer, not the port."""
    post.server.routes["/bug"] = lambda: (1 // 0, "", b"")
    assert post.get("/bug") == (500, "see the log\n")
    assert post.get("/healthz")[0] == 200


ODD = {
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
    "another method": b"POST /healthz HTTP/1.1\r\n\r\n",
    "an endless header": b"GET / HTTP/1.1\r\nA: " + b"a" * 20000,
    "nothing": b"",
}


@pytest.mark.parametrize("request_bytes", ODD.values(), ids=ODD)
def test_odd_requests(post: Post, request_bytes: bytes) -> None:
    """Whatever a peer sends, it gets 404 or a closed line, and the next one is served."""
    with socket.create_connection(("127.0.0.1", post.server.port), timeout=5) as peer:
        answer = b""
        with contextlib.suppress(OSError):
            peer.sendall(request_bytes)
            peer.shutdown(socket.SHUT_WR)
            answer = peer.recv(100)
    assert answer[:13] in (b"", b"HTTP/1.1 404 ")
    assert post.get("/healthz")[0] == 200


def test_slow_peers_do_not_block_the_probes(post: Post) -> None:
    """Two hundred peers that send nothing, or a byte now and then, do not delay a probe, and are bounded in number."""
    peers = [socket.create_connection(("127.0.0.1", post.server.port)) for _ in range(200)]
    for peer in peers[::2]:
        with contextlib.suppress(OSError):
            peer.send(b"G")
    began = time.monotonic()
    assert post.get("/healthz")[0] == 200
    assert time.monotonic() - began < 1
    assert len(post.server._peers) <= 100
    for peer in peers:
        peer.close()


def test_a_peer_that_never_asks_is_closed(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a request ends by itself."""
    monkeypatch.setattr(health, "SLOWEST_PEER", 0.2)
    with socket.create_connection(("127.0.0.1", post.server.port), timeout=5) as peer:
        assert peer.recv(1) == b""


def test_one_thread_serves_all(post: Post) -> None:
    """However many scrapes, one thread serves them."""
    for _ in range(50):
        post.get("/healthz")
    assert len([thread for thread in threading.enumerate() if thread.name.startswith("health")]) == 1


def test_stop_closes_everything() -> None:
    """After stopping the port is closed, also under a peer that waits, and no thread is left."""
    post = Post()
    with socket.create_connection(("127.0.0.1", post.server.port), timeout=5) as peer:
        assert post.get("/healthz")[0] == 200
        post.server.stop()
        assert peer.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        post.get("/healthz")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("health")]


GOOD = {
    "IPv4": ("127.0.0.1:8080", ("127.0.0.1", 8080)),
    "IPv6 in brackets": ("[::1]:8080", ("::1", 8080)),
    "every address": (":9090", ("", 9090)),
    "a name": ("localhost:1", ("localhost", 1)),
}


@pytest.mark.parametrize(("text", "address"), GOOD.values(), ids=GOOD)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    """Host and port are read in the usual spellings."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:x", "host:70000", "::1:80", "host:-1", "host:\uff18"])
def test_bad_addresses(text: str) -> None:
    """Anything else is refused with the culprit."""
    with pytest.raises(ValueError, match="must be host:port") as caught:
        parse_address(text)
    assert str(caught.value) == f'metrics-addr: must be host:port, got "{text}"'


def test_c62_the_default_bind_is_reached_over_both_families() -> None:
    """An empty host accepts IPv4 and, where the machine has it, IPv6."""
    families = [("127.0.0.1", socket.AF_INET)]
    if socket.has_dualstack_ipv6():
        families.append(("::1", socket.AF_INET6))
    with listen("", 0) as listener:
        port = listener.getsockname()[1]
        for host, _ in families:
            socket.create_connection((host, port), timeout=2).close()
    with listen("127.0.0.1", 0) as listener:
        assert listener.family == socket.AF_INET
