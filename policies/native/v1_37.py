"""Workload, PodGroup, CompositePodGroup and Pod of Kubernetes 1.37, and what 1.38-alpha changes in them."""

from typing import Final

from policies.native.fields import (
    CLAIM_STATUSES,
    CLAIMS_LIST,
    CONDITIONS,
    CONSTRAINTS,
    CONTROLLER_REF,
    COUNT,
    EMPTY,
    FIXED,
    MOST_TEMPLATES,
    NO_SET_NO_UNSET,
    PRIORITY,
    SAME_ITEMS,
    Schema,
    also,
    items_by,
    kind,
    plain,
    pointer,
    struct,
    union,
)
from policies.native.v1_36 import SCHEDULING_GROUP
from policies.targets import CLAIMS, COMPOSITE, EVICTION, GENERIC_WORKLOAD, PREEMPTION_POLICY, TOPOLOGY

_COMPOSITE: Final = "CompositePodGroupTemplate"
_SINGLE: Final[Schema] = {"single": {}}
_MODE: Final = union({"single": EMPTY, "all": EMPTY})
_PREEMPTION: Final[Schema] = {"type": "string", "enum": ["Never", "PreemptLowerPriority"], "x-gate": PREEMPTION_POLICY}


def _policy(count: str) -> Schema:
    """Scheduling policy: its kind is fixed, the count of a gang is not."""
    gang = struct({count: COUNT}, count, x_update=NO_SET_NO_UNSET)
    return union({"basic": also(EMPTY, x_update=FIXED), "gang": gang}, x_plain=True)


_POLICY: Final = _policy("minCount")
_COMPOSITE_POLICY: Final = _policy("minGroupCount")

_SHARED: Final[Schema] = {
    "schedulingConstraints": also(CONSTRAINTS, x_gate=TOPOLOGY, x_update=FIXED),
    "resourceClaims": also(CLAIMS_LIST, x_gate=CLAIMS, x_update=FIXED),
    "disruptionMode": also(_MODE, x_update=FIXED),
    "priorityClassName": also(plain("dns-subdomain"), x_update=FIXED),
    "priority": also(PRIORITY, x_update=FIXED),
    "preemptionPolicy": also(_PREEMPTION, x_update=FIXED),
}
"""Fields that a template and a PodGroup have in common."""

_COMPOSITE_SHARED: Final[Schema] = {
    **{name: schema for name, schema in _SHARED.items() if name != "resourceClaims"},
    "schedulingConstraints": also(CONSTRAINTS, x_update=FIXED),
}

_TEMPLATES: Final = items_by(
    "name",
    struct({"name": plain("dns-label"), "schedulingPolicy": _POLICY, **_SHARED}, "name"),
    MOST_TEMPLATES,
    x_update=SAME_ITEMS,
)
_COMPOSITES: Final = items_by(
    "name", {"$ref": f"#/$defs/{_COMPOSITE}"}, MOST_TEMPLATES, x_update=SAME_ITEMS, x_gate=COMPOSITE
)
_LISTS: Final[Schema] = {"podGroupTemplates": _TEMPLATES, "compositePodGroupTemplates": _COMPOSITES}

_REF: Final = struct(
    {"workloadName": plain("dns-subdomain"), "templateName": plain("dns-label")},
    "workloadName",
    "templateName",
    x_update=FIXED,
)
_PARENT: Final = also(pointer("dns-subdomain"), x_update=FIXED)

_DEFAULTED: Final[Schema] = {
    "disruptionMode": also(_MODE, x_update=FIXED, default=_SINGLE),
    "preemptionPolicy": also(
        _PREEMPTION, x_update=FIXED, default="PreemptLowerPriority", x_default_gate=PREEMPTION_POLICY
    ),
}
"""Fields that are filled in on groups, though not on templates."""

WORKLOAD: Final = kind(
    {
        **struct({"controllerRef": also(CONTROLLER_REF, x_update=FIXED), **_LISTS}),
        "x-union": list(_LISTS),
    },
    **{
        _COMPOSITE: struct(
            {"name": plain("dns-label"), "schedulingPolicy": _COMPOSITE_POLICY, **_COMPOSITE_SHARED, **_LISTS}, "name"
        )
    },
)

POD_GROUP: Final = kind(
    {
        **struct(
            {
                "parentCompositePodGroupName": also(_PARENT, x_gate=COMPOSITE),
                "workloadRef": _REF,
                "schedulingPolicy": _POLICY,
                **_SHARED,
                **_DEFAULTED,
            }
        ),
        "dependentRequired": {"parentCompositePodGroupName": ["workloadRef"]},
    },
    struct({"conditions": CONDITIONS, "resourceClaimStatuses": also(CLAIM_STATUSES, x_gate=CLAIMS)}),
)


def _composite_group(policy: Schema) -> Schema:
    properties = {
        "parentCompositePodGroupName": _PARENT,
        "workloadRef": _REF,
        "schedulingPolicy": policy,
        **_COMPOSITE_SHARED,
        **_DEFAULTED,
    }
    return kind(struct(properties, "workloadRef"), struct({"conditions": CONDITIONS}))


POD: Final = kind(
    struct(
        {
            "schedulingGroup": also(SCHEDULING_GROUP, x_gate=GENERIC_WORKLOAD, x_update=FIXED, x_update_path="spec"),
            "evictionResponders": {"type": "array", "x-gate": EVICTION},
            "workloadRef": {"x-unknown": True},
        },
        x_open=True,
    )
)

_SERVED: Final[dict[tuple[str, str], Schema]] = {
    ("scheduling.k8s.io/v1beta1", "Workload"): WORKLOAD,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): POD_GROUP,
    ("scheduling.k8s.io/v1alpha3", "Workload"): WORKLOAD,
    ("scheduling.k8s.io/v1alpha3", "PodGroup"): POD_GROUP,
    ("v1", "Pod"): POD,
}
_COMPOSITE_GROUP: Final = ("scheduling.k8s.io/v1alpha3", "CompositePodGroup")

KINDS: Final = {**_SERVED, _COMPOSITE_GROUP: _composite_group(also(_COMPOSITE_POLICY, x_update=FIXED))}

KINDS_138_ALPHA: Final = {**_SERVED, _COMPOSITE_GROUP: _composite_group(_COMPOSITE_POLICY)}
"""From 1.38.0-alpha.1 on minGroupCount can be changed (kubernetes/kubernetes PR 141023)."""
