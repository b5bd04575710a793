"""Which requests a policy or binding is about.

Source: kubernetes `staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go` and
`.../plugin/webhook/predicates/`.
"""

from collections.abc import Mapping

from policies.admission.documents import MatchResources, Requirement, Rule, Selector
from policies.admission.requests import Admission, labels_of

_ALL = "*"


class OtherVersionError(ValueError):
    """The rule wants the object in another version of its API, and there is no conversion here."""


def matches(constraints: MatchResources, admission: Admission, *, rules_needed: bool) -> bool:
    """Tell whether a request is meant.

    Args:
        constraints: rules and selectors.
        admission: the request.
        rules_needed: whether no rules mean no request (a policy) or all of them (a binding).

    Raises:
        OtherVersionError: all fits but the version, and matchPolicy is Equivalent.
    """
    if not (_in_namespace(constraints.namespace_selector, admission) and _labelled(constraints, admission)):
        return False
    exact = constraints.match_policy == "Exact"
    if any(_applies(rule, admission, any_version=not exact) for rule in constraints.exclude_resource_rules):
        return False
    if not constraints.resource_rules:
        return not rules_needed
    if any(_applies(rule, admission, any_version=False) for rule in constraints.resource_rules):
        return True
    for rule in constraints.resource_rules:
        if not exact and _applies(rule, admission, any_version=True):
            versions = " or ".join(rule.api_versions)
            raise OtherVersionError(
                f'must be in version {versions} to be evaluated, got "{admission.resource.version}"'
            )
    return False


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Tell whether a label selector selects."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _meets(requirement, labels) for requirement in selector.match_expressions
    )


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values


def _in_namespace(selector: Selector, admission: Admission) -> bool:
    if selector == Selector():
        return True
    if admission.kind.kind == "Namespace" and not admission.kind.group:
        return selects(selector, labels_of(admission.content or admission.old))
    return not admission.namespace or selects(selector, admission.namespace_labels)


def _labelled(constraints: MatchResources, admission: Admission) -> bool:
    selector = constraints.object_selector
    if selector == Selector():
        return True
    objects = (admission.content, admission.old)
    return any(content is not None and selects(selector, labels_of(content)) for content in objects)


def _applies(rule: Rule, admission: Admission, *, any_version: bool) -> bool:
    resource = admission.resource
    return (
        _among(admission.operation, rule.operations)
        and _among(resource.group, rule.api_groups)
        and (any_version or _among(resource.version, rule.api_versions))
        and any(_names(pattern, admission) for pattern in rule.resources)
        and (not rule.resource_names or admission.name in rule.resource_names)
        and (rule.scope == _ALL or (rule.scope == "Namespaced") == _is_namespaced(admission))
    )


def _among(value: str, wanted: tuple[str, ...]) -> bool:
    return _ALL in wanted or value in wanted


def _is_namespaced(admission: Admission) -> bool:
    # A Namespace is cluster-scoped, though its requests name it as their namespace.
    return bool(admission.namespace) and not (admission.kind.kind == "Namespace" and not admission.kind.group)


def _names(pattern: str, admission: Admission) -> bool:
    resource, _, subresource = pattern.partition("/")
    if resource not in (_ALL, admission.resource.resource):
        return False
    if pattern == "*/*":
        return True
    return subresource in (_ALL, admission.subresource) if subresource else not admission.subresource
