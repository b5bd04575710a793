"""The parts of Kubernetes objects that the reconciler reads: typed, small, everything else skipped.

Sources: kubernetes/api `core/v1/types.go`, `apps/v1/types.go`; kubernetes-sigs/lws `api/leaderworkerset/v1`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gangs import keys
from gangs.resources import PodResources, PodStatusResources

FINISHED: Final = ("Succeeded", "Failed")
POD: Final = "Pod"
STATEFUL_SET: Final = "StatefulSet"


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `metadata.ownerReferences`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`metadata` of any object; times as the API server writes them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)

    def is_controlled_by(self, uid: str) -> bool:
        """Tell whether the object with that UID controls this one; a name alone doesn't say so."""
        owner = self.controller
        return owner is not None and owner.uid == uid


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.schedulingGroup` of a pod."""

    pod_group_name: str | None = None


class WorkloadReference(msgspec.Struct, frozen=True, gc=False):
    """`spec.workloadRef` of a pod of Kubernetes 1.35."""

    name: str | None = None


class PodClaim(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `spec.resourceClaims` of a pod."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(PodResources, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What is read of a PodSpec."""

    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    preemption_policy: str = ""
    scheduling_gates: list[dict[str, str]] | None = None
    resource_claims: list[PodClaim] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, object]] | None = None
    affinity: dict[str, object] | None = None


class PodStatus(PodStatusResources, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What is read of a PodStatus."""

    phase: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A pod; `schedulers.contract.PodFacts` and `gangs.resources.HasResources` in one."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`, empty for none."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """`metadata.annotations`, empty for none."""
        return self.metadata.annotations or {}

    @property
    def scheduling_group(self) -> str | None:
        """`spec.schedulingGroup.podGroupName`."""
        return None if self.spec.scheduling_group is None else self.spec.scheduling_group.pod_group_name

    @property
    def workload_ref(self) -> str | None:
        """`spec.workloadRef.name`."""
        return None if self.spec.workload_ref is None else self.spec.workload_ref.name

    @property
    def bound(self) -> bool:
        """Whether the pod has a node."""
        return bool(self.spec.node_name)

    @property
    def gated(self) -> bool:
        """Whether our scheduling gate holds it."""
        return any(gate.get("name") == keys.GATE for gate in self.spec.scheduling_gates or ())

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.status.phase in FINISHED

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """A pod template."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class StatefulSetSpec(msgspec.Struct, frozen=True, gc=False):
    """What is read of a StatefulSet's spec."""

    replicas: int = 1
    template: PodTemplate = PodTemplate()


class StatefulSet(msgspec.Struct, frozen=True, gc=False):
    """A StatefulSet: the workers of one replica, or all leaders of an LWS."""

    metadata: Metadata = Metadata()
    spec: StatefulSetSpec = StatefulSetSpec()


class LeaderWorkerTemplate(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.leaderWorkerTemplate` of an LWS."""

    worker_template: PodTemplate = PodTemplate()
    leader_template: PodTemplate | None = None
    size: int | None = None


class LeaderWorkerSetSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of an LWS's spec."""

    replicas: int | None = None
    startup_policy: str = ""
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()


class LeaderWorkerSet(msgspec.Struct, frozen=True, gc=False):
    """A LeaderWorkerSet."""

    metadata: Metadata = Metadata()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class RevisionData(msgspec.Struct, frozen=True, gc=False):
    """`data` of an LWS's ControllerRevision: the part of the LWS that makes a revision."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class ControllerRevision(msgspec.Struct, frozen=True, gc=False):
    """One revision of an LWS; StatefulSets have revisions of their own, with other data."""

    metadata: Metadata = Metadata()
    data: msgspec.Raw = msgspec.Raw(b"null")


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """What is read of a node's spec."""

    unschedulable: bool = False
    taints: list[dict[str, str]] | None = None


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """What is read of a node's status."""

    allocatable: dict[str, str] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    metadata: Metadata = Metadata()


class GroupObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A group object of any kind; its spec as plain values."""

    metadata: Metadata = Metadata()
    spec: dict[str, object] = {}
