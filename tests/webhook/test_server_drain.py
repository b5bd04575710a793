"""Case C60: a server that is told to stop goes without anyone noticing."""

import http.client
import signal
import ssl
import threading
import time
from pathlib import Path
from typing import Self

import pytest

from tests.builders import leader_pod, review
from tests.webhook.serving import Served, ask, read_to_end, running, trusting

JSON = "application/json"


def _is_ready(served: Served) -> bool:
    plain = http.client.HTTPConnection("127.0.0.1", served.metrics_port, timeout=5)
    try:
        return ask(plain, "GET", "/readyz").status == 200
    except OSError:
        return False
    finally:
        plain.close()


class Caller:
    """A client at 50 requests a second with kept-alive connections, which goes where the endpoints point."""

    def __init__(self, first: Served, second: Served) -> None:
        """Start with the first server."""
        self.failures: list[str] = []
        self.answered = [0, 0]
        self._servers = (first, second)
        self._target = 0
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._call), threading.Thread(target=self._watch)]

    def __enter__(self) -> Self:
        """Begin to call."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop calling."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _watch(self) -> None:
        """Play the endpoint controller, which is slow: what is not ready is left 1.5 s later."""
        while not self._ended.wait(0.1):
            if self._target == 0 and not _is_ready(self._servers[0]):
                self._ended.wait(1.5)
                self._target = 1

    def _call(self) -> None:
        clients = [server.client() for server in self._servers]
        body = review(leader_pod())
        due = time.monotonic()
        while not self._ended.is_set():
            target = self._target
            try:
                answer = ask(clients[target], "POST", "/mutate?timeout=2s", body, content_type=JSON)
                self.answered[target] += 1
                if answer.status != 200:
                    self.failures.append(f"status {answer.status}")
            except (OSError, http.client.HTTPException, ssl.SSLError) as error:
                self.failures.append(repr(error))
                clients[target].close()
            due += 0.02
            self._ended.wait(max(0.0, due - time.monotonic()))
        for client in clients:
            client.close()


def test_c60_a_client_sees_no_reset_over_the_switch(pair_folder: Path) -> None:
    """C60: at 50 requests a second over the stop of one server, each request is answered, and the exit code is 0."""
    with running(pair_folder, "--drain-seconds", "4") as first, running(pair_folder) as second:
        with Caller(first, second) as caller:
            time.sleep(1.0)
            first.process.send_signal(signal.SIGTERM)
            assert first.process.wait(30) == 0
            time.sleep(0.5)
        assert caller.failures == []
        assert min(caller.answered) > 20


def test_c60_not_ready_at_once_and_serving_all_the_same(pair_folder: Path) -> None:
    """C60: after SIGTERM it is not ready, answers both old and new connections and announces their end."""
    with running(pair_folder, "--drain-seconds", "3") as served:
        kept = served.client()
        assert "connection" not in ask(kept, "POST", "/mutate", review(leader_pod()), content_type=JSON).headers
        begun = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        while _is_ready(served):
            assert time.monotonic() - begun < 1.0
        answer = ask(kept, "POST", "/mutate", review(leader_pod()), content_type=JSON)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        answer = served.ask("GET", "/readyz")
        assert (answer.status, answer.body, answer.headers["connection"]) == (503, b"draining: told to stop\n", "close")
        assert served.mutate(review(leader_pod())).status == 200
        assert served.process.wait(30) == 0
        assert 3.0 <= time.monotonic() - begun < 6.0
        kept.close()


def test_c60_idle_connections_are_closed_in_order(pair_folder: Path) -> None:
    """C60: a connection that nobody uses ends while the server still drains, with TLS's own goodbye."""
    with running(pair_folder, "--drain-seconds", "8") as served:
        with served.connect() as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert idle.recv(1000).startswith(b"HTTP/1.1 200 OK")
            served.process.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            assert idle.recv(1000) == b""
            assert 1.0 < time.monotonic() - begun < 5.0
        assert served.process.poll() is None


def test_c60_a_request_in_flight_is_answered(pair_folder: Path) -> None:
    """C60: what had begun when the drain ended gets its answer before the process goes."""
    body = review(leader_pod())
    head = (
        f"POST /mutate?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with running(pair_folder, "--drain-seconds", "1") as served:
        with trusting(pair_folder / "ca.crt").wrap_socket(
            served.connect_plain(), server_hostname="localhost"
        ) as connection:
            connection.sendall(head.encode() + body[:100])
            served.process.send_signal(signal.SIGTERM)
            time.sleep(2.5)
            assert served.process.poll() is None
            connection.sendall(body[100:])
            assert read_to_end(connection).startswith(b"HTTP/1.1 200 OK")
        assert served.process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_an_interrupt_ends_it_without_a_drain(pair_folder: Path, number: signal.Signals) -> None:
    """Ctrl-C does not wait for anyone."""
    with running(pair_folder, "--drain-seconds", "60") as served, served.connect():
        served.process.send_signal(number)
        assert served.process.wait(8) == 0
