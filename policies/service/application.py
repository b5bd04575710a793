"""The service's Flask application.

Bodies arrive whole: whoever runs it bounds and times their reading (`policies.service.front`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
from flask import Flask, Response, render_template, request
from jinja2 import StrictUndefined
from werkzeug.exceptions import HTTPException

from policies.findings import Verdict
from policies.reading import Unreadable
from policies.service.admissions import BadReview, answer, read_admission
from policies.service.desk import Desk
from policies.service.openapi import document
from policies.service.requests import BadRequest, asked_target, decoded, is_json, with_cluster
from policies.targets import BadTarget

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
VALIDATE: Final = "/validate"
VALIDATE_WARN: Final = "/validate/warn"
REVIEW: Final = "/v1/review"

MAX_BODY: Final = 8 << 20
"""Bytes of a request. The API server takes at most 3 MiB a request, and a review of an update has the object twice."""

SECURITY: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class State(Protocol):
    """How the process is."""

    def reason_not_ready(self) -> str:
        """Say why no requests should be sent here; empty when they should."""


def create_app(desk: Desk, state: State, metrics: Callable[[], bytes], count: Callable[[Verdict], None]) -> Flask:
    """Make the application.

    Args:
        desk: answers.
        state: of the process.
        metrics: renders them.
        count: is told every verdict.
    """
    app = Flask("policies.service", static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=MAX_BODY, PROVIDE_AUTOMATIC_OPTIONS=False)
    app.jinja_env.undefined = StrictUndefined
    app.register_error_handler(HTTPException, _http_error)
    for error in (BadReview, BadRequest, Unreadable, BadTarget):
        app.register_error_handler(error, _bad_request)
    app.after_request(_secured)
    _add_reviews(app, desk, count)
    _add_reading(app, desk)
    _add_state(app, state, metrics)
    return app


def create_state_app(state: State, metrics: Callable[[], bytes]) -> Flask:
    """Make the application for plain HTTP: health and metrics alone."""
    app = Flask("policies.service", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.register_error_handler(HTTPException, _http_error)
    app.after_request(_secured)
    _add_state(app, state, metrics)
    return app


def _add_reviews(app: Flask, desk: Desk, count: Callable[[Verdict], None]) -> None:
    def admitted(*, warn_only: bool) -> Response:
        _require_json()
        admission = read_admission(request.get_data(cache=False))
        verdict = desk.admit(admission)
        count(verdict)
        return _bytes(200, answer(admission.uid, verdict, warn_only=warn_only))

    @app.post(VALIDATE)
    def validate() -> Response:
        return admitted(warn_only=False)

    @app.post(VALIDATE_WARN)
    def validate_warn() -> Response:
        return admitted(warn_only=True)

    @app.post(REVIEW)
    def review() -> Response:
        body, encoding = request.get_data(cache=False), request.headers.get("Content-Encoding", "")
        text = decoded(body, request.content_type or "", encoding)
        verdict, _ = desk.review_text(text, asked_target(request.args), with_cluster=with_cluster(request.args))
        count(verdict)
        return _json(200, verdict)


def _add_reading(app: Flask, desk: Desk) -> None:
    @app.get("/v1/policies")
    def policies() -> Response:
        return _json(200, {"policies": desk.entries()})

    @app.get("/v1/policies/<rule_id>")
    def policy(rule_id: str) -> Response:
        entry = desk.entry(rule_id)
        if entry is None:
            return _problem(404, f'id: must be the id of a rule, got "{rule_id[:80]}"')
        return _json(200, entry)

    @app.get("/openapi.json")
    def openapi() -> Response:
        return _json(200, document())

    @app.get("/")
    def page() -> Response:
        rules = [desk.entry(rule_id) for rule_id in desk.rules]
        return Response(render_template("rules.html", rules=rules), content_type="text/html; charset=utf-8")

    @app.get("/style.css")
    def style() -> Response:
        return Response(render_template("style.css"), content_type="text/css; charset=utf-8")


def _add_state(app: Flask, state: State, metrics: Callable[[], bytes]) -> None:
    @app.get("/healthz")
    def healthz() -> Response:
        return Response("ok\n", content_type=TEXT)

    @app.get("/readyz")
    def readyz() -> Response:
        reason = state.reason_not_ready()
        return Response(f"{reason}\n" if reason else "ok\n", 503 if reason else 200, content_type=TEXT)

    @app.get("/metrics")
    def show_metrics() -> Response:
        return Response(metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _require_json() -> None:
    if not is_json(request.content_type or ""):
        raise BadRequest(415, f'content-type: must be {JSON}, got "{(request.content_type or "")[:80]}"')


def _bad_request(error: Exception) -> Response:
    return _problem(getattr(error, "status", 400), str(error))


def _http_error(error: HTTPException) -> Response:
    """Werkzeug's errors in our form, with the headers that belong to them (Allow)."""
    response = _problem(error.code or 500, error.name.lower())
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def _problem(status: int, message: str) -> Response:
    return _json(status, {"message": message})


def _json(status: int, value: Any) -> Response:  # noqa: ANN401 - whatever msgspec encodes
    return _bytes(status, msgspec.json.encode(value))


def _bytes(status: int, body: bytes) -> Response:
    return Response(body, status=status, content_type=JSON)


def _secured(response: Response) -> Response:
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    return response
