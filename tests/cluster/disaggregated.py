"""DisaggregatedSets in a test: the kind, and the LeaderWorkerSets that LWS's controller (after 0.8) makes of one.

Source: kubernetes-sigs/lws `pkg/controllers/disaggregatedset/lws_manager.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cluster.lws import lws_manifest
from tests.cluster.resources import LEADER_WORKER_SETS, Json, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.control_plane import ControlPlane

GROUP = "disaggregatedset.x-k8s.io"
DISAGGREGATED_SETS = Resource(f"{GROUP}/v1", "disaggregatedsets", "DisaggregatedSet")
COMPOSITES = Resource("scheduling.k8s.io/v1alpha3", "compositepodgroups", "CompositePodGroup")
REVISION = "5f6c7d8"

_SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"disaggregatedsets.{GROUP}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/lws"},
    },
    "spec": {
        "group": GROUP,
        "names": {
            "kind": "DisaggregatedSet",
            "listKind": "DisaggregatedSetList",
            "plural": "disaggregatedsets",
            "singular": "disaggregatedset",
        },
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": _SCHEMA}],
    },
}
"""The kind without its schema, which repeats the whole pod template."""


def create_set(plane: ControlPlane, name: str, roles: Mapping[str, int], size: int = 2) -> Json:
    """Create a DisaggregatedSet of roles with so many replicas each, all of one size."""
    listed = [{"name": role, "spec": _spec(replicas, size)} for role, replicas in roles.items()]
    return plane.api.create(DISAGGREGATED_SETS, DISAGGREGATED_SETS.make(name, spec={"roles": listed}))


def create_role(plane: ControlPlane, owner: Json, role: str) -> Json:
    """Create the LeaderWorkerSet of one role: labelled, on its pods too, and controlled by the set."""
    name = owner["metadata"]["name"]
    (spec,) = [one["spec"] for one in owner["spec"]["roles"] if one["name"] == role]
    labels = {
        f"{GROUP}/name": name,
        f"{GROUP}/role": role,
        f"{GROUP}/slice": "0",
        f"{GROUP}/revision": REVISION,
    }
    size = spec["leaderWorkerTemplate"]["size"]
    manifest = lws_manifest(f"{name}-{role}", spec["replicas"], size, labels=labels, pod_metadata={"labels": labels})
    controller = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "DisaggregatedSet", **controller, "controller": True}
    manifest["metadata"]["ownerReferences"] = [reference]
    return plane.api.create(LEADER_WORKER_SETS, manifest)


def _spec(replicas: int, size: int) -> dict[str, Any]:
    return dict(lws_manifest("any", replicas, size)["spec"])
