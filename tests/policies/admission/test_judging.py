"""How a policy judges: order, fall-backs, errors, params, the budget."""

from typing import Any

import pytest

from policies.admission import Budget, ObjectParams, ParamKind, admission_from_review, admission_of
from policies.admission.decisions import Decision
from tests.policies.admission.texts import creation, loaded, pod

NAME = "pods-are-blue.lockstep.dev"
RED = 'metadata.labels[colour]: must be "blue", got "red"'
LONG = "lists.range(600).map(i, '0123456789').join('')"
BROKEN = {"validations": [{"expression": "object.spec.nope == 1"}]}


def test_a_good_object_is_admitted() -> None:
    """One decision for each validation, no message."""
    judged = loaded().evaluate(creation())
    assert judged.matched
    assert judged.decisions == (Decision(NAME, NAME, 0, "admit", "admit", actions=("Deny",)),)
    assert judged.broken == judged.denied == ()


def test_a_bad_object_is_denied_with_the_evaluated_message() -> None:
    """The message expression's words, the reason, the binding and its actions."""
    judged = loaded().evaluate(creation("red"))
    assert judged.denied == (Decision(NAME, NAME, 0, "deny", "deny", RED, "Invalid", ("Deny",)),)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"expression": "false"}, "failed expression: false"),
        ({"expression": "false", "message": " fixed "}, "fixed"),
        ({"expression": "false", "message": "fixed", "messageExpression": "' '"}, "fixed"),
        ({"expression": "false", "message": "fixed", "messageExpression": "'two\\nlines'"}, "fixed"),
        ({"expression": "false", "message": "fixed", "messageExpression": "object.spec.nope + ''"}, "fixed"),
        ({"expression": "false", "message": "fixed", "messageExpression": LONG}, "fixed"),
        ({"expression": "false", "message": "fixed", "messageExpression": "'  own '"}, "own"),
    ],
    ids=["no message", "fixed", "blank", "two lines", "an error", "over 5 kB", "evaluated"],
)  # fmt: skip
def test_messages_fall_back_as_in_the_api_server(validation: dict[str, str], message: str) -> None:
    """Evaluated if it is one line of at most 5 kB, else fixed, else the expression itself."""
    (decision,) = loaded({"validations": [validation]}).judge(creation()).decisions
    assert decision.message == message


@pytest.mark.parametrize(("policy", "action"), [("Fail", "deny"), ("Ignore", "admit")])
def test_an_error_follows_the_failure_policy_and_is_reported(policy: str, action: str) -> None:
    """Never a pass without a word: the decision says that it was an error."""
    judged = loaded({**BROKEN, "failurePolicy": policy}).evaluate(creation())
    (decision,) = judged.broken
    assert (decision.action, decision.evaluation) == (action, "error")
    assert decision.message.startswith("expression 'object.spec.nope == 1' resulted in error: ")
    assert len(judged.denied) == (action == "deny")


CONDITIONS = {
    "met": (["true"], True, 1),
    "not met": (["true", "false"], False, 0),
    "an error beside one that is not met": (["object.spec.nope == 1", "false"], False, 0),
    "an error": (["object.spec.nope == 1", "true"], True, 1),
}


@pytest.mark.parametrize(("conditions", "matched", "broken"), CONDITIONS.values(), ids=CONDITIONS)
def test_match_conditions(conditions: list[str], matched: bool, broken: int) -> None:  # noqa: FBT001 - a table
    """One that is not met ends it, whatever the others say; an error is one of the whole policy."""
    named = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
    judged = loaded({"matchConditions": named}).evaluate(creation("red"))
    assert (judged.matched, len(judged.broken)) == (matched, broken)


def test_an_error_in_match_conditions_is_no_match_when_errors_are_ignored() -> None:
    """As the API server does it."""
    named = [{"name": "c", "expression": "object.spec.nope == 1"}]
    assert not loaded({"matchConditions": named, "failurePolicy": "Ignore"}).evaluate(creation("red")).matched


def test_unused_variables_do_no_harm() -> None:
    """An error in a variable is one only where it is used, and then an `||` may hide it."""
    variables = [{"name": "bad", "expression": "object.spec.nope"}]
    validations = [
        {"expression": "true"},
        {"expression": "true || variables.bad"},
        {"expression": "variables.bad == 1"},
    ]
    judged = loaded({"variables": variables, "validations": validations}).judge(creation())
    assert [decision.evaluation for decision in judged.decisions] == ["admit", "admit", "error"]


def test_audit_annotations_are_those_that_are_not_blank() -> None:
    """Trimmed; null and blank ones are left out; an error refuses under Fail."""
    annotations = [
        {"key": "colour", "valueExpression": "' ' + variables.colour"},
        {"key": "blank", "valueExpression": "' '"},
        {"key": "null", "valueExpression": "null"},
    ]
    judged = loaded({"auditAnnotations": annotations}).evaluate(creation())
    assert judged.audit_annotations == {"colour": "blue"}
    wrong = [{"key": "wrong", "valueExpression": "object.spec.nope + ''"}]
    (decision,) = loaded({"auditAnnotations": wrong}, {"validationActions": ["Audit"]}).evaluate(creation()).denied
    assert decision.evaluation == "error"


PARAMETERS = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "variables": [{"name": "colour", "expression": "params.data.colour"}],
}
KIND = ParamKind("v1", "ConfigMap")


def config(name: str, colour: str, namespace: str = "team-a", **labels: str) -> dict[str, Any]:
    """Make a ConfigMap."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": colour}}


def reference(action: str = "Deny", **rest: Any) -> dict[str, Any]:
    """Make the binding's part."""
    return {"paramRef": {"parameterNotFoundAction": action, **rest}}


def test_params_are_found_by_name_and_by_selector_in_the_objects_namespace() -> None:
    """One evaluation for each; those of other namespaces do not count."""
    params = ObjectParams([config("a", "blue", use="yes"), config("b", "red", use="yes"), config("a", "red", "team-b")])
    named = loaded(PARAMETERS, reference(name="a")).evaluate(creation(), params)
    assert named.broken == ()
    selected = loaded(PARAMETERS, reference(selector={"matchLabels": {"use": "yes"}})).evaluate(creation(), params)
    assert [decision.action for decision in selected.decisions] == ["admit", "deny"]
    elsewhere = loaded(PARAMETERS, reference(name="a", namespace="team-b")).evaluate(creation(), params)
    assert [decision.message for decision in elsewhere.denied] == [RED]


def test_missing_params_do_what_the_binding_says() -> None:
    """Allow: nothing is evaluated. Deny, or a kind that is not served: an error of the whole policy."""
    served = ObjectParams(served=[KIND])
    assert not loaded(PARAMETERS, reference("Allow", name="a")).evaluate(creation(), served).matched
    (denied,) = loaded(PARAMETERS, reference("Deny", name="a")).evaluate(creation(), served).denied
    expected = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert denied.message == expected
    (unknown,) = loaded(PARAMETERS, reference("Allow", name="a")).evaluate(creation(), ObjectParams()).denied
    assert unknown.message == "failed to configure binding: paramKind kind `v1, Kind=ConfigMap` not known"


def test_a_spent_budget_is_an_error() -> None:
    """No evaluation beyond it, and no pass."""
    budget = Budget(1)
    assert loaded().evaluate(creation(), budget=budget).broken == ()
    (decision,) = loaded().evaluate(creation(), budget=budget).denied
    assert "running out of cost budget" in decision.message


def test_endless_work_ends_in_an_error() -> None:
    """10,000 steps of loops, and 128 MiB read by them, are the most."""
    nested = "lists.range(1000).all(i, lists.range(1000).all(j, i + j >= 0))"
    (steps,) = loaded({"validations": [{"expression": nested}]}).judge(creation()).denied or (None,)
    judged = loaded({"validations": [{"expression": nested}]}).evaluate(creation())
    assert steps is None
    assert "Iteration budget exceeded" in judged.denied[0].message
    reading = "object.spec.words.all(word, object.spec.text.contains(word) || true)"
    large = pod(spec={"text": "x" * 1_000_000, "words": ["y"] * 1000})
    judged = loaded({"validations": [{"expression": reading}]}).evaluate(admission_of(large))
    assert "must be evaluated on a smaller object" in judged.denied[0].message


@pytest.mark.parametrize("text", ["\ud800", "\x00", "é", "\u2028"])
def test_any_text_may_stand_in_an_object(text: str) -> None:
    """Half characters and zero bytes too."""
    assert loaded().evaluate(creation(text)).denied[0].message.startswith("metadata.labels[colour]: must be")


def test_a_review_of_the_api_server_is_judged_as_it_stands() -> None:
    """Nothing is filled in; who asks is known."""
    request = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "team-a",
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": pod("red"),
        "dryRun": False,
    }
    admission = admission_from_review({"request": request})
    validations = [
        {"expression": "request.userInfo.username == 'bob' && !request.?subResource.hasValue()", "message": "no"}
    ]
    assert loaded({"validations": validations}).evaluate(admission).denied[0].message == "no"
    assert admission.content == pod("red")
