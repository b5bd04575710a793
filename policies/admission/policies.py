"""A loaded policy and how it judges: the order, the fall-backs and the words are the API server's.

Source: kubernetes `staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go`, `dispatcher.go`
and `.../plugin/webhook/matchconditions/matcher.go`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from policies.admission.budgets import Budget
from policies.admission.decisions import WHOLE_POLICY, Decision, Evaluation, PolicyDecision, Verb
from policies.admission.documents import BindingDocument, FailurePolicy, ParamKind, PolicyDocument
from policies.admission.matching import OtherVersionError, matches
from policies.admission.params import NO_PARAMS, MissingParamsError, ParamSource, collect_params
from policies.admission.requests import Admission
from policies.cel.environment import Value
from policies.cel.errors import Failure
from policies.cel.expressions import Bindings, Expression
from policies.objects import Subject

LONGEST_MESSAGE: Final = 5 << 10
"""Bytes of an evaluated message; a longer one, or one of several lines, gives way to the fixed one."""

LONGEST_ANNOTATION: Final = 10 << 10

_SPENT: Final = Failure("validation failed due to running out of cost budget, no further validation rules will be run")


class CompiledValidation(msgspec.Struct, frozen=True):
    """A validation, its expressions compiled."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


class CompiledAnnotation(msgspec.Struct, frozen=True):
    """An audit annotation, its expression compiled."""

    key: str
    expression: Expression


class Policy(msgspec.Struct, frozen=True):
    """A ValidatingAdmissionPolicy with its bindings, ready to judge.

    Attributes:
        document: as decoded.
        file: where it stands.
        line: its first line.
        place: the document as read, which knows the line of each field.
        conditions: match conditions.
        validations: in order.
        annotations: for the audit log.
        bindings: those that name it; without one it does nothing.
        level: the minor version of Kubernetes that it needs.
        foreign: whether it calls Python within the engine, see `policies.cel.foreign`.
    """

    document: PolicyDocument
    file: str
    line: int
    place: Subject
    conditions: tuple[Expression, ...]
    validations: tuple[CompiledValidation, ...]
    annotations: tuple[CompiledAnnotation, ...]
    bindings: tuple[BindingDocument, ...]
    level: int
    foreign: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.document.metadata.name

    @property
    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Its expressions with their field paths; variables stand within those that use them."""
        for index, condition in enumerate(self.conditions):
            yield f"spec.matchConditions[{index}].expression", condition
        for index, validation in enumerate(self.validations):
            yield f"spec.validations[{index}].expression", validation.expression
            if validation.message_expression is not None:
                yield f"spec.validations[{index}].messageExpression", validation.message_expression
        for index, annotation in enumerate(self.annotations):
            yield f"spec.auditAnnotations[{index}].valueExpression", annotation.expression

    @property
    def failure_policy(self) -> FailurePolicy:
        """What an error means."""
        return self.document.spec.failure_policy

    @property
    def param_kind(self) -> ParamKind | None:
        """The kind of its parameters."""
        return self.document.spec.param_kind

    def evaluate(
        self, admission: Admission, params: ParamSource = NO_PARAMS, budget: Budget | None = None
    ) -> PolicyDecision:
        """Judge a request through the bindings, as the API server does.

        Args:
            admission: the request.
            params: where bindings find their parameters.
            budget: of the request, shared by its policies.
        """
        spending = budget or Budget()
        try:
            if not matches(self.document.spec.match_constraints, admission, rules_needed=True):
                return PolicyDecision(matched=False)
        except OtherVersionError as error:
            return self._unconfigured(f"failed to configure policy: {error}", None)
        parts = [self._through(binding, admission, params, spending) for binding in self.bindings]
        return _joined([part for part in parts if part.matched])

    def judge(
        self, admission: Admission, param: Mapping[str, Any] | None = None, budget: Budget | None = None
    ) -> PolicyDecision:
        """Judge a request without bindings: what the policy itself says, with one parameter object or none."""
        try:
            if not matches(self.document.spec.match_constraints, admission, rules_needed=True):
                return PolicyDecision(matched=False)
        except OtherVersionError as error:
            return self._unconfigured(f"failed to configure policy: {error}", None)
        bindings = admission.bindings if param is None else admission.bindings_with(param)
        return _Judging(self, None, bindings, budget or Budget()).decide()

    def _through(
        self, binding: BindingDocument, admission: Admission, params: ParamSource, budget: Budget
    ) -> PolicyDecision:
        spec = binding.spec
        try:
            if spec.match_resources and not matches(spec.match_resources, admission, rules_needed=False):
                return PolicyDecision(matched=False)
            found = collect_params(self.param_kind, spec.param_ref, admission.namespace, params)
        except (OtherVersionError, MissingParamsError) as error:
            return self._unconfigured(f"failed to configure binding: {error}", binding)
        parts = []
        for param in found:
            bindings = admission.bindings if param is None else admission.bindings_with(param)
            parts.append(_Judging(self, binding, bindings, budget).decide())
        return _joined(parts)

    def _unconfigured(self, message: str, binding: BindingDocument | None) -> PolicyDecision:
        action: Verb = "admit" if self.failure_policy == "Ignore" else "deny"
        bound = "" if binding is None else binding.metadata.name
        # Whatever the binding's actions are, the API server refuses when a policy can't be set up.
        decision = Decision(self.name, bound, WHOLE_POLICY, action, "error", message, "Invalid", ("Deny",))
        return PolicyDecision(matched=True, decisions=(decision,))


class _Judging:
    """One evaluation: a policy, a binding, one parameter object."""

    def __init__(self, policy: Policy, binding: BindingDocument | None, values: Bindings, budget: Budget) -> None:
        self._policy, self._binding, self._values, self._budget = policy, binding, values, budget

    def decide(self) -> PolicyDecision:
        met = self._conditions_met()
        if isinstance(met, Failure):
            return PolicyDecision(matched=True, decisions=(self._error(WHOLE_POLICY, met.message),))
        if not met:
            return PolicyDecision(matched=False)
        decisions = [self._validated(index, item) for index, item in enumerate(self._policy.validations)]
        annotations = dict(self._annotated(decisions))
        return PolicyDecision(matched=True, decisions=tuple(decisions), audit_annotations=annotations)

    def _conditions_met(self) -> bool | Failure:
        failures: list[Failure] = []
        for condition in self._policy.conditions:
            value = self._run(condition)
            if isinstance(value, Failure):
                failures.append(value)
            elif value is False:
                return False
        if failures and self._policy.failure_policy == "Ignore":
            return False
        return failures[0] if failures else True

    def _validated(self, index: int, validation: CompiledValidation) -> Decision:
        value = self._run(validation.expression)
        if isinstance(value, Failure):
            return self._error(index, value.message)
        if value is True:
            return self._decision(index, "admit", "admit")
        return self._decision(index, "deny", "deny", self._message(validation), validation.reason)

    def _message(self, validation: CompiledValidation) -> str:
        if validation.message_expression is not None:
            value = self._run(validation.message_expression)
            text = value.strip() if isinstance(value, str) else ""
            if text and "\n" not in text and len(text.encode()) <= LONGEST_MESSAGE:
                return text
        return validation.message or f"failed expression: {validation.expression.text.strip()}"

    def _annotated(self, decisions: list[Decision]) -> Iterator[tuple[str, str]]:
        for annotation in self._policy.annotations:
            value = self._run(annotation.expression)
            if isinstance(value, Failure):
                if self._policy.failure_policy == "Fail":
                    # Refused whatever the binding's actions are, as the API server does it.
                    decisions.append(
                        msgspec.structs.replace(self._error(WHOLE_POLICY, value.message), actions=("Deny",))
                    )
            elif isinstance(value, str) and (text := value.strip()):
                yield annotation.key, text.encode()[:LONGEST_ANNOTATION].decode(errors="ignore")

    def _run(self, expression: Expression) -> Value | Failure:
        if not self._budget.spend():
            return _SPENT
        value = expression.evaluate(self._values)
        if isinstance(value, Failure):
            return Failure(f"expression '{expression.text}' resulted in error: {value.message}", value.exhausted)
        return value

    def _error(self, index: int, message: str) -> Decision:
        ignored = self._policy.failure_policy == "Ignore"
        return self._decision(index, "admit" if ignored else "deny", "error", message, "" if ignored else "Invalid")

    def _decision(
        self, index: int, action: Verb, evaluation: Evaluation, message: str = "", reason: str = ""
    ) -> Decision:
        binding = self._binding
        bound = "" if binding is None else binding.metadata.name
        actions = () if binding is None else binding.spec.validation_actions
        return Decision(self._policy.name, bound, index, action, evaluation, message, reason, actions)


def _joined(parts: list[PolicyDecision]) -> PolicyDecision:
    """Put several evaluations together; different values of one annotation are joined by commas."""
    annotations: dict[str, list[str]] = {}
    for part in parts:
        for key, value in part.audit_annotations.items():
            if value not in annotations.setdefault(key, []):
                annotations[key].append(value)
    return PolicyDecision(
        matched=any(part.matched for part in parts),
        decisions=tuple(decision for part in parts for decision in part.decisions),
        audit_annotations={key: ", ".join(values) for key, values in annotations.items()},
    )
