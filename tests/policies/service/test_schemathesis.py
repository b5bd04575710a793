"""schemathesis against the running service, by its own OpenAPI document: no 5xx, and every answer as described.

One of its checks is left out: that whatever fits the schemas is accepted. No schema says which gates a version has, or
that two keys of a mapping differ.
"""

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from policies.service.openapi import document
from tests.webhook.serving import Served

OPERATIONS = sorted((path, method) for path, methods in document()["paths"].items() for method in methods)
SPOILT = [operation for operation in OPERATIONS if operation[1] == "post"]
EXAMPLES = 60

RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE


@pytest.fixture(scope="module")
def described(service: Served) -> Any:
    """The document that the service serves, loaded."""
    schema = schemathesis.openapi.from_dict(json.loads(service.ask("GET", "/openapi.json").body))
    schema.config.update(base_url=f"https://localhost:{service.port}")
    return schema


@pytest.mark.parametrize(
    ("path", "method", "mode"),
    [*((*operation, RIGHT) for operation in OPERATIONS), *((*operation, WRONG) for operation in SPOILT)],
)
def test_every_operation_keeps_its_word(
    described: Any, service: Served, path: str, method: str, mode: GenerationMode
) -> None:
    """Generated requests, right and wrong, get described answers, and none is a 5xx."""
    operation = described[path][method]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def keeps_its_word(case: Any) -> None:
        response = case.call(verify=str(service.folder / "ca.crt"), timeout=60)
        assert response.status_code < 500, case.as_curl_command()
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    keeps_its_word()
