"""A large set is created at once: hundreds of reviews in parallel."""

import http.client
from contextlib import ExitStack, closing

from tests.builders import leader_pod, review
from tests.webhook.serving import Answer, Served

PARALLEL = 500
TIMEOUT = 2.0
"""Seconds that the API server waits, as the manifests say."""

CPU = 0.2
"""Cores: the 200m of a small cluster's request."""


def _send(client: http.client.HTTPSConnection, body: bytes) -> None:
    client.request("POST", "/mutate?timeout=2s", body, {"Content-Type": "application/json"})


def _receive(client: http.client.HTTPSConnection) -> Answer:
    response = client.getresponse()
    return Answer(response.status, {}, response.read())


def test_c61_five_hundred_reviews_at_once(server: Served) -> None:
    """C61: each gets its patch, and all of them together take no more CPU than 200m give within the time-out."""
    body = review(leader_pod())
    with ExitStack() as open_connections:
        clients = [open_connections.enter_context(closing(server.client())) for _ in range(PARALLEL)]
        # The API server keeps its connections: handshakes are not part of what is measured.
        for client in clients:
            _send(client, body)
            _receive(client)
        begun = server.cpu_seconds()
        for client in clients:
            _send(client, body)
        answers = [_receive(client) for client in clients]
        spent = server.cpu_seconds() - begun
    assert {answer.status for answer in answers} == {200}
    assert all(b'"patch":"' in answer.body for answer in answers)
    assert spent < TIMEOUT * CPU
