"""The service's OpenAPI 3.1 document. Pure."""

from typing import Any, Final

from policies.findings import SEVERITIES
from policies.targets import GATES, NEWEST

Schema = dict[str, Any]

TITLE: Final = "Lockstep policies"
VERSION: Final = "v1"

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}


def document() -> Schema:
    """Render the document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": VERSION,
            "description": "Judges manifests and admissions by the rules of Lockstep. It changes nothing.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {
            "/v1/review": {"post": _review()},
            "/v1/policies": {"get": _policies()},
            "/v1/policies/{id}": {"get": _policy()},
            "/validate": {"post": _validate("Judge an admission", "Refuses what breaks a rule.")},
            "/validate/warn": {
                "post": _validate("Judge an admission, and admit", "Says in warnings what breaks a rule.")
            },
            "/healthz": {"get": _plain("Whether the process lives")},
            "/readyz": {"get": _plain("Whether the process should get requests", _text(503, "Why not."))},
            "/metrics": {"get": _plain("Metrics of Prometheus")},
            "/openapi.json": {"get": _operation("This document", _json(200, "The document.", {"type": "object"}))},
            "/": {"get": _operation("The rules, to be read", _content(200, "The page.", "text/html", _TEXT))},
            "/style.css": {"get": _operation("How the page looks", _content(200, "The style.", "text/css", _TEXT))},
        },
        "components": {"schemas": _schemas()},
    }


def _review() -> Schema:
    one: Schema = {"type": "object", "additionalProperties": True}
    one_or_many: Schema = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    parameters = [
        _parameter("target", "The Kubernetes that the objects are for.", {"type": "string", "enum": [*GATES]}, NEWEST),
        _parameter("gates", "Its feature gates, separated by commas; -Name is off.", _TEXT, "GenericWorkload"),
        _parameter("cluster", "Whether what is known of the cluster counts.", {"type": "boolean"}, example=False),
    ]
    body = {
        "required": True,
        "description": "Objects or manifests: YAML with any number of documents, or JSON: an object, a List, a list.",
        "content": {
            "application/json": {"schema": one_or_many},
            "application/yaml": {"schema": one},
        },
    }
    answers = {**_json(200, "The verdict.", _ref("Verdict")), **_refusals(400, 413, 415, 408, 503)}
    return {**_operation("Judge objects", answers), "parameters": parameters, "requestBody": body}


def _validate(summary: str, description: str) -> Schema:
    timeout = _parameter("timeout", "How long the API server waits.", _TEXT, "10s")
    body = {"required": True, "content": {"application/json": {"schema": _ref("AdmissionReview")}}}
    answers = {
        **_json(200, "The answered review.", _ref("AnsweredReview")),
        **_refusals(400, 413, 415, 408, 503),
    }
    return {**_operation(summary, answers), "description": description, "parameters": [timeout], "requestBody": body}


def _policies() -> Schema:
    listed: Schema = _object({"policies": {"type": "array", "items": _ref("PolicyEntry")}})
    return _operation("List the rules", _json(200, "The rules.", listed))


def _policy() -> Schema:
    parameter = {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
        "example": "podgroup-minimum-positive",
    }
    answers = {**_json(200, "The rule.", _ref("Policy")), **_refusals(404)}
    return {**_operation("Describe a rule", answers), "parameters": [parameter]}


def _plain(summary: str, more: Schema | None = None) -> Schema:
    return _operation(summary, {**_text(200, "Text."), **(more or {})})


def _operation(summary: str, responses: Schema) -> Schema:
    return {"summary": summary, "responses": responses}


def _parameter(name: str, description: str, schema: Schema, example: object) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


def _refusals(*statuses: int) -> Schema:
    words = {
        400: "The request can't be read.",
        404: "There is no such rule.",
        408: "The body did not arrive in time.",
        413: "The body is too large.",
        415: "The body is of a type that is not taken.",
        503: "Too much is asked at once, or the answer would come too late.",
    }
    return {key: value for status in statuses for key, value in _json(status, words[status], _ref("Problem")).items()}


def _json(status: int, description: str, schema: Schema) -> Schema:
    return _content(status, description, "application/json", schema)


def _text(status: int, description: str) -> Schema:
    return _content(status, description, "text/plain", _TEXT)


def _content(status: int, description: str, media: str, schema: Schema) -> Schema:
    return {str(status): {"description": description, "content": {media: {"schema": schema}}}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, *optional: str) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _schemas() -> Schema:
    severity: Schema = {"type": "string", "enum": [*SEVERITIES]}
    short: Schema = {
        "id": _TEXT,
        "title": _TEXT,
        "severity": severity,
        "enforcedBy": {"type": "string", "enum": ["api server", "service", "both"]},
        "kinds": _TEXTS,
        "href": _TEXT,
    }
    test = _object({"file": _TEXT, "promise": _TEXT, "expect": _TEXTS, "text": _TEXT})
    return {
        "Problem": _object({"message": _TEXT}),
        "PolicyEntry": _object(short),
        "Policy": _object(
            {
                **short,
                **dict.fromkeys(("why", "blind", "whenDown", "file", "yaml"), _TEXT),
                "tests": {"type": "array", "items": test},
            }
        ),
        "Verdict": _object(
            {"allowed": {"type": "boolean"}, "findings": {"type": "array", "items": _ref("Finding")}},
        ),
        "Finding": _finding(severity),
        **_admission(),
    }


def _finding(severity: Schema) -> Schema:
    names = ("apiVersion", "kind", "namespace", "name")
    source = _object({"file": _TEXT, "line": {"type": "integer", "minimum": 1}})
    exemption = _object(dict.fromkeys(("owner", "reason", "expiry"), _TEXT))
    return _object(
        {
            "rule": _TEXT,
            "severity": severity,
            "path": _TEXT,
            "message": _TEXT,
            "object": _object(dict.fromkeys(names, _TEXT)),
            "source": {"anyOf": [source, {"type": "null"}]},
            "exception": exemption,
        },
        "exception",
    )


def _admission() -> Schema:
    anything: Schema = {"type": ["object", "null"], "additionalProperties": True}
    kind: Schema = {"apiVersion": {"const": "admission.k8s.io/v1"}, "kind": {"const": "AdmissionReview"}}
    request = _object(
        {
            "uid": {"type": "string", "minLength": 1},
            "operation": _TEXT,
            "namespace": _TEXT,
            "subResource": _TEXT,
            "object": anything,
            "oldObject": anything,
            "userInfo": _object(
                {"username": _TEXT, "groups": {**_TEXTS, "type": ["array", "null"]}}, "username", "groups"
            ),
        },
        *("operation", "namespace", "subResource", "object", "oldObject", "userInfo"),
    )
    status = _object({"code": {"type": "integer"}, "reason": _TEXT, "message": _TEXT})
    response = _object(
        {"uid": _TEXT, "allowed": {"type": "boolean"}, "status": status, "warnings": _TEXTS}, "status", "warnings"
    )
    return {
        "AdmissionReview": _object({**kind, "request": request}),
        "AnsweredReview": _object({**kind, "response": response}),
    }
