"""Which requests a policy is about."""

from typing import Any

import msgspec
import pytest

from policies.admission import Admission, Kind, Resource, admission_of
from tests.policies.admission.texts import creation, loaded, pod

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}


def rules(**change: Any) -> dict[str, Any]:
    """Match constraints of one rule."""
    return {"matchConstraints": {"resourceRules": [{**RULE, **change}]}}


def status() -> Admission:
    """Make a request for a subresource."""
    return msgspec.structs.replace(creation("red"), subresource="status")


MATCHED = [
    ("its own resource", {}, creation("red"), True),
    ("another resource", {"resources": ["services"]}, creation("red"), False),
    ("any resource", {"resources": ["*"]}, creation("red"), True),
    ("any resource but no subresource", {"resources": ["*"]}, status(), False),
    ("a subresource", {"resources": ["pods/status"]}, status(), True),
    ("any subresource of pods", {"resources": ["pods/*"]}, status(), True),
    ("this subresource of anything", {"resources": ["*/status"]}, status(), True),
    ("everything", {"resources": ["*/*"]}, status(), True),
    ("another group", {"apiGroups": ["apps"]}, creation("red"), False),
    ("another operation", {"operations": ["DELETE"]}, creation("red"), False),
    ("any operation", {"operations": ["*"]}, creation("red"), True),
    ("a name", {"resourceNames": ["b"]}, creation("red"), False),
    ("namespaced objects", {"scope": "Namespaced"}, creation("red"), True),
    ("cluster-scoped objects", {"scope": "Cluster"}, creation("red"), False),
]


@pytest.mark.parametrize(
    ("rule", "admission", "matched"), [item[1:] for item in MATCHED], ids=[item[0] for item in MATCHED]
)
def test_resource_rules(rule: dict[str, Any], admission: Admission, matched: bool) -> None:  # noqa: FBT001 - a table
    """Group, version, resource, subresource, operation, name and scope."""
    assert loaded(rules(**rule)).evaluate(admission).matched == matched


def test_another_version_is_an_error_unless_the_match_is_exact() -> None:
    """The API server would convert; here nothing does, and that is said."""
    (decision,) = loaded(rules(apiVersions=["v2"])).evaluate(creation()).denied
    assert decision.message == 'failed to configure policy: must be in version v2 to be evaluated, got "v1"'
    exact = rules(apiVersions=["v2"])
    exact["matchConstraints"]["matchPolicy"] = "Exact"
    assert not loaded(exact).evaluate(creation()).matched


def test_excluded_resources_are_left_out() -> None:
    """An exclusion wins."""
    excluding = {
        "matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["a"]}]}
    }
    assert not loaded(excluding).evaluate(creation("red")).matched


def selected(field: str, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    """Match constraints with a selector."""
    return {"matchConstraints": {"resourceRules": [RULE], field: {"matchExpressions": expressions}}}


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [("In", ["blue"], True), ("NotIn", ["blue"], False), ("Exists", [], True), ("DoesNotExist", [], False)],
)
def test_object_selectors(operator: str, values: list[str], matched: bool) -> None:  # noqa: FBT001 - a table
    """By the object's own labels."""
    expression = {"key": "colour", "operator": operator, **({"values": values} if values else {})}
    assert loaded(selected("objectSelector", [expression])).evaluate(creation()).matched == matched


def test_namespace_selectors() -> None:
    """By labels of the namespace, its name among them; a cluster-scoped object always matches."""
    policy = loaded(
        selected(
            "namespaceSelector", [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team-a"]}]
        )
    )
    assert not policy.evaluate(creation("red")).matched
    assert policy.evaluate(admission_of(pod(metadata={"namespace": "team-b"}))).matched
    labelled = loaded(selected("namespaceSelector", [{"key": "enforce", "operator": "Exists"}]))
    assert not labelled.evaluate(creation("red")).matched
    assert labelled.evaluate(admission_of(pod("red"), namespace_labels={"enforce": "yes"})).matched


def test_a_binding_may_narrow() -> None:
    """Its own resources and selectors; without rules of its own it takes all that the policy takes."""
    narrow = {"matchResources": {"objectSelector": {"matchLabels": {"colour": "blue"}}}}
    assert not loaded(None, narrow).evaluate(creation("red")).matched
    assert loaded(None, narrow).evaluate(creation()).matched


@pytest.mark.parametrize(
    ("content", "resource"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, Resource("", "v1", "pods")),
        ({"apiVersion": "a.io/v1", "kind": "PriorityClass"}, Resource("a.io", "v1", "priorityclasses")),
        ({"apiVersion": "a.io/v1", "kind": "NetworkPolicy"}, Resource("a.io", "v1", "networkpolicies")),
        ({"apiVersion": "v1", "kind": "Endpoints"}, Resource("", "v1", "endpoints")),
    ],
)  # fmt: skip
def test_the_resource_of_a_kind(content: dict[str, Any], resource: Resource) -> None:
    """Plural and lower case."""
    admission = admission_of(content)
    assert admission.resource == resource
    assert admission.kind == Kind(resource.group, resource.version, content["kind"])
