"""Names of objects as the doctor uses them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]

MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
CLUSTER_ROLE: Final = "ClusterRole"
ROLE: Final = "Role"
CLUSTER_ROLE_BINDING: Final = "ClusterRoleBinding"
ROLE_BINDING: Final = "RoleBinding"
DEPLOYMENT: Final = "Deployment"
NAMESPACE: Final = "Namespace"
SECRET: Final = "Secret"  # noqa: S105 - a kind
CONFIG_MAP: Final = "ConfigMap"
SERVICE: Final = "Service"

WEBHOOK: Final = "lockstep-webhook"
LEAF_SECRET: Final = "lockstep-tls"  # noqa: S105 - a name
LEASE: Final = "lockstep-reconciler"
CONFIGURATION: Final = "lockstep-config"
CONFIGURATION_KEY: Final = "config.yaml"
FINAL_CHECK: Final = "lockstep-final-check"
MUTATING_NAME: Final = "lockstep-mutating"
VALIDATING_NAME: Final = "lockstep-policies"

CLUSTER_SCOPED: Final = frozenset(
    {
        *(MUTATING, VALIDATING, POLICY, BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE),
        *("PriorityClass", "CustomResourceDefinition", "FlowSchema", "PriorityLevelConfiguration"),
    }
)


class Place(NamedTuple):
    """Where an object is; `namespace` is empty for a cluster-scoped one."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Render as `Kind "namespace/name"`."""
        return f'{self.kind} "{self.namespace}/{self.name}"' if self.namespace else f'{self.kind} "{self.name}"'

    @property
    def for_kubectl(self) -> str:
        """Render as arguments of kubectl."""
        where = f"-n {self.namespace} " if self.namespace else ""
        return f"{where}{self.kind.lower()} {self.name}"


def place_of(content: Json) -> Place:
    """Say where an object of a manifest is to be."""
    meta, kind = content["metadata"], str(content["kind"])
    namespace = "" if kind in CLUSTER_SCOPED else str(meta.get("namespace", ""))
    return Place(kind, namespace, str(meta["name"]))
