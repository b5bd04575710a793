"""Workload, PodGroup and Pod of Kubernetes 1.36: the pod names a PodGroup, nothing about it can be changed."""

from typing import Final

from policies.native.fields import (
    CLAIM_STATUSES,
    CLAIMS_LIST,
    CONDITIONS,
    CONSTRAINTS,
    CONTROLLER_REF,
    COUNT,
    FIXED,
    MOST_TEMPLATES,
    PRIORITY,
    Schema,
    also,
    basic_or_gang,
    items_by,
    kind,
    plain,
    pointer,
    struct,
    union,
)
from policies.targets import CLAIMS, GENERIC_WORKLOAD, PREEMPTION, TOPOLOGY

_MODE: Final[Schema] = {"type": "string", "enum": ["Pod", "PodGroup"]}

_SHARED: Final[Schema] = {
    "schedulingPolicy": basic_or_gang(struct({"minCount": COUNT}, "minCount")),
    "schedulingConstraints": also(CONSTRAINTS, x_gate=TOPOLOGY),
    "resourceClaims": also(CLAIMS_LIST, x_gate=CLAIMS),
    "disruptionMode": also(_MODE, x_gate=PREEMPTION),
    "priorityClassName": also(plain("dns-subdomain"), x_gate=PREEMPTION),
    "priority": also(PRIORITY, x_gate=PREEMPTION),
}
"""Fields that a template and a PodGroup have in common."""

_TEMPLATE_REF: Final = union(
    {
        "workload": struct(
            {"workloadName": plain("dns-subdomain"), "podGroupTemplateName": plain("dns-label")},
            "workloadName",
            "podGroupTemplateName",
        )
    }
)

WORKLOAD: Final = kind(
    struct(
        {
            "controllerRef": also(CONTROLLER_REF, x_update=FIXED),
            "podGroupTemplates": items_by(
                "name", struct({"name": plain("dns-label"), **_SHARED}, "name"), MOST_TEMPLATES, x_update=FIXED
            ),
        },
        "podGroupTemplates",
    )
)

POD_GROUP: Final = kind(
    struct(
        {
            "podGroupTemplateRef": also(_TEMPLATE_REF, x_update=FIXED),
            **{name: also(schema, x_update=FIXED) for name, schema in _SHARED.items()},
            "disruptionMode": {**_MODE, "x-gate": PREEMPTION, "x-update": FIXED, "default": "Pod"},
        }
    ),
    struct({"conditions": CONDITIONS, "resourceClaimStatuses": also(CLAIM_STATUSES, x_gate=CLAIMS)}),
)

SCHEDULING_GROUP: Final = struct({"podGroupName": pointer("dns-subdomain")}, x_needed=["podGroupName"])

POD: Final = kind(
    struct(
        {
            "schedulingGroup": also(SCHEDULING_GROUP, x_gate=GENERIC_WORKLOAD, x_update=FIXED, x_update_path="spec"),
            "workloadRef": {"x-unknown": True},
        },
        x_open=True,
    ),
)

KINDS: Final[dict[tuple[str, str], Schema]] = {
    ("scheduling.k8s.io/v1alpha2", "Workload"): WORKLOAD,
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): POD_GROUP,
    ("v1", "Pod"): POD,
}
