"""Who may call: with `--client-ca`, those with a certificate for clients of that authority and of the right name."""

import ssl
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.pair import Pair, draw_key
from tests.builders import leader_pod, review
from tests.webhook.serving import Served, make_pair, running, trusting, write_pair

NAME = "kube-apiserver"
SWITCH_SECONDS = 5.0


def client_pair(authority: Pair, name: str, usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH) -> Pair:
    """Make a caller's certificate."""
    key, now = draw_key(), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate, key)


@pytest.fixture(scope="module")
def callers() -> Pair:
    """The authority that signs callers."""
    return make_pair()[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, callers: Pair) -> Iterator[Served]:
    """A server that knows who may call."""
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder, *make_pair())
    authority = folder / "callers.crt"
    authority.write_bytes(callers.certificate_pem)
    options = ("--client-ca", str(authority), "--client-name", NAME, "--drain-seconds", "0")
    with running(folder, *options) as served:
        yield served


def status(server: Served, pair: Pair | None, folder: Path) -> int:
    """Send a review as somebody; 0 where the server does not answer."""
    context = trusting(server.folder / "ca.crt")
    if pair is not None:
        file = folder / "client.pem"
        file.write_bytes(pair.certificate_pem + pair.key_pem)
        context.load_cert_chain(file)
    body = review(leader_pod())
    lines = ("POST /mutate HTTP/1.1", "Host: h", "Content-Type: application/json", f"Content-Length: {len(body)}")
    head = "".join(f"{line}\r\n" for line in (*lines, ""))
    try:
        with server.connect(context) as connection:
            connection.sendall(head.encode() + body)
            return int((connection.recv(4096) or b"HTTP/1.1 0 ")[9:12])
    except (ssl.SSLError, ConnectionError):
        return 0


def test_a_known_caller_is_answered(server: Served, callers: Pair, tmp_path: Path) -> None:
    """With the authority's certificate and the name."""
    assert status(server, client_pair(callers, NAME), tmp_path) == 200


@pytest.mark.parametrize("who", ["nobody", "of another authority", "of another name", "a server"])
def test_others_are_not(server: Served, callers: Pair, tmp_path: Path, who: str) -> None:
    """No byte of theirs is read as a request."""
    pairs = {
        "nobody": None,
        "of another authority": client_pair(make_pair()[0], NAME),
        "of another name": client_pair(callers, "somebody"),
        "a server": client_pair(callers, NAME, ExtendedKeyUsageOID.SERVER_AUTH),
    }
    assert status(server, pairs[who], tmp_path) == 0


def test_health_and_metrics_are_on_the_other_port(server: Served) -> None:
    """Kubelets have no certificate; and what is not ready is told as ever."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics_port}/readyz", timeout=10) as answer:
        assert answer.status == 200


def test_a_new_authority_is_taken_up(server: Served, tmp_path: Path) -> None:
    """Its callers are answered within seconds, without a restart."""
    authority = make_pair()[0]
    caller = client_pair(authority, NAME)
    assert status(server, caller, tmp_path) == 0
    file = server.folder / "callers.crt"
    file.write_bytes(file.read_bytes() + authority.certificate_pem)
    end = time.monotonic() + SWITCH_SECONDS
    while status(server, caller, tmp_path) != 200:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_file_without_authorities_is_told(tmp_path: Path) -> None:
    """As a bad configuration, before anything is served."""
    write_pair(tmp_path, *make_pair())
    (tmp_path / "callers.crt").write_text("nothing")
    with (
        pytest.raises(AssertionError, match=r"callers\.crt: must hold PEM certificates"),
        running(tmp_path, "--client-ca", str(tmp_path / "callers.crt")),
    ):
        pass
