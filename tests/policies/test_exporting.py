"""Policies in other forms."""

import json
from typing import Any

import pytest

from policies.admission import load_policies
from policies.exporting import ExportError, check_actions, export_bindings, export_mutating, export_static
from policies.registry import all_rules
from tests.policies.admission.texts import FILE, creation, loaded


def reloaded(documents: list[dict[str, Any]]) -> str:
    """Write documents so that they can be loaded."""
    return "\n---\n".join(map(json.dumps, documents))


def test_bindings_get_other_actions() -> None:
    """All else stays."""
    (binding,) = export_bindings([loaded()], ["Warn", "Audit"])
    assert binding == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "pods-are-blue.lockstep.dev"},
        "spec": {"policyName": "pods-are-blue.lockstep.dev", "validationActions": ["Warn", "Audit"]},
    }


def test_static_policies_judge_as_before() -> None:
    """Under the names that an API server asks of files, and nothing but."""
    documents = export_static([loaded()])
    assert [document["metadata"]["name"] for document in documents] == ["pods-are-blue.lockstep.dev.static.k8s.io"] * 2
    (policy,) = load_policies(reloaded(documents), FILE)
    before, after = (item.evaluate(creation("red")).denied for item in (loaded(), policy))
    assert [decision.message for decision in after] == [decision.message for decision in before] != []


def test_all_our_policies_can_be_static() -> None:
    """None has parameters, and none is lost."""
    policies = [policy for rule in all_rules().values() if rule.text for policy in load_policies(rule.text, rule.file)]
    again = load_policies(reloaded(export_static(policies, ["Deny", "Audit"])), FILE)
    assert [policy.name for policy in again] == [f"{policy.name}.static.k8s.io" for policy in policies]
    assert {action for policy in again for item in policy.bindings for action in item.spec.validation_actions} == {
        "Deny",
        "Audit",
    }


def test_static_policies_have_no_parameters() -> None:
    """The API server refuses them in files."""
    policy = loaded({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}})
    with pytest.raises(
        ExportError, match=r'^spec.paramKind: must be unset in a static policy, got one in "pods-are-blue'
    ):
        export_static([policy])


def test_nothing_stamps_in_place_of_the_webhook() -> None:
    """And the reason is told."""
    with pytest.raises(ExportError, match=r"^pods: must be stamped by the webhook, got no MutatingAdmissionPolicy: "):
        export_mutating()


@pytest.mark.parametrize("actions", [[], ["Deny", "Warn"], ["Deny", "Deny"], ["Panic"]])
def test_actions_must_be_those_of_the_api(actions: list[str]) -> None:
    """And not contradict each other."""
    with pytest.raises(ExportError, match=r"^actions: must be Deny, or Warn, or Audit with one of them, got "):
        check_actions(actions)


def test_actions_are_read_in_any_case_and_order() -> None:
    """As people write them."""
    assert check_actions([" audit", "DENY"]) == ("Deny", "Audit")
