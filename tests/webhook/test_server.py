"""`lockstep serve` as a well-behaved peer sees it."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.builders import leader_pod, operations, response, review, worker_pod
from tests.webhook.serving import Served, ask, await_line, read_to_end, running, trusting

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        pytest.param(
            "GET",
            "/",
            200,
            "Lockstep admission webhook: POST /mutate, GET /healthz /readyz /metrics\n",
            id="front page",
        ),
        pytest.param("GET", "/healthz", 200, "ok\n", id="alive"),
        pytest.param("GET", "/readyz", 200, "ok\n", id="ready"),
        pytest.param("HEAD", "/healthz", 200, "", id="HEAD has no body"),
        pytest.param("GET", "/mutate", 405, "method not allowed\n", id="a review is posted, not got"),
        pytest.param("PUT", "/mutate", 405, "method not allowed\n", id="a review is posted, not put"),
        pytest.param("POST", "/healthz", 405, "method not allowed\n", id="health is got, not posted"),
        pytest.param("GET", "/mutate/", 404, "not found\n", id="a slash too many"),
        pytest.param("POST", "/validate", 404, "not found\n", id="no such route"),
        pytest.param("GET", "/%ff%00", 404, "not found\n", id="a path that is no text"),
    ],
)
def test_routes(server: Served, method: str, path: str, status: int, body: str) -> None:
    """Every route but /mutate is Flask's; what is not there says so in plain text."""
    answer = server.ask(method, path)
    assert (answer.status, answer.headers["content-type"], answer.body.decode()) == (status, TEXT, body)


def test_options_names_the_methods(server: Served) -> None:
    """OPTIONS tells what /mutate takes."""
    answer = server.ask("OPTIONS", "/mutate")
    assert answer.status == 200
    assert sorted(answer.headers["allow"].split(", ")) == ["OPTIONS", "POST"]


def test_a_review_is_answered(server: Served) -> None:
    """A leader's review gets a patch that stamps it."""
    answer = server.mutate(review(leader_pod()))
    assert (answer.status, answer.headers["content-type"]) == (200, JSON)
    assert response(answer.body)["allowed"] is True
    assert "/spec/schedulingGroup" in [operation["path"] for operation in operations(answer.body)]


def test_a_first_pass_draws_a_key(server: Served) -> None:
    """Two leaders without a key get different ones, 40 hex digits each."""
    keys = [
        operation["value"]
        for _ in range(2)
        for operation in operations(server.mutate(review(leader_pod(first_pass=True))).body)
        if operation["path"].endswith("~1group-key")
    ]
    assert len(set(keys)) == 2
    assert all(len(key) == 40 and int(key, 16) >= 0 for key in keys)


def test_a_connection_is_kept(server: Served) -> None:
    """Many requests, on both kinds of route, go over one connection."""
    client = server.client()
    client.connect()
    local = client.sock.getsockname()
    for number in range(20):
        answer = ask(client, "POST", "/mutate?timeout=10s", review(leader_pod(), uid=str(number)), content_type=JSON)
        assert response(answer.body)["uid"] == str(number)
        assert ask(client, "GET", "/healthz").status == 200
    assert client.sock.getsockname() == local
    client.close()


def test_pipelined_requests_are_answered_in_order(server: Served) -> None:
    """Requests sent before the answers are read get one answer each, in turn."""
    sent = b"".join(_request(review(leader_pod(), uid=f"uid-{number}")) for number in range(5))
    received = server.say(sent + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    places = [received.index(f'"uid-{number}"'.encode()) for number in range(5)]
    assert places == sorted(places)
    assert received.count(b"HTTP/1.1 200 OK") == 6


def test_a_body_in_small_pieces(server: Served) -> None:
    """Neither the head nor the body has to arrive in one piece."""
    request = _request(worker_review := review(worker_pod()), close=True)
    assert worker_review in request
    received = server.say(*(request[start : start + 97] for start in range(0, len(request), 97)))
    assert received.startswith(b"HTTP/1.1 200 OK")


def test_expect_continue(server: Served) -> None:
    """A client that asks first is told to go on."""
    body = review(leader_pod())
    head = _request(body, close=True)[: -len(body)].replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    with server.connect() as connection:
        connection.sendall(head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_to_end(connection).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("version", "spoken"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_2, "TLSv1.2", id="TLS 1.2 is spoken"),
        pytest.param(ssl.TLSVersion.TLSv1_3, "TLSv1.3", id="TLS 1.3 is spoken"),
    ],
)
def test_tls_versions(server: Served, version: ssl.TLSVersion, spoken: str) -> None:
    """TLS 1.2 and 1.3 work; a client that also offers HTTP/2 gets HTTP/1.1."""
    context = trusting(server.folder / "ca.crt")
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with server.connect(context) as connection:
        assert (connection.version(), connection.selected_alpn_protocol()) == (spoken, "http/1.1")


@pytest.mark.parametrize(
    ("version", "agreed"),
    [
        pytest.param("-tls1_1", False, id="TLS 1.1 ends in the handshake"),
        pytest.param("-tls1_2", True, id="the same client gets through with TLS 1.2"),
    ],
)
def test_old_tls_is_refused(server: Served, version: str, agreed: bool) -> None:  # noqa: FBT001
    """There is no TLS below 1.2, whatever ciphers a client takes."""
    where = ["-connect", f"127.0.0.1:{server.port}", "-cipher", "ALL:@SECLEVEL=0"]
    done = subprocess.run(
        ["openssl", "s_client", version, *where],  # noqa: S607 - whichever this machine has
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert ("Cipher is (NONE)" not in done.stdout) is agreed
    assert (done.returncode == 0) is agreed


def test_a_client_without_a_server_name(server: Served) -> None:
    """The certificate is served without SNI too: an API server that dials an address sends none."""
    context = trusting(server.folder / "ca.crt")
    with context.wrap_socket(server.connect_plain(), server_hostname="127.0.0.1") as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in read_to_end(connection)


def test_metrics(pair_folder: Path) -> None:
    """Requests are counted by outcome and provider, at both addresses, and the certificate's end is told."""
    with running(pair_folder) as served:
        for _ in range(3):
            served.mutate(review(leader_pod()))
        served.mutate(b"no review")
        served.ask("POST", "/mutate", b"{}", content_type="text/plain")
        own = served.ask("GET", "/metrics")
        assert own.headers["content-type"].startswith("text/plain; version=")
        with urllib.request.urlopen(f"http://127.0.0.1:{served.metrics_port}/metrics", timeout=10) as plain:
            scraped = plain.read().decode()
        for lines in (own.body.decode().splitlines(), scraped.splitlines()):
            assert 'lockstep_webhook_requests_total{outcome="stamped",provider="native"} 3.0' in lines
            assert 'lockstep_webhook_requests_total{outcome="refused",provider=""} 1.0' in lines
            assert 'lockstep_webhook_requests_total{outcome="wrong-type",provider=""} 1.0' in lines
            assert "lockstep_webhook_request_seconds_count 5.0" in lines
            assert "lockstep_webhook_requests_in_flight 0.0" in lines
            assert any(line.startswith("lockstep_certificate_not_after_seconds 1.") for line in lines)
            assert any(line.startswith("lockstep_webhook_connections ") for line in lines)


def test_the_plain_address_tells_state_and_decides_nothing(server: Served) -> None:
    """Probes and scrapes work without TLS; reviews do not."""
    plain = http.client.HTTPConnection("127.0.0.1", server.metrics_port, timeout=10)
    assert ask(plain, "GET", "/readyz").body == b"ok\n"
    assert ask(plain, "POST", "/mutate", review(leader_pod()), content_type=JSON).status == 404
    plain.close()


def test_the_log_has_a_line_for_each_decision_and_no_payload(pair_folder: Path) -> None:
    """A decision is logged with uid, outcome, provider and time; nothing of the pod is, right or wrong as it may be."""
    canary = "s3cr3t-canary"
    pod = leader_pod()
    pod["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": canary}]
    broken = [
        review(pod)[:-1],
        review(pod, uid=7),
        review([canary]),
        review(pod).replace(b'"labels": {', b'"labels": ['),
    ]
    with running(pair_folder, "--drain-seconds", "0") as served:
        served.mutate(review(pod))
        for body in broken:
            served.mutate(body)
        served.ask("POST", f"/mutate?token={canary}", b"{}", content_type=canary, authorization=canary)
        assert served.stop() == 0
        stamped = await_line(served.log, "admission")
        assert canary not in served.log.read_text()
    milliseconds = stamped.pop("milliseconds")
    assert 0 < milliseconds < 10_000
    assert stamped.pop("ts").endswith("Z")
    assert stamped == {
        "level": "info",
        "message": "admission",
        "uid": "8bb9e81b-fd9a-4f50-ae8e-5d39b1d05889",
        "outcome": "stamped",
        "provider": "native",
        "status": 200,
    }


def test_a_log_that_nobody_reads_holds_nothing_up(pair_folder: Path) -> None:
    """With standard error's pipe full, reviews are answered, and the lost lines are counted."""
    files = ["--cert", str(pair_folder / "tls.crt"), "--key", str(pair_folder / "tls.key"), "--drain-seconds", "0"]
    command = [sys.executable, "-m", "lockstep", "serve", "--addr", "127.0.0.1:0", *files]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    with process.stderr:
        announced = json.loads(process.stderr.readline())
        port = int(announced["addr"].rpartition(":")[2])
        served = Served(process, Path(), pair_folder, "127.0.0.1", port, 0)
        client = served.client()
        for _ in range(600):  # 64 KiB of pipe take some 350 lines
            assert ask(client, "POST", "/mutate", review(leader_pod()), content_type=JSON).status == 200
        metrics = ask(client, "GET", "/metrics").body.decode()
        client.close()
        assert served.stop() == 0
    dropped = metrics.split("\nlockstep_log_lines_dropped ")[1].split()[0]
    assert float(dropped) > 100


@pytest.mark.parametrize(
    ("addr", "hosts"),
    [
        pytest.param("[::1]:0", ["::1"], id="one IPv6 address"),
        pytest.param(":0", ["127.0.0.1", "::1"], id="every address of both families"),
        pytest.param("localhost:0", ["localhost"], id="a host name"),
    ],
)
def test_c62_both_families(pair_folder: Path, addr: str, hosts: list[str]) -> None:
    """C62: IPv6 works, and no host at all means both families."""
    with running(pair_folder, addr=addr) as served:
        context = trusting(pair_folder / "ca.crt")
        for host in hosts:
            client = http.client.HTTPSConnection(host, served.port, timeout=10, context=context)
            assert ask(client, "POST", "/mutate", review(leader_pod()), content_type=JSON).status == 200
            client.close()


def test_several_workers_share_one_address(pair_folder: Path) -> None:
    """With two workers both serve, and both stop."""
    with running(pair_folder, "--workers", "2", "--drain-seconds", "0") as served:
        pids = set()
        for _ in range(200):
            metrics = served.ask("GET", "/metrics").body.decode()
            pids.add(metrics.split("\nprocess_start_time_seconds ")[1].split()[0])
            if len(pids) == 2:
                break
        assert len(pids) == 2
        assert served.stop() == 0


def test_a_killed_worker_is_replaced(pair_folder: Path) -> None:
    """When the worker dies, another takes over at the same address."""
    with running(pair_folder) as served:
        first = served.worker()
        os.kill(first, signal.SIGKILL)
        with socket.create_connection(("127.0.0.1", served.port), timeout=20):
            pass
        assert served.mutate(review(leader_pod())).status == 200
        assert served.worker() != first


def test_nothing_heavy_is_imported(pair_folder: Path) -> None:
    """Without a configuration file the process has none of the packages that only others need."""
    with running(pair_folder, command=("-X", "importtime", "-m", "lockstep", "serve")) as served:
        assert served.mutate(review(leader_pod())).status == 200
        assert served.ask("GET", "/metrics").status == 200
        imported = {line["text"].rpartition("|")[2].strip() for line in served.lines() if "text" in line}
    assert {"flask", "msgspec", "uvloop", "prometheus_client"} <= imported
    packages = {name.partition(".")[0] for name in imported}
    assert not packages & {"kubernetes", "cryptography", "jsonschema", "yaml", "certs", "reconciler", "requests"}


def _request(body: bytes, *, close: bool = False) -> bytes:
    head = f"POST /mutate?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + (b"Connection: close\r\n\r\n" if close else b"\r\n") + body
