"""Workload and Pod of Kubernetes 1.35: the pod names a Workload and one group in it."""

from typing import Final

from policies.native.fields import (
    CONTROLLER_REF,
    COUNT,
    FIXED,
    MOST_TEMPLATES,
    SET_ONCE,
    Schema,
    also,
    basic_or_gang,
    items_by,
    kind,
    plain,
    struct,
)
from policies.targets import GENERIC_WORKLOAD

_POLICY: Final = basic_or_gang(struct({"minCount": COUNT}, x_needed=["minCount"]))

WORKLOAD: Final = kind(
    struct(
        {
            "controllerRef": also(CONTROLLER_REF, x_update=SET_ONCE, x_update_path="controllerRef"),
            "podGroups": items_by(
                "name",
                struct({"name": plain("dns-label"), "policy": _POLICY}, "name"),
                MOST_TEMPLATES,
                x_update=FIXED,
                x_update_path="podGroups",
                x_duplicate_at_key=True,
            ),
        },
        "podGroups",
    )
)

WORKLOAD_REF: Final = struct(
    {
        "name": {"type": "string", "format": "dns-subdomain"},
        "podGroup": {"type": "string", "format": "dns-label"},
        "podGroupReplicaKey": plain("dns-label"),
    },
    x_needed=["name", "podGroup"],
)

POD: Final = kind(
    struct(
        {
            "workloadRef": also(WORKLOAD_REF, x_gate=GENERIC_WORKLOAD, x_update=FIXED, x_update_path="spec"),
            "schedulingGroup": {"x-unknown": True},
        },
        x_open=True,
    ),
)

KINDS: Final[dict[tuple[str, str], Schema]] = {
    ("scheduling.k8s.io/v1alpha1", "Workload"): WORKLOAD,
    ("v1", "Pod"): POD,
}
