# ruff: noqa: E501 - a table of messages
"""What the linter finds, and what it leaves alone."""

from typing import Any

import pytest

from policies.admission import load_policies
from policies.linting import BadVersionError, failed, lint
from policies.registry import all_rules
from policies.targets import Target
from tests.policies.admission.texts import FILE, POLICY, loaded

CUSTOM: dict[str, Any] = {"paramKind": {"apiVersion": "limits.example.com/v1", "kind": "Limit"}}
CONFIG: dict[str, Any] = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
QUIET = {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]}}  # fmt: skip
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}


def spec(expression: str = "variables.colour == 'blue'", **change: Any) -> dict[str, Any]:
    """Make a spec that nothing is wrong with but what is given."""
    validations = [{"expression": expression, "message": "must be blue"}]
    return {"validations": validations, "matchConstraints": {"resourceRules": [PODS], **QUIET}, **change}


def messages(fields: dict[str, Any], binding: dict[str, Any] | None = None, version: str = "1.37") -> list[str]:
    """Lint a policy with other fields."""
    return [problem.message for problem in lint([loaded(fields, binding)], version)]


FOUND = {
    "no message": (
        spec(validations=[{"expression": "true"}]), None,
        "spec.validations[0]: must have a message that people understand, got none",
    ),
    "has() on what is always there": (
        spec("has(object.status)"), None,
        'spec.validations[0].expression: must not ask has() for a field that the API server always writes, got "status"',
    ),
    "a nested repetition": (
        spec("variables.colour.matches('^(a+)+$')"), None,
        ("spec.validations[0].expression: must have no repetition within a repetition, which takes some engines forever,"
        ' got "^(a+)+$"'),
    ),
    "depth": (
        spec(" + ".join(["1"] * 26) + " > 0"), None,
        "spec.validations[0].expression: must be at most 24 levels deep, got 27",
    ),
    "kube-system": (
        spec(matchConstraints={"resourceRules": [PODS]}), None,
        ("spec.matchConstraints.namespaceSelector: must leave out kube-system, whose pods repair the cluster, got no such"
        " selector"),
    ),
    "one version of many": (
        spec(matchConstraints={"resourceRules": [{**PODS, "apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"]}]}), None,
        ('spec.matchConstraints.resourceRules[0].apiVersions: must be "*" or have matchPolicy Exact: nothing but the API'
        " server converts to another version, got v1"),
    ),
    "a custom kind of params": (
        spec(**CUSTOM), {"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}},
        ("spec.failurePolicy: must be Ignore with a custom paramKind: while that is not served, every matching request is"
        ' refused, got "Fail"'),
    ),
    "missing params that refuse": (
        spec(**CONFIG), {"paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}},
        ('binding "pods-are-blue.lockstep.dev": must be sure of its params: without them every matching request is refused,'
        ' got parameterNotFoundAction "Deny"'),
    ),
    "selected params": (
        spec(**CONFIG), {"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}},
        ('binding "pods-are-blue.lockstep.dev": must name one object: the policy is evaluated for every one that is'
        " selected, got a selector"),
    ),
    "a paramKind without a paramRef": (
        spec(**CONFIG), None,
        'binding "pods-are-blue.lockstep.dev": must name params, or the policy sees null, got no paramRef',
    ),
    "a paramRef without a paramKind": (
        spec(), {"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}},
        'binding "pods-are-blue.lockstep.dev": must have no paramRef without a paramKind, got one, which is ignored',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "binding", "message"), FOUND.values(), ids=FOUND)
def test_a_risk_is_found(fields: dict[str, Any], binding: dict[str, Any] | None, message: str) -> None:
    """Word for word, and nothing beside it."""
    assert messages(fields, binding) == [message]


def test_a_good_policy_has_no_problem() -> None:
    """On the API server it is for."""
    assert messages(spec()) == []


def test_functions_must_be_known_to_the_version_before_the_target() -> None:
    """An API server takes new policies only with what its predecessor has."""
    sorting = spec("[2, 1].sort()[0] == 1")
    assert messages(sorting, version="1.35") == []
    path = "spec.validations[0].expression"
    expected = f"{path}: must use functions that Kubernetes 1.33 has, as 1.34 takes no others, got one of 1.34"
    assert messages(sorting, version="v1.34.2") == [expected]
    assert failed(lint([loaded(sorting)], "1.34"))
    two = spec("object.metadata.labels.all(k, v, v != '')")
    assert messages(two, version="1.33") == []
    assert len(messages(two, version="1.32")) == 1


def test_an_older_api_server_does_not_serve_the_kind() -> None:
    """`v1` came with 1.30."""
    (problem,) = lint([loaded(spec())], "1.29")
    assert problem.message == 'apiVersion: must be served by Kubernetes 1.29, got "v1", which 1.30 brought'
    assert (problem.severity, problem.file, problem.line) == ("error", FILE, 1)


def test_a_policy_without_a_binding_does_nothing() -> None:
    """Nobody else says so."""
    found = [problem.message for problem in lint(load_policies(POLICY, FILE), Target())]
    assert "metadata.name: must have a binding to do anything, got none" in found


def test_a_version_must_be_one() -> None:
    """Anything else is refused."""
    with pytest.raises(BadVersionError, match=r'^version: must be a version such as 1.37, got "new"$'):
        lint([], "new")


@pytest.mark.parametrize("version", ["1.31", "1.35", "1.36", "1.37", "1.38-alpha"])
def test_our_own_policies_have_no_problem(version: str) -> None:
    """On every version that serves them."""
    policies = [policy for rule in all_rules().values() if rule.text for policy in load_policies(rule.text, rule.file)]
    assert len(policies) > 10
    assert lint(policies, version) == ()
