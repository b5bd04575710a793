"""Finds what is wrong with a policy though the API server takes it, or what an older API server would not take."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from policies.admission.documents import ParamKind, Rule
from policies.admission.policies import Policy
from policies.findings import ERROR, WARNING, Severity
from policies.targets import Target

STABLE: Final = 30
"""The minor version in which ValidatingAdmissionPolicy became `v1`; it was on by default from then on."""

DEEP: Final = 24
"""Levels of an expression; other engines, ours too, stop at 32."""

ALWAYS_THERE: Final = frozenset({"resources", "status", "metadata", "spec"})
"""Fields that the API server's own types always write, empty or not: `has()` is true there, and false of a manifest."""

_VERSION: Final = re.compile(r"v?1\.(\d{1,3})(?:[.-].*)?")
_NESTED: Final = re.compile(r"\((?:[^()\\]|\\.)*[*+](?:[^()\\]|\\.)*\)(?:[*+]|\{\d+,)")


class Problem(msgspec.Struct, frozen=True):
    """One thing to look at.

    Attributes:
        file: of the policy.
        line: of the field.
        severity: an error is one on the API server of the target.
        path: the field.
        message: `<field path>: must ..., got ...`.
    """

    file: str
    line: int
    severity: Severity
    path: str
    message: str


class BadVersionError(ValueError):
    """A text that is no version of Kubernetes; the message is `version: must ..., got ...`."""


def lint(policies: Iterable[Policy], target: Target | str) -> tuple[Problem, ...]:
    """Look at policies.

    Args:
        policies: loaded ones, which can be evaluated.
        target: the API server that they are meant for, or its version, which may be older: `1.37`, `v1.30.4`.

    Raises:
        BadVersionError: it is no version.
    """
    minor = minor_of(target if isinstance(target, str) else target.version)
    found = [problem for policy in policies for problem in _problems(policy, minor)]
    return tuple(sorted(found, key=lambda problem: (problem.file, problem.line, problem.path, problem.message)))


def minor_of(version: str) -> int:
    """Read the minor version.

    Raises:
        BadVersionError: it is no version.
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        raise BadVersionError(f'version: must be a version such as 1.37, got "{version[:40]}"')
    return int(found[1])


def _problems(policy: Policy, minor: int) -> Iterator[Problem]:
    yield from _versions(policy, minor)
    yield from _bindings(policy)
    yield from _params(policy)
    yield from _scope(policy)
    yield from _expressions(policy)


def _versions(policy: Policy, minor: int) -> Iterator[Problem]:
    if minor < STABLE and policy.document.api_version.endswith("/v1"):
        yield _problem(
            policy, ERROR, "apiVersion", f"must be served by Kubernetes 1.{minor}", f'"v1", which 1.{STABLE} brought'
        )
    # An API server takes new policies only with what the version before it knew, so that it can be rolled back.
    known = minor - 1
    for path, expression in policy.expressions:
        if expression.level > known:
            rule = f"must use functions that Kubernetes 1.{known} has, as 1.{minor} takes no others"
            yield _problem(policy, ERROR, path, rule, f"one of 1.{expression.level}")


def _bindings(policy: Policy) -> Iterator[Problem]:
    if not policy.bindings:
        yield _problem(policy, WARNING, "metadata.name", "must have a binding to do anything", "none")
    for index, validation in enumerate(policy.document.spec.validations):
        if not validation.message and not validation.message_expression:
            path = f"spec.validations[{index}]"
            yield _problem(policy, WARNING, path, "must have a message that people understand", "none")
    for binding in policy.bindings:
        path = f'binding "{binding.metadata.name}"'
        if policy.param_kind is not None and binding.spec.param_ref is None:
            yield _problem(policy, WARNING, path, "must name params, or the policy sees null", "no paramRef")
        if policy.param_kind is None and binding.spec.param_ref is not None:
            yield _problem(policy, WARNING, path, "must have no paramRef without a paramKind", "one, which is ignored")


def _params(policy: Policy) -> Iterator[Problem]:
    kind = policy.param_kind
    if kind is None:
        return
    if policy.failure_policy == "Fail" and not _built_in(kind):
        rule = "must be Ignore with a custom paramKind: while that is not served, every matching request is refused"
        yield _problem(policy, WARNING, "spec.failurePolicy", rule, '"Fail"')
    for binding in policy.bindings:
        ref = binding.spec.param_ref
        path = f'binding "{binding.metadata.name}"'
        if ref and ref.parameter_not_found_action == "Deny":
            rule = "must be sure of its params: without them every matching request is refused"
            yield _problem(policy, WARNING, path, rule, 'parameterNotFoundAction "Deny"')
        if ref and ref.selector is not None:
            rule = "must name one object: the policy is evaluated for every one that is selected"
            yield _problem(policy, WARNING, path, rule, "a selector")


def _built_in(kind: ParamKind) -> bool:
    group = kind.api_version.rpartition("/")[0]
    return not group or "." not in group or group.endswith(".k8s.io")


def _scope(policy: Policy) -> Iterator[Problem]:
    constraints = policy.document.spec.match_constraints
    spared = any("kube-system" in item.values for item in constraints.namespace_selector.match_expressions)
    core = any("pods" in rule.resources or "*" in rule.resources for rule in constraints.resource_rules)
    if policy.failure_policy == "Fail" and core and not spared:
        rule = "must leave out kube-system, whose pods repair the cluster"
        yield _problem(policy, WARNING, "spec.matchConstraints.namespaceSelector", rule, "no such selector")
    if constraints.match_policy == "Equivalent":
        for index, rule_ in enumerate(constraints.resource_rules):
            if _one_version_of_many(rule_):
                path = f"spec.matchConstraints.resourceRules[{index}].apiVersions"
                rule = 'must be "*" or have matchPolicy Exact: nothing but the API server converts to another version'
                yield _problem(policy, WARNING, path, rule, ", ".join(rule_.api_versions))


def _one_version_of_many(rule: Rule) -> bool:
    return "*" not in rule.api_versions and any(group not in ("", "apps", "batch") for group in rule.api_groups)


def _expressions(policy: Policy) -> Iterator[Problem]:
    for path, expression in policy.expressions:
        if expression.depth > DEEP:
            yield _problem(policy, WARNING, path, f"must be at most {DEEP} levels deep", str(expression.depth))
        for field in sorted(expression.tested & ALWAYS_THERE):
            rule = "must not ask has() for a field that the API server always writes"
            yield _problem(policy, WARNING, path, rule, f'"{field}"')
        for pattern in expression.patterns:
            if _NESTED.search(pattern):
                rule = "must have no repetition within a repetition, which takes some engines forever"
                yield _problem(policy, WARNING, path, rule, f'"{pattern}"')


def _problem(policy: Policy, severity: Severity, path: str, rule: str, got: str) -> Problem:
    source = policy.place.source_of(path)
    line = policy.line if source is None else source.line
    return Problem(policy.file, line, severity, path, f"{path}: {rule}, got {got}")


def failed(problems: Sequence[Problem]) -> bool:
    """Tell whether one of them is an error."""
    return any(problem.severity == ERROR for problem in problems)
