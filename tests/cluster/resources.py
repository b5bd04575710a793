"""The kinds that tests ask for and their paths on the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]
"""An object as the API server writes it."""


@dataclass(frozen=True)
class Resource:
    """One resource: group and version (`v1` alone for the core group), plural, kind."""

    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def collection(self, namespace: str | None = None) -> str:
        """Path of the collection, of one namespace or of all."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        inside = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}"

    def item(self, name: str, namespace: str = "default", subresource: str = "") -> str:
        """Path of one object, or of a subresource of it."""
        return f"{self.collection(namespace)}/{quote(name)}{'/' if subresource else ''}{subresource}"

    def make(self, name: str, namespace: str = "default", **rest: Any) -> Json:
        """An object with type and name filled in; `metadata` of `rest` is merged."""
        where = {"namespace": namespace} if self.namespaced else {}
        metadata = {"name": name, **where, **rest.pop("metadata", {})}
        return {"apiVersion": self.version, "kind": self.kind, "metadata": metadata, **rest}


PODS = Resource("v1", "pods", "Pod")
NODES = Resource("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
SERVICE_ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
EVENTS = Resource("v1", "events", "Event")
SECRETS = Resource("v1", "secrets", "Secret")
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMap")
STATEFUL_SETS = Resource("apps/v1", "statefulsets", "StatefulSet")
CONTROLLER_REVISIONS = Resource("apps/v1", "controllerrevisions", "ControllerRevision")
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False)
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet")
NATIVE_GROUPS = Resource("scheduling.k8s.io/v1beta1", "podgroups", "PodGroup")
COSCHEDULING_GROUPS = Resource("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup")
KOORDINATOR_GROUPS = Resource("scheduling.sigs.k8s.io/v1alpha1", "podgroups", "PodGroup")
KAI_GROUPS = Resource("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup")
KAI_TOPOLOGIES = Resource("kai.scheduler/v1alpha1", "topologies", "Topology", namespaced=False)
KAI_QUEUES = Resource("scheduling.run.ai/v2", "queues", "Queue", namespaced=False)
VOLCANO_GROUPS = Resource("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup")
VOLCANO_QUEUES = Resource("scheduling.volcano.sh/v1beta1", "queues", "Queue", namespaced=False)
CUSTOM_RESOURCES = Resource(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ACCESS_REVIEWS = Resource("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
