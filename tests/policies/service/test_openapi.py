"""The OpenAPI document: valid, whole, and true of the answers."""

import json
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from policies.service.openapi import document
from tests.policies.service.desks import REVIEWS, client, fixture, said


@pytest.fixture(scope="module")
def asker() -> FlaskClient:
    """A client of one application."""
    return client()


def test_the_document_is_openapi_3_1(asker: FlaskClient) -> None:
    """As the specification's validator sees it."""
    served = said(asker.get("/openapi.json"))
    assert served == json.loads(json.dumps(document()))
    validate(served, cls=OpenAPIV31SpecValidator)


def test_every_route_is_described(asker: FlaskClient) -> None:
    """Path and method, no more and no less."""
    rules = asker.application.url_map.iter_rules()
    routes = {
        (rule.rule.replace("<rule_id>", "{id}"), method.lower())
        for rule in rules
        for method in (rule.methods or set()) - {"HEAD"}
    }
    assert routes == {(path, method) for path, methods in document()["paths"].items() for method in methods}


def _schema(name: str) -> dict[str, Any]:
    whole = document()
    return {"$ref": f"#/components/schemas/{name}", "components": whole["components"]}


def test_answers_are_as_described(asker: FlaskClient) -> None:
    """A verdict, the rules, a rule, a refusal, an answered review."""
    text = fixture("podgroup_minimum_positive/denied.yaml")
    verdict = said(asker.post("/v1/review", data=text, content_type="application/yaml"))
    assert verdict["findings"]
    jsonschema.validate(verdict, _schema("Verdict"))
    for entry in said(asker.get("/v1/policies"))["policies"]:
        jsonschema.validate(entry, _schema("PolicyEntry"))
    jsonschema.validate(said(asker.get("/v1/policies/podgroup-minimum-positive")), _schema("Policy"))
    jsonschema.validate(said(asker.get("/nowhere")), _schema("Problem"))
    for name in ("validate-update-vllm-leader.json", "validate-create-sub-leaderworkerset.json"):
        body = json.loads((REVIEWS / name).read_text())
        jsonschema.validate(body, _schema("AdmissionReview"))
        jsonschema.validate(said(asker.post("/validate", json=body)), _schema("AnsweredReview"))
