"""The service as a process: TLS, limits, and what one caller can do to others."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from policies.service.application import MAX_BODY
from tests.policies.service.desks import REVIEWS, fixture
from tests.policies.service.processes import COMMAND, running_service
from tests.webhook.serving import Answer, Served, ask

YAML = "application/yaml"
JSON = "application/json"
GROUP = fixture("podgroup_minimum_positive/allowed.yaml").partition("\n---\n")[0]


def _many(count: int) -> bytes:
    """So many groups of different names."""
    return "\n---\n".join(GROUP.replace("vllm-0", f"vllm-{number}") for number in range(count)).encode()


def _review(service: Served, body: bytes, query: str = "") -> Answer:
    return service.ask("POST", f"/v1/review{query}", body, content_type=YAML)


def test_it_answers_over_tls(service: Served) -> None:
    """Ready, with rules, a document, a page and metrics."""
    assert service.ask("GET", "/readyz").body == b"ok\n"
    assert len(json.loads(service.ask("GET", "/v1/policies").body)["policies"]) >= 20
    assert json.loads(service.ask("GET", "/openapi.json").body)["openapi"] == "3.1.0"
    assert service.ask("GET", "/").headers["content-type"] == "text/html; charset=utf-8"
    admitted = (REVIEWS / "validate-create-vllm-leader.json").read_bytes()
    assert json.loads(service.ask("POST", "/validate", admitted, content_type=JSON).body)["response"]["allowed"]
    metrics = service.ask("GET", "/metrics").body.decode()
    assert 'lockstep_policy_requests_total{route="/validate",status="200"}' in metrics
    assert "lockstep_policy_connections" in metrics


def test_no_payload_is_logged(service: Served) -> None:
    """A line per review: route, status, time."""
    _review(service, b"kind: Secret\napiVersion: v1\nmetadata: {name: hunter2}\n")
    end = time.monotonic() + 10
    while not any(line.get("route") == "/v1/review" for line in service.lines()):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "hunter2" not in service.log.read_text()


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{','.join(['*' + chr(97 + level)] * 9)}]\n" for level in range(9)
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(BOMB.encode(), "must hold no YAML alias", id="a YAML bomb"),
        pytest.param(b"[" * 4_000_000, "must be YAML, got exceeded maximum nesting depth", id="four million brackets"),
        pytest.param(b"- " * 1_000_000, "must be", id="a million lists in one line"),
        pytest.param(b"? " * 1_000_000, "must", id="a million keys in one line"),
        pytest.param(b"{}\n---\n" * 400_000, "must hold at most 2000 objects", id="400,000 documents"),
        pytest.param(b"a: " + b"9" * 1_000_000, "must", id="a million digits"),
        pytest.param(b'"' + b"\\x41" * 500_000, "must be YAML", id="half a million escapes"),
        pytest.param(b"{" + b",".join(b'"k":1' for _ in range(300_000)) + b"}", "must hold each key once", id="a key"),
        pytest.param(b"!" * 1_000_000, "must hold no YAML tag", id="a million tags"),
    ],
)
def test_a_hostile_body_is_refused_in_time(service: Served, body: bytes, message: str) -> None:
    """400, or what it deserves, in seconds, and the process lives."""
    started = time.monotonic()
    answer = _review(service, body)
    assert answer.status == 400
    assert message in json.loads(answer.body)["message"]
    assert time.monotonic() - started < 20
    assert service.ask("GET", "/healthz").status == 200


def test_a_large_body_is_refused_by_its_length(service: Served) -> None:
    """Nothing of it is read."""
    head = f"POST /v1/review HTTP/1.1\r\nhost: x\r\ncontent-length: {MAX_BODY + 1}\r\n\r\n"
    answer = service.say(head.encode())
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body: must be at most 8388608 bytes, got more" in answer


def test_a_large_body_without_length_is_cut(service: Served) -> None:
    """Chunks are counted as they come."""
    head = b"POST /v1/review HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b"#" * (1 << 20) + b"\r\n"
    assert service.say(head, *[chunk] * 9).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_given_up(service: Served) -> None:
    """After what the caller allows."""
    head = b"POST /validate?timeout=1s HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{"
    started = time.monotonic()
    assert service.say(head).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - started < 10


def test_a_review_that_takes_too_long_is_answered_all_the_same(service: Served) -> None:
    """503 at the deadline; the next review is served."""
    answer = _review(service, _many(1500), "?timeout=300ms")
    assert (answer.status, json.loads(answer.body)) == (
        503,
        {"message": "request: must be answered before the deadline, got no answer yet"},
    )
    assert _review(service, GROUP.encode()).status == 200


def test_a_long_review_holds_up_neither_health_nor_admissions(service: Served) -> None:
    """Nearly two thousand manifests are judged while the API server gets its answers."""
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(_review(service, _many(1900))))
    admitted = (REVIEWS / "validate-create-vllm-leader.json").read_bytes()
    slowest, beside = 0.0, 0
    thread.start()
    while thread.is_alive():
        started = time.monotonic()
        assert service.ask("GET", "/healthz").status == 200
        assert service.ask("POST", "/validate?timeout=5s", admitted, content_type=JSON).status == 200
        slowest, beside = max(slowest, time.monotonic() - started), beside + thread.is_alive()
    thread.join()
    assert answers[0].status == 200
    assert beside > 2
    assert slowest < 5


def test_too_many_reviews_at_once_are_told_to_wait(service: Served) -> None:
    """The surplus gets 503 at once; the others their verdict."""
    statuses: list[int] = []
    body = _many(60)
    threads = [threading.Thread(target=lambda: statuses.append(_review(service, body).status)) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 24
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) >= 8
    assert _review(service, GROUP.encode()).status == 200


def test_one_connection_serves_many_requests(service: Served) -> None:
    """Bodies are read to their end, so the next request on the connection is understood."""
    client = service.client()
    for _ in range(5):
        assert ask(client, "POST", "/v1/review", GROUP.encode(), content_type=YAML).status == 200
        assert ask(client, "POST", "/v1/review", b"{", content_type=YAML).status == 400
        assert ask(client, "GET", "/v1/policies").status == 200
    client.close()


def test_a_worker_that_ends_is_replaced(pair_folder: Path) -> None:
    """As one does that the engine has lost too much memory in: the others' requests go to the next."""
    with running_service(pair_folder) as served:
        first = served.worker()
        os.kill(first, signal.SIGTERM)
        end = time.monotonic() + 30
        while Path(f"/proc/{first}").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert _review(served, GROUP.encode()).status == 200


DEAD_CLUSTER = """
apiVersion: v1
kind: Config
current-context: dead
clusters: [{name: dead, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: dead, context: {cluster: dead, user: nobody}}]
users: [{name: nobody, user: {}}]
"""


def test_it_is_not_ready_before_it_has_seen_the_cluster(pair_folder: Path, tmp_path: Path) -> None:
    """It serves on, and says why it should get no requests."""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(DEAD_CLUSTER)
    with running_service(pair_folder, "--kubeconfig", str(kubeconfig), "--refresh-seconds", "0.2") as served:
        answer = served.ask("GET", "/readyz")
        assert (answer.status, answer.body) == (503, b"cluster: must have been read once, got no answer yet\n")
        assert _review(served, GROUP.encode()).status == 200


def _fails(*options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *COMMAND, *options], capture_output=True, text=True, timeout=60, check=False, env=os.environ
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        pytest.param([], 2, "--cert, --key: must be set for the service, got nothing\n", id="no certificate"),
        pytest.param(["--target", "1.20"], 2, "target: must be one of 1.35, 1.36, 1.37, 1.38-alpha", id="a version"),
        pytest.param(["--config", "missing.yaml"], 4, "missing.yaml", id="no configuration"),
        pytest.param(["--exceptions", "missing.yaml"], 4, "missing.yaml:1: must be a readable file", id="exceptions"),
    ],
)
def test_a_start_that_fails_says_why(
    pair_folder: Path, options: list[str], code: int, message: str, monkeypatch: Any
) -> None:
    """Exit codes 2 and 4, one line."""
    monkeypatch.chdir(pair_folder)
    files = ["--cert", "tls.crt", "--key", "tls.key"] if options else []
    given = _fails(*files, *options)
    assert given[0] == code
    assert message in given[1]


def test_a_port_that_is_taken_is_named(service: Served) -> None:
    """Exit code 3."""
    files = ["--cert", str(service.folder / "tls.crt"), "--key", str(service.folder / "tls.key")]
    address = f"127.0.0.1:{service.port}"
    assert _fails(*files, "--addr", address) == (3, f"{address}: must be free to listen on, address already in use\n")
