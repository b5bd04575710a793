"""The metrics port with TLS: what a scraper verifies, before there is a certificate, with one, and after a renewal."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from reconciler.health import HealthServer
from reconciler.secure_metrics import Secured
from reconciler.telemetry import Meters
from tests.webhook.serving import make_pair, trusting, write_pair

SECONDS = 10.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HealthServer]:
    """A port that serves a pair which is not there yet."""
    wrap = Secured(tmp_path / "tls.crt", tmp_path / "tls.key")
    nothing: dict[str, str] = {}
    server = HealthServer(("127.0.0.1", 0), Meters(), alive=lambda: nothing, ready=lambda: nothing, wrap=wrap)
    server.start()
    yield server
    server.stop()


def connect(server: HealthServer, authority: Path) -> ssl.SSLSocket:
    """Connect as a scraper that verifies."""
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
    return trusting(authority).wrap_socket(plain, server_hostname="localhost")


def scrape(server: HealthServer, authority: Path) -> tuple[bytes, int]:
    """Scrape; give the answer and the serial number of the certificate."""
    with connect(server, authority) as connection:
        der = connection.getpeercert(binary_form=True)
        assert der is not None
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer, x509.load_der_x509_certificate(der).serial_number


def test_without_a_pair_nobody_is_answered(server: HealthServer, tmp_path: Path) -> None:
    """And the port lives: with a pair it answers, without a restart."""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        trusting_nobody().wrap_socket(plain)
    write_pair(tmp_path, *make_pair())
    answer, _ = scrape(server, tmp_path / "ca.crt")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"lockstep_leader" in answer


def trusting_nobody() -> ssl.SSLContext:
    """Make a client that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_a_renewed_pair_is_served_to_the_next_scrape(server: HealthServer, tmp_path: Path) -> None:
    """With the leaf that is on disk then; half a pair is served to nobody."""
    for _ in range(2):
        authority, leaf = make_pair()
        write_pair(tmp_path, authority, leaf)
        assert scrape(server, tmp_path / "ca.crt")[1] == leaf.certificate.serial_number
    (tmp_path / "tls.crt").write_bytes(make_pair()[1].certificate_pem)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(server, tmp_path / "ca.crt")


def test_a_peer_that_says_nothing_holds_up_nobody(server: HealthServer, tmp_path: Path) -> None:
    """Neither before its handshake nor after it."""
    write_pair(tmp_path, *make_pair())
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS),
        connect(server, tmp_path / "ca.crt"),
    ):
        answer, _ = scrape(server, tmp_path / "ca.crt")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
