"""The hot route and Flask's view of /mutate are two doors to one decision: they answer alike."""

import asyncio
import http.client
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from flask.testing import FlaskClient

from serving.bridge import Message, WsgiBridge
from serving.health import Health
from serving.logs import LineWriter
from tests.builders import leader_pod, review, worker_pod
from tests.webhook.fakes import decider
from tests.webhook.serving import Answer, ask
from webhook.admission import Admission
from webhook.asgi import Front
from webhook.service import create_app
from webhook.telemetry import Telemetry
from webhook.transport import MAX_BODY

JSON = "application/json"


@pytest.fixture
def admission(tmp_path: Any) -> Iterator[Admission]:
    """A decision that draws a known key, logging to a file."""
    with (tmp_path / "log").open("wb") as log:
        yield Admission(decider(), Telemetry(LineWriter(log.fileno())), time.perf_counter)


@pytest.fixture
def flask(admission: Admission) -> FlaskClient:
    """Flask's door."""
    return create_app(admission, Health()).test_client()


class Sent(NamedTuple):
    """One request to /mutate."""

    method: str
    headers: dict[str, str]
    body: bytes


def _through_flask(client: FlaskClient, sent: Sent) -> Answer:
    response = client.open("/mutate", method=sent.method, headers=sent.headers, data=sent.body)
    return Answer(response.status_code, {"content-type": response.headers["Content-Type"]}, response.data)


def _through_asgi(admission: Admission, request: Sent, *, pieces: int = 1) -> Answer:
    """The hot route, its body in so many messages."""
    front = Front(admission, WsgiBridge(create_app(admission, Health())), 10.0)
    body = request.body
    size = -(-len(body) // pieces) or 1
    parts = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    messages: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": request.method,
        "path": "/mutate",
        "query_string": b"timeout=10s",
        "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.items()],
        "scheme": "https",
        "http_version": "1.1",
    }
    asyncio.run(front(scope, receive, send))
    told = dict(sent[0]["headers"])
    assert told[b"content-length"] == str(len(sent[1]["body"])).encode()
    return Answer(sent[0]["status"], {"content-type": told[b"content-type"].decode()}, sent[1]["body"])


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(Sent("POST", {"Content-Type": JSON}, review(leader_pod())), id="a leader"),
        pytest.param(
            Sent("POST", {"Content-Type": JSON}, review(leader_pod(first_pass=True))), id="a leader that has no key yet"
        ),
        pytest.param(
            Sent("POST", {"Content-Type": JSON}, review(worker_pod(scheduler="volcano"))), id="a worker under Volcano"
        ),
        pytest.param(Sent("POST", {"Content-Type": JSON}, review(leader_pod(), operation="DELETE")), id="a deletion"),
        pytest.param(Sent("POST", {"Content-Type": JSON}, b"{"), id="no JSON"),
        pytest.param(Sent("POST", {"Content-Type": JSON}, b""), id="nothing"),
        pytest.param(Sent("POST", {"Content-Type": JSON}, b" " * MAX_BODY), id="as much as may be"),
        pytest.param(Sent("POST", {"Content-Type": JSON}, b" " * (MAX_BODY + 1)), id="one byte too many"),
        pytest.param(Sent("POST", {"Content-Type": "text/plain"}, b"{}"), id="another type"),
        pytest.param(Sent("POST", {}, b"{}"), id="no type"),
        pytest.param(Sent("POST", {"Content-Type": JSON, "Content-Encoding": "gzip"}, b"{}"), id="compressed"),
        pytest.param(Sent("GET", {}, b""), id="the wrong method"),
        pytest.param(Sent("DELETE", {}, b""), id="another wrong method"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 7], ids=["in one piece", "in seven pieces"])
def test_both_doors_answer_alike(admission: Admission, flask: FlaskClient, sent: Sent, pieces: int) -> None:
    """Status, type and body are the same through the hot route and through Flask's view."""
    length = {"Content-Length": str(len(sent.body))} if sent.method == "POST" else {}
    with_length = sent._replace(headers=sent.headers | length)
    assert _through_asgi(admission, with_length, pieces=pieces) == _through_flask(flask, sent)


def test_a_chunked_body_is_capped_while_it_is_read(admission: Admission) -> None:
    """Without a length the cap holds too."""
    sent = Sent("POST", {"Content-Type": JSON}, b" " * (MAX_BODY * 2))
    assert _through_asgi(admission, sent, pieces=100).status == 413


def test_a_peer_that_leaves_gets_no_answer(admission: Admission) -> None:
    """A body that ends in a disconnect is nobody's review: nothing is decided, nothing counted."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mutate",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(Front(admission, WsgiBridge(create_app(admission, Health())), 10.0)(scope, receive, send))
    assert sent == []
    assert admission.telemetry.in_flight == 0
    assert b"lockstep_webhook_request_seconds_count 0.0" in admission.telemetry.render()


def test_flask_counts_and_logs_as_well(flask: FlaskClient) -> None:
    """Behind another server the metrics are the same."""
    _through_flask(flask, Sent("POST", {"Content-Type": JSON}, review(leader_pod())))
    assert 'outcome="stamped",provider="native"} 1.0' in flask.get("/metrics").text


def test_readiness_is_flasks_answer() -> None:
    """The process's state decides /readyz, and never /healthz."""
    health = Health()
    client = create_app(Admission(decider(), Telemetry(LineWriter()), time.perf_counter), health).test_client()
    health.trouble = "certificate: must verify"
    assert (client.get("/readyz").status_code, client.get("/readyz").text) == (503, "certificate: must verify\n")
    health.draining = True
    assert client.get("/readyz").text == "draining: told to stop\n"
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("worker", ["gthread", "sync"])
def test_gunicorn_with_another_worker(worker: str) -> None:
    """`gunicorn 'webhook.service:standalone()'` answers reviews with any WSGI worker."""
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "webhook.service:standalone()",
        "--worker-class",
        worker,
        "--threads",
        "2",
    ]
    process = subprocess.Popen(
        [*command, "--bind", "127.0.0.1:0", "--no-control-socket"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process.stderr:
        line = next(line for line in process.stderr if "Listening at" in line)
        port = int(line.split("127.0.0.1:")[1].split()[0])
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        answer = ask(client, "POST", "/mutate?timeout=10s", review(leader_pod()), content_type=JSON)
        large = ask(client, "POST", "/mutate", b" " * (MAX_BODY + 1), content_type=JSON)
        client.close()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    expected = decider()(review(leader_pod()))
    assert (answer.status, answer.body) == (200, expected.body)
    assert (large.status, large.body) == (413, b"body: must be at most 3145728 bytes")
