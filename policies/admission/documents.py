"""The documents of `admissionregistration.k8s.io`, decoded strictly: an unknown field is refused.

Source: kubernetes `staging/src/k8s.io/api/admissionregistration/v1/types.go`.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

GROUP: Final = "admissionregistration.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]
Action: TypeAlias = Literal["Deny", "Warn", "Audit"]
Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]

ACTIONS: Final[tuple[Action, ...]] = ("Deny", "Warn", "Audit")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """The base of all documents."""


class Requirement(Strict, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class Selector(Strict, frozen=True):
    """A label selector; an empty one selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class Rule(Strict, frozen=True):
    """Which operations on which resources."""

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    operations: tuple[Operation, ...]
    resources: tuple[str, ...]
    resource_names: tuple[str, ...] = ()
    scope: Literal["*", "Cluster", "Namespaced"] = "*"


class MatchResources(Strict, frozen=True):
    """`matchConstraints` of a policy, `matchResources` of a binding."""

    namespace_selector: Selector = Selector()
    object_selector: Selector = Selector()
    resource_rules: tuple[Rule, ...] = ()
    exclude_resource_rules: tuple[Rule, ...] = ()
    match_policy: Literal["Exact", "Equivalent"] = "Equivalent"


class ParamKind(Strict, frozen=True):
    """The kind of a policy's parameters."""

    api_version: str
    kind: str


class NamedExpression(Strict, frozen=True):
    """A variable or a match condition."""

    name: str
    expression: str


class Validation(Strict, frozen=True):
    """One validation."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: Literal["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"] = "Invalid"


class AuditAnnotation(Strict, frozen=True):
    """One entry for the audit log."""

    key: str
    value_expression: str


class PolicySpec(Strict, frozen=True):
    """The spec of a ValidatingAdmissionPolicy."""

    match_constraints: MatchResources
    param_kind: ParamKind | None = None
    validations: tuple[Validation, ...] = ()
    failure_policy: FailurePolicy = "Fail"
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    match_conditions: tuple[NamedExpression, ...] = ()
    variables: tuple[NamedExpression, ...] = ()


class ParamRef(Strict, frozen=True):
    """Where a binding finds its parameters."""

    parameter_not_found_action: Literal["Allow", "Deny"]
    name: str = ""
    namespace: str = ""
    selector: Selector | None = None


class BindingSpec(Strict, frozen=True):
    """The spec of a ValidatingAdmissionPolicyBinding."""

    policy_name: str
    validation_actions: tuple[Action, ...]
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class Metadata(Strict, frozen=True):
    """The metadata of a cluster-scoped object, those the API server fills in included."""

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Any, ...] = ()
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: tuple[Any, ...] = ()
    self_link: str = ""
    generate_name: str = ""


class PolicyDocument(Strict, frozen=True):
    """A ValidatingAdmissionPolicy."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: PolicySpec
    status: dict[str, Any] = {}


class BindingDocument(Strict, frozen=True):
    """A ValidatingAdmissionPolicyBinding."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: BindingSpec
