# ruff: noqa: E501 - a table of messages
"""What is refused at load, each with its line."""

import re

import pytest

from policies.admission import BadPolicyError, load_policies, load_policy_files
from tests.policies.admission.texts import BINDING, FILE, POLICY, loaded

WHOLE = POLICY + BINDING

REFUSED = [
    ("an unknown field", ("  failurePolicy: Fail", "  failurePolicie: Fail"), '6: spec.failurePolicie: must be a field of the API, got "failurePolicie"'),
    ("an unknown word", ("failurePolicy: Fail", "failurePolicy: Maybe"), "6: spec.failurePolicy: must have the shape of the API, got invalid enum value 'Maybe'"),
    ("a missing list", ("operations: [CREATE, UPDATE]", "operations: []"), "9: spec.matchConstraints.resourceRules[0]: must name groups, versions, operations and resources, got an empty list"),
    ("another kind", ("kind: ValidatingAdmissionPolicyBinding", "kind: ConfigMap"), '19: kind: must be ValidatingAdmissionPolicy or ValidatingAdmissionPolicyBinding, got "ConfigMap"'),
    ("another API", ("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n", "apiVersion: v9\nkind: ValidatingAdmissionPolicy\n"), '1: apiVersion: must be admissionregistration.k8s.io/v1, got "v9"'),
    ("a binding to nothing", ("policyName: pods", "policyName: cats"), '23: spec.policyName: must name a policy that is given, got "cats-are-blue.lockstep.dev"'),
    ("Deny with Warn", ("[Deny]", "[Deny, Warn]"), "24: spec.validationActions: must name actions once each, and not Deny together with Warn, got Deny, Warn"),
    ("no action", ("[Deny]", "[]"), "24: spec.validationActions: must name actions once each, and not Deny together with Warn, got none"),
    ("a text that is no expression", ("variables.colour == 'blue'", "variables.colour =="), "14: spec.validations[0].expression: Syntax error"),
    ("an unknown variable", ("variables.colour == 'blue'", "variables.color == 'blue'"), "14: spec.validations[0].expression: undeclared reference to 'variables.color'"),
    ("params without a paramKind", ("variables.colour == 'blue'", "params.colour == 'blue'"), "14: spec.validations[0].expression: undeclared reference to 'params.colour'"),
    ("the authorizer, which can't be asked", ("variables.colour == 'blue'", "authorizer.path('/').check('get').allowed()"), "14: spec.validations[0].expression: undeclared reference to 'authorizer'"),
    ("a validation of no boolean", ("variables.colour == 'blue'", "variables.colour"), "14: spec.validations[0].expression: must give bool, got string"),
    ("a validation of an unknown type", ("variables.colour == 'blue'", "object.spec.hostNetwork"), "14: spec.validations[0].expression: must give bool, got dyn"),
    ("a message of no text", ("'metadata.labels[colour]: must be \"blue\", got \"' + variables.colour + '\"'", "1"), "15: spec.validations[0].messageExpression: must give string, got int"),
    ("a function of other engines", ("variables.colour == 'blue'", "variables.colour.reverse() == 'blue'"), '14: spec.validations[0].expression: must call functions of Kubernetes that we evaluate as it does, got "reverse"'),
    ("a library that is not here", ("variables.colour == 'blue'", "isURL(variables.colour)"), "14: spec.validations[0].expression: undeclared reference to 'isURL'"),
    ("a variable of a word of CEL", ("name: colour", "name: for"), '11: spec.variables[0].name: must be a name of its own, got "for"'),
    ("no YAML", ("spec:", "spec: ["), "7: must be YAML"),
    ("an alias", ("kind: ValidatingAdmissionPolicy\n", "kind: &k ValidatingAdmissionPolicy\nx: *k\n"), "3: must hold no YAML alias"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), [item[1:] for item in REFUSED], ids=[item[0] for item in REFUSED])
def test_what_is_wrong_is_refused_with_its_line(change: tuple[str, str], expected: str) -> None:
    """File and line first, then the field and the rule."""
    text = WHOLE.replace(*change, 1)
    assert text != WHOLE
    with pytest.raises(BadPolicyError, match="^" + re.escape(f"{FILE}:{expected}")):
        load_policies(text, FILE)


def test_an_error_within_a_block_of_lines_names_its_line() -> None:
    """An expression of several lines that keeps its breaks is pointed into."""
    text = WHOLE.replace("- expression: variables.colour == 'blue'\n", "- expression: |\n      true &&\n      nope\n")
    with pytest.raises(BadPolicyError) as caught:
        load_policies(text, FILE)
    assert (caught.value.line, caught.value.file) == (15, FILE)
    assert caught.value.problem == "spec.validations[0].expression: undeclared reference to 'nope' (in container '')"


def test_policies_and_bindings_may_stand_in_different_files() -> None:
    """A binding is found wherever it stands, a policy of one name only once."""
    (policy,) = load_policy_files({"a.yaml": POLICY, "b.yaml": BINDING})
    assert (policy.name, policy.file, len(policy.bindings)) == ("pods-are-blue.lockstep.dev", "a.yaml", 1)
    with pytest.raises(BadPolicyError, match="must be the name of one policy"):
        load_policy_files({"a.yaml": POLICY, "b.yaml": POLICY})


def test_what_a_policy_needs_is_known() -> None:
    """The version of Kubernetes that has its functions, and whether it costs memory."""
    assert (loaded().level, loaded().foreign) == (28, False)
    counting = loaded({"validations": [{"expression": "isQuantity(variables.colour) || [2, 1].sort()[0] == 1"}]})
    assert (counting.level, counting.foreign) == (34, True)


def test_defaults_are_those_of_the_api() -> None:
    """What is left out is what the API server would fill in."""
    spec = loaded({"failurePolicy": None}).document.spec
    assert (spec.failure_policy, spec.match_constraints.match_policy) == ("Fail", "Equivalent")
    assert spec.match_constraints.resource_rules[0].scope == "*"
