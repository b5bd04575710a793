"""Certificates replaced under a running server (case C52), and readiness that follows them."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from certs.pair import Pair
from tests.builders import leader_pod, review
from tests.webhook.serving import (
    LOCAL,
    START_SECONDS,
    Served,
    ask,
    eventually,
    make_pair,
    readiness,
    running,
    write_pair,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a pair that the test may replace."""
    write_pair(tmp_path / "pair", *make_pair())
    return tmp_path / "pair"


@pytest.fixture
def server(folder: Path) -> Iterator[Served]:
    """A server of its own."""
    with running(folder, "--drain-seconds", "0") as served:
        yield served


def _served_certificate(server: Served) -> x509.Certificate:
    """What a new connection gets, whoever signed it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=START_SECONDS)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def _serves(server: Served, leaf: Pair) -> bool:
    return _served_certificate(server).serial_number == leaf.certificate.serial_number


def _messages(server: Served) -> list[str]:
    return [line["message"] for line in server.lines()]


def test_c52_a_new_pair_is_served_within_5_s_and_old_connections_go_on(server: Served, folder: Path) -> None:
    """C52: plain writes over the files, while a client keeps calling on its connection."""
    client = server.client()
    assert ask(client, "GET", "/healthz").status == 200
    local = client.sock.getsockname()
    authority, leaf = make_pair()
    write_pair(folder, authority, leaf)
    assert eventually(lambda: _serves(server, leaf))
    assert ask(client, "POST", "/mutate", review(leader_pod()), content_type="application/json").status == 200
    assert client.sock.getsockname() == local
    client.close()
    assert readiness(server).status == 200
    assert 'lockstep_certificate_reloads_total{result="loaded"} ' in server.ask("GET", "/metrics").body.decode()


def test_c52_a_mounted_secret_is_swapped(tmp_path: Path) -> None:
    """C52: the kubelet's way, where the files are links through a folder that is a link itself."""
    volume = tmp_path / "volume"
    write_pair(volume / "..first", *make_pair())
    (volume / "..data").symlink_to("..first")
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (volume / name).symlink_to(f"..data/{name}")
    with running(volume, "--drain-seconds", "0") as served:
        authority, leaf = make_pair()
        write_pair(volume / "..second", authority, leaf)
        (volume / "..fresh").symlink_to("..second")
        (volume / "..fresh").rename(volume / "..data")
        shutil.rmtree(volume / "..first")
        assert eventually(lambda: _serves(served, leaf))
        assert readiness(served).status == 200


def test_c52_half_a_pair_is_ignored(server: Served, folder: Path) -> None:
    """C52: a certificate without its key changes nothing but the log; with the key it is served."""
    before = _served_certificate(server)
    _, leaf = make_pair()
    (folder / "tls.crt").write_bytes(leaf.certificate_pem)
    assert eventually(lambda: "certificate refused, the old one stays" in _messages(server))
    assert _served_certificate(server) == before
    metrics = server.ask("GET", "/metrics").body.decode()
    assert 'lockstep_certificate_reloads_total{result="refused"} 1.0' in metrics
    (folder / "tls.key").write_bytes(leaf.key_pem)
    assert eventually(lambda: _serves(server, leaf))
    assert _messages(server).count("certificate refused, the old one stays") == 1


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param(lambda folder: (folder / "tls.crt").unlink(), id="the certificate is gone"),
        pytest.param(lambda folder: (folder / "tls.key").write_bytes(b""), id="the key is empty"),
        pytest.param(lambda folder: os.truncate(folder / "tls.crt", 300), id="the certificate is cut off"),
    ],
)
def test_broken_files_leave_the_old_pair(server: Served, folder: Path, breakage: Callable[[Path], None]) -> None:
    """Whatever happens to the files, the pair in service stays; whole files are taken up again."""
    before = _served_certificate(server)
    breakage(folder)
    assert eventually(lambda: "certificate refused, the old one stays" in _messages(server))
    assert _served_certificate(server) == before
    assert server.mutate(review(leader_pod())).status == 200
    authority, leaf = make_pair()
    write_pair(folder, authority, leaf)
    assert eventually(lambda: _serves(server, leaf))


def test_another_kind_of_key(server: Served, folder: Path) -> None:
    """An RSA certificate replaces an ECDSA one: loading into a live context would go on serving the old one."""
    target = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subject = ["-subj", "/CN=x", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *target]
    subprocess.run(command, check=True, capture_output=True)
    assert eventually(lambda: _served_certificate(server).signature_algorithm_oid._name == "sha256WithRSAEncryption")


def test_not_ready_while_callers_would_not_trust_us(server: Served, folder: Path) -> None:
    """A certificate of another authority than the published one: not ready, until the files fit again."""
    assert readiness(server).status == 200
    old_authority = (folder / "ca.crt").read_bytes()
    authority, leaf = make_pair()
    (folder / "tls.crt").write_bytes(leaf.certificate_pem)
    (folder / "tls.key").write_bytes(leaf.key_pem)
    assert eventually(lambda: readiness(server).status == 503)
    said = readiness(server).body.decode()
    assert said == f"certificate: must verify against {folder}/ca.crt, unable to get local issuer certificate\n"
    (folder / "ca.crt").write_bytes(old_authority + authority.certificate_pem)
    assert eventually(lambda: readiness(server).status == 200)
    assert [m for m in _messages(server) if m in ("ready", "not ready")] == ["not ready", "ready"]


@pytest.mark.parametrize(
    ("hosts", "age", "reason"),
    [
        pytest.param(LOCAL, timedelta(days=31), "certificate has expired", id="an expired leaf"),
        pytest.param(LOCAL, timedelta(days=-1), "certificate is not yet valid", id="a leaf of the future"),
        pytest.param(("example.com",), timedelta(), "Hostname mismatch", id="a leaf for another host"),
    ],
)
def test_what_callers_would_not_trust_is_not_taken_up(
    tmp_path: Path, hosts: tuple[str, ...], age: timedelta, reason: str
) -> None:
    """Where it is known who calls, and they trust what is served, a pair that they would not trust is only logged."""
    authority, leaf = make_pair()
    write_pair(tmp_path, authority, leaf)
    with running(tmp_path, "--drain-seconds", "0", "--server-name", "localhost") as served:
        bad_authority, bad_leaf = make_pair(hosts, datetime.now(UTC) - age)
        write_pair(tmp_path, bad_authority, bad_leaf)
        (tmp_path / "ca.crt").write_bytes(authority.certificate_pem + bad_authority.certificate_pem)
        assert eventually(lambda: any(reason in str(line.get("reason")) for line in served.lines()))
        assert _serves(served, leaf)
        assert readiness(served).status == 200


def test_a_leaf_is_taken_up_once_its_authority_is_published(folder: Path) -> None:
    """Where it is known who calls, a leaf that comes before its authority waits for it, and the old one goes on."""
    authority, leaf = make_pair()
    old_authority = (folder / "ca.crt").read_bytes()
    with running(folder, "--drain-seconds", "0", "--server-name", "localhost") as served:
        (folder / "tls.crt").write_bytes(leaf.certificate_pem)
        (folder / "tls.key").write_bytes(leaf.key_pem)
        refused = lambda: any("unable to get local issuer" in str(line.get("reason")) for line in served.lines())  # noqa: E731
        assert eventually(refused)
        assert not _serves(served, leaf)
        assert readiness(served).status == 200
        (folder / "ca.crt").write_bytes(old_authority + authority.certificate_pem)
        assert eventually(lambda: _serves(served, leaf))
        assert readiness(served).status == 200


@pytest.mark.parametrize(
    ("hosts", "age", "options", "reason"),
    [
        pytest.param(LOCAL, timedelta(days=31), (), "certificate has expired", id="an expired leaf"),
        pytest.param(LOCAL, timedelta(days=-1), (), "certificate is not yet valid", id="a leaf of the future"),
        pytest.param(
            LOCAL,
            timedelta(),
            ("--server-name", "lockstep.lockstep-system.svc"),
            "Hostname mismatch, certificate is not valid for 'lockstep.lockstep-system.svc'",
            id="a leaf for other hosts than the API server calls",
        ),
    ],
)
def test_never_ready_with(
    tmp_path: Path, hosts: tuple[str, ...], age: timedelta, options: tuple[str, ...], reason: str
) -> None:
    """The server starts and says why it should get no requests."""
    write_pair(tmp_path, *make_pair(hosts, datetime.now(UTC) - age))
    with running(tmp_path, *options) as served:
        answer = readiness(served)
        assert (answer.status, answer.body.decode()) == (
            503,
            f"certificate: must verify against {tmp_path}/ca.crt, {reason}\n",
        )


def test_ready_under_the_name_that_is_called(tmp_path: Path) -> None:
    """With the API server's name in the certificate it is ready."""
    write_pair(tmp_path, *make_pair([*LOCAL, "lockstep.lockstep-system.svc"]))
    with running(tmp_path, "--server-name", "lockstep.lockstep-system.svc") as served:
        assert readiness(served).status == 200


def test_ready_without_a_published_authority(tmp_path: Path) -> None:
    """Where nothing is published beside the certificate there is nothing to compare."""
    write_pair(tmp_path, *make_pair())
    (tmp_path / "ca.crt").unlink()
    with running(tmp_path) as served:
        assert readiness(served).status == 200


def test_an_expiring_certificate_stops_being_ready_by_itself(tmp_path: Path) -> None:
    """Time alone, with no file changed, ends readiness; at most one check (10 s) late."""
    begun = datetime.now(UTC) - timedelta(days=30) + timedelta(seconds=6)
    write_pair(tmp_path, *make_pair(LOCAL, begun))
    with running(tmp_path) as served:
        assert readiness(served).status == 200
        assert eventually(lambda: readiness(served).status == 503, 20.0)
        assert "certificate has expired" in readiness(served).body.decode()
