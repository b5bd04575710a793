"""A desk and the application around it, for tests without a server."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from lockstep.policy_server import read_examples
from policies.exceptions import NO_EXCEPTIONS, Exceptions
from policies.findings import Verdict
from policies.registry import all_rules
from policies.service.application import create_app
from policies.service.desk import Desk, View
from policies.targets import Target
from serving.health import Health

TODAY: Final = dt.date(2026, 11, 30)
FIXTURES: Final = Path(__file__).parents[1]
REVIEWS: Final = Path(__file__).parents[2] / "data" / "reviews"


def desk(exceptions: Exceptions = NO_EXCEPTIONS, view: View | None = None) -> Desk:
    """Make a desk of all rules."""
    examples = read_examples(FIXTURES)
    return Desk(all_rules(), target=Target(), exceptions=exceptions, today=lambda: TODAY, view=view, examples=examples)


def client(
    answering: Desk | None = None,
    health: Health | None = None,
    count: Callable[[Verdict], None] = lambda _: None,
) -> FlaskClient:
    """Make a client of the application around a desk."""
    app = create_app(answering or desk(), health or Health(), lambda: b"metrics\n", count)
    return app.test_client()


def fixture(name: str) -> str:
    """Read the objects of a rule's fixture, without its head."""
    return (FIXTURES / name).read_text().partition("\n---\n")[2]


def said(response: TestResponse) -> Any:
    """Decode an answer."""
    return json.loads(response.data)
