"""Reads policies and bindings from text, strictly: what is unknown, contradictory or can't be evaluated is refused."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec

from policies.admission.documents import (
    BINDING,
    POLICY,
    VERSIONS,
    BindingDocument,
    MatchResources,
    PolicyDocument,
    Strict,
)
from policies.admission.errors import BadPolicyError
from policies.admission.policies import CompiledAnnotation, CompiledValidation, Policy
from policies.cel.errors import RefusedError
from policies.cel.expressions import Expression, Scope, compile_expression, compile_variable
from policies.objects import Subject
from policies.reading import Limits, Unreadable, read_objects

MOST_EXPRESSIONS: Final = 200
"""Expressions of one policy, all kinds together."""

_LIMITS: Final = Limits(characters=1 << 20, objects=500, depth=32)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `([^`]*)`")
_PLACE: Final = re.compile(r"(.*) - at `\$\.?([^`]*)`")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_RESERVED: Final = frozenset(
    ["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
     "let", "loop", "package", "namespace", "return", "var", "void", "while"]
)  # fmt: skip
"""Words that CEL keeps for itself."""

_MOST_ANNOTATIONS: Final = 20
_MOST_CONDITIONS: Final = 64

_Compiled = TypeVar("_Compiled")
_Document = TypeVar("_Document", bound=Strict)


def load_policies(text: str, file: str) -> list[Policy]:
    """Read the policies of a text, each with its bindings.

    Args:
        text: YAML or JSON of ValidatingAdmissionPolicies and their bindings, nothing else.
        file: its name, for messages.

    Raises:
        BadPolicyError: with the line.
    """
    return load_policy_files({file: text})


def load_policy_files(texts: Mapping[str, str]) -> list[Policy]:
    """Read policies that stand in several files, by name; see `load_policies`."""
    subjects = [subject for file, text in texts.items() for subject in _subjects(text, file)]
    bindings = [(item, _decoded(item, BindingDocument)) for item in subjects if item.content["kind"] == BINDING]
    documents = [(item, _decoded(item, PolicyDocument)) for item in subjects if item.content["kind"] == POLICY]
    names = [document.metadata.name for _, document in documents]
    for place, binding in bindings:
        _check_binding(place, binding, names)
    for place, document in documents:
        if names.count(document.metadata.name) > 1:
            raise _refused(
                place, "metadata.name", "must be the name of one policy", f'"{document.metadata.name}" twice'
            )
    return [_Loading(place, document, bindings).policy() for place, document in documents]


def _subjects(text: str, file: str) -> list[Subject]:
    try:
        subjects = read_objects(text, file, limits=_LIMITS)
    except Unreadable as error:
        raise BadPolicyError(error.file, error.line, error.problem) from error
    for subject in subjects:
        if subject.content.get("apiVersion") not in VERSIONS:
            raise _refused(subject, "apiVersion", f"must be {VERSIONS[0]}", f'"{subject.content.get("apiVersion")}"')
        if subject.content.get("kind") not in (POLICY, BINDING):
            raise _refused(subject, "kind", f"must be {POLICY} or {BINDING}", f'"{subject.content.get("kind")}"')
    return subjects


def _decoded(subject: Subject, kind: type[_Document]) -> _Document:
    try:
        return msgspec.convert(subject.content, kind)
    except msgspec.ValidationError as error:
        raise _misshapen(subject, str(error)) from error


def _misshapen(subject: Subject, message: str) -> BadPolicyError:
    """Turn a decoder's words, `... - at `$.spec.x[0]``, into ours."""
    found = _PLACE.fullmatch(message)
    problem, path = (message, "") if found is None else found.groups()
    if unknown := _UNKNOWN.match(problem):
        field = f"{path}.{unknown[1]}".strip(".")
        return _refused(subject, field, "must be a field of the API", f'"{unknown[1]}"')
    return _refused(subject, path or "metadata", "must have the shape of the API", problem[0].lower() + problem[1:])


def _refused(subject: Subject, path: str, rule: str, got: str) -> BadPolicyError:
    place = subject.source_of(path) or subject.source
    assert place is not None  # noqa: S101 - read from a text
    return BadPolicyError(place.file, place.line, f"{path}: {rule}, got {got}")


def _check_binding(place: Subject, binding: BindingDocument, names: list[str]) -> None:
    spec = binding.spec
    if not _NAME.fullmatch(binding.metadata.name):
        raise _refused(place, "metadata.name", "must be a DNS name", f'"{binding.metadata.name}"')
    if spec.policy_name not in names:
        raise _refused(place, "spec.policyName", "must name a policy that is given", f'"{spec.policy_name}"')
    actions = spec.validation_actions
    if not actions or len(set(actions)) < len(actions) or {"Deny", "Warn"} <= set(actions):
        rule = "must name actions once each, and not Deny together with Warn"
        raise _refused(place, "spec.validationActions", rule, ", ".join(actions) or "none")
    if spec.param_ref and bool(spec.param_ref.name) == (spec.param_ref.selector is not None):
        raise _refused(place, "spec.paramRef", "must have one of name and selector", "both or none")
    if spec.match_resources:
        _check_rules(place, "spec.matchResources", spec.match_resources)


def _check_rules(place: Subject, path: str, constraints: MatchResources) -> None:
    for field, rules in (
        ("resourceRules", constraints.resource_rules),
        ("excludeResourceRules", constraints.exclude_resource_rules),
    ):
        for index, rule in enumerate(rules):
            where = f"{path}.{field}[{index}]"
            if not (rule.api_groups and rule.api_versions and rule.operations and rule.resources):
                raise _refused(place, where, "must name groups, versions, operations and resources", "an empty list")
    for selector, name in (
        (constraints.namespace_selector, "namespaceSelector"),
        (constraints.object_selector, "objectSelector"),
    ):
        for index, item in enumerate(selector.match_expressions):
            if bool(item.values) != (item.operator in ("In", "NotIn")):
                where = f"{path}.{name}.matchExpressions[{index}]"
                raise _refused(place, where, "must have values for In and NotIn only", f'"{item.operator}"')


class _Loading:
    """Loads one policy."""

    def __init__(
        self, place: Subject, document: PolicyDocument, bindings: Iterable[tuple[Subject, BindingDocument]]
    ) -> None:
        self._place, self._document = place, document
        self._bindings = tuple(item for _, item in bindings if item.spec.policy_name == document.metadata.name)
        self._scope = Scope(params=document.spec.param_kind is not None)
        self._expressions: list[Expression] = []

    def policy(self) -> Policy:
        self._check()
        spec = self._document.spec
        conditions = tuple(
            self._compiled(f"spec.matchConditions[{index}].expression", item.expression, ("bool",))
            for index, item in enumerate(spec.match_conditions)
        )
        self._declare_variables()
        validations = tuple(self._validations())
        annotations = tuple(
            CompiledAnnotation(
                item.key,
                self._compiled(
                    f"spec.auditAnnotations[{index}].valueExpression", item.value_expression, ("string", "null_type")
                ),
            )
            for index, item in enumerate(spec.audit_annotations)
        )
        source = self._place.source
        assert source is not None  # noqa: S101 - read from a text
        return Policy(
            document=self._document,
            file=source.file,
            line=source.line,
            place=self._place,
            conditions=conditions,
            validations=validations,
            annotations=annotations,
            bindings=self._bindings,
            level=max([item.level for item in self._expressions] + [item.level for item in self._scope.variables]),
            foreign=any(item.foreign for item in self._expressions),
        )

    def _declare_variables(self) -> None:
        for index, item in enumerate(self._document.spec.variables):
            compiler = partial(compile_variable, item.name, scope=self._scope)
            variable = self._guarded(f"spec.variables[{index}].expression", item.expression, compiler)
            self._scope = Scope(self._scope.params, (*self._scope.variables, variable))

    def _validations(self) -> Iterable[CompiledValidation]:
        for index, item in enumerate(self._document.spec.validations):
            path = f"spec.validations[{index}]"
            expression = self._compiled(f"{path}.expression", item.expression, ("bool",))
            message = None
            if item.message_expression:
                message = self._compiled(f"{path}.messageExpression", item.message_expression, ("string",))
            yield CompiledValidation(expression, item.message.strip(), message, item.reason)

    def _compiled(self, path: str, text: str, results: tuple[str, ...]) -> Expression:
        compiled = self._guarded(path, text, partial(compile_expression, scope=self._scope, results=results))
        self._expressions.append(compiled)
        return compiled

    def _guarded(self, path: str, text: str, compiler: Callable[[str], _Compiled]) -> _Compiled:
        try:
            return compiler(text)
        except RefusedError as error:
            place = self._place.source_of(path)
            assert place is not None  # noqa: S101 - read from a text
            line = place.line + text.count("\n", 0, error.offset)
            raise BadPolicyError(place.file, line, f"{path}: {error.problem}") from error

    def _check(self) -> None:
        spec, place = self._document.spec, self._place
        if not _NAME.fullmatch(self._document.metadata.name):
            raise _refused(place, "metadata.name", "must be a DNS name", f'"{self._document.metadata.name}"')
        if not spec.match_constraints.resource_rules:
            raise _refused(place, "spec.matchConstraints", "must have resourceRules", "none")
        _check_rules(place, "spec.matchConstraints", spec.match_constraints)
        if not spec.validations and not spec.audit_annotations:
            raise _refused(place, "spec", "must have validations or auditAnnotations", "neither")
        expressions = (
            2 * len(spec.validations) + len(spec.audit_annotations) + len(spec.match_conditions) + len(spec.variables)
        )
        if (
            expressions > MOST_EXPRESSIONS
            or len(spec.audit_annotations) > _MOST_ANNOTATIONS
            or len(spec.match_conditions) > _MOST_CONDITIONS
        ):
            raise _refused(place, "spec", f"must have at most {MOST_EXPRESSIONS} expressions", str(expressions))
        self._check_names()
        for index, item in enumerate(spec.validations):
            if "\n" in item.message.strip():
                raise _refused(place, f"spec.validations[{index}].message", "must be one line", "several")

    def _check_names(self) -> None:
        spec = self._document.spec
        named: tuple[tuple[str, list[str], re.Pattern[str]], ...] = (
            ("spec.variables", [item.name for item in spec.variables], _IDENTIFIER),
            ("spec.matchConditions", [item.name for item in spec.match_conditions], _QUALIFIED),
            ("spec.auditAnnotations", [item.key for item in spec.audit_annotations], _QUALIFIED),
        )
        for path, names, shape in named:
            for index, name in enumerate(names):
                field = "key" if path.endswith("Annotations") else "name"
                if name in names[:index] or not shape.fullmatch(name) or (shape is _IDENTIFIER and name in _RESERVED):
                    raise _refused(self._place, f"{path}[{index}].{field}", "must be a name of its own", f'"{name}"')
