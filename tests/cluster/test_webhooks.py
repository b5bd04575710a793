"""Registering a webhook: the API server calls it, in front of LWS's own."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.cluster import webhooks
from tests.cluster.resources import MUTATING_WEBHOOKS, PODS, Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import ControlPlane


class Recorder(ThreadingHTTPServer):
    """Allows everything and remembers the requests."""

    seen: list[Json]


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        """Answer one AdmissionReview."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(review["request"])
        answer = json.dumps(review | {"response": {"uid": review["request"]["uid"], "allowed": True}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def recorder(control_plane: ControlPlane) -> Iterator[Recorder]:
    """A webhook server with the control plane's serving certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(control_plane.certificates.certificate, control_plane.certificates.key)
    with Recorder(("127.0.0.1", 0), _Handler) as server:
        server.seen = []
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_registered_webhook_is_called_before_lws(control_plane: ControlPlane, recorder: Recorder) -> None:
    """Both passes of an LWS pod reach the webhook, the first without what LWS's webhook adds; other pods don't."""
    plane = control_plane
    ca = plane.certificates.ca.read_bytes()
    plane.webhooks.register_mutating("lockstep-mutating", f"https://127.0.0.1:{recorder.server_port}", ca)
    assert webhooks.names(plane.api, MUTATING_WEBHOOKS) == ["lockstep-mutating", "lws-mutating-webhook-configuration"]
    recorder.seen.clear()
    plane.api.create(PODS, PODS.make("plain", spec={"containers": [{"name": "c", "image": "x"}]}))
    plane.lws.create("called", 1, 1)
    plane.wait("leader there", lambda: plane.lws.pods("called"))
    first, second = (request["object"]["metadata"]["labels"] for request in recorder.seen)
    key = "leaderworkerset.sigs.k8s.io/group-key"
    assert (key in first, key in second) == (False, True)
    assert plane.webhooks.calls("lockstep-mutating.lockstep.dev") >= 3
    plane.webhooks.unregister_mutating("lockstep-mutating")


def test_unreachable_webhook_is_ignored(control_plane: ControlPlane) -> None:
    """With failure policy Ignore a webhook that nobody serves stops no pod, and its failures count as calls."""
    plane = control_plane
    plane.webhooks.register_mutating("lockstep-absent", "https://127.0.0.1:9", plane.certificates.ca.read_bytes())
    plane.lws.create("admitted", 1, 1)
    plane.wait("leader there", lambda: plane.lws.pods("admitted"))
    plane.webhooks.unregister_mutating("lockstep-absent")
