"""The webhook's Flask application: health, metrics, the front page, and /mutate for servers without a hot route.

Behind gunicorn's ASGI worker `/mutate` is answered before Flask (`webhook.asgi`). The view here gives the same answers
with any other worker: `gunicorn 'webhook.service:standalone()'`.
"""

import os
import time

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from serving.health import Health
from serving.logs import LineWriter
from serving.metrics import METRICS_TYPE
from webhook.admission import Admission
from webhook.reviews import TEXT, Decision
from webhook.telemetry import Telemetry
from webhook.transport import MAX_BODY, TOO_LARGE, find_refusal

FRONT_PAGE = "Lockstep admission webhook: POST /mutate, GET /healthz /readyz /metrics\n"


def create_app(admission: Admission, health: Health) -> Flask:
    """Make the application around a decision and the state of the process."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.register_error_handler(HTTPException, _plain_error)
    _add_state(app, admission.telemetry, health)

    @app.post("/mutate")
    def mutate() -> Response:
        return _response(_mutate(admission))

    return app


def create_state_app(telemetry: Telemetry, health: Health) -> Flask:
    """Make the application for plain HTTP: health and metrics, no /mutate."""
    app = Flask("webhook", static_folder=None)
    app.register_error_handler(HTTPException, _plain_error)
    _add_state(app, telemetry, health)
    return app


def standalone() -> Flask:
    """Make the application by itself, for any WSGI server; TLS is then the server's, the configuration the default."""
    from schedulers.configuration import load_configuration  # noqa: PLC0415  # only this entry loads one
    from webhook.mutation import Decider  # noqa: PLC0415

    decider = Decider(load_configuration(None), lambda: os.urandom(20).hex())
    return create_app(Admission(decider, Telemetry(LineWriter()), time.perf_counter), Health())


def _add_state(app: Flask, telemetry: Telemetry, health: Health) -> None:
    """Add the routes that tell how the process is."""

    @app.get("/")
    def front() -> Response:
        return _plain(200, FRONT_PAGE)

    @app.get("/healthz")
    def healthz() -> Response:
        return _plain(200, "ok\n")

    @app.get("/readyz")
    def readyz() -> Response:
        reason = health.reason_not_ready()
        return _plain(503, f"{reason}\n") if reason else _plain(200, "ok\n")

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(telemetry.render(), content_type=METRICS_TYPE)


def _mutate(admission: Admission) -> Decision:
    """Answer one review; the body is read here, as long as the server lets it take."""
    started = admission.clock()
    headers = request.headers
    refusal = find_refusal(
        headers.get("Content-Type", ""), headers.get("Content-Encoding", ""), headers.get("Content-Length", "")
    )
    if refusal is not None:
        return admission.refuse(refusal, started)
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        return admission.refuse(TOO_LARGE, started)
    return admission.answer(body, started)


def _response(answer: Decision) -> Response:
    return Response(answer.body, status=answer.status, content_type=answer.content_type)


def _plain(status: int, text: str) -> Response:
    return Response(text, status=status, content_type=TEXT)


def _plain_error(error: HTTPException) -> Response:
    """Werkzeug's errors as plain text, with the headers that belong to them (Allow)."""
    response = _plain(error.code or 500, f"{error.name.lower()}\n")
    for name, value in error.get_headers():
        if name.lower() != "content-type":
            response.headers[name] = value
    return response
