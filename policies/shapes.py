"""The parts of Kubernetes objects that the rules across objects read: typed, everything else skipped.

Sources: kubernetes/api `core/v1/types.go`, `apps/v1/types.go`; kubernetes-sigs/lws `api/leaderworkerset/v1`.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from gangs import keys
from gangs.resources import PodResources, PodStatusResources
from schedulers.contract import Stamp

Texts: TypeAlias = Mapping[str, str]

POD: Final = "Pod"
STATEFUL_SET: Final = "StatefulSet.apps"
LEADER_WORKER_SET: Final = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
WORKLOAD: Final = "Workload.scheduling.k8s.io"
NAMESPACE: Final = "Namespace"
PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
LOCAL_QUEUE: Final = "LocalQueue.kueue.x-k8s.io"
CRD: Final = "CustomResourceDefinition.apiextensions.k8s.io"
POD_GROUP: Final = "PodGroup"
"""Kind of the group objects; the API group tells whose."""

FINISHED: Final = ("Succeeded", "Failed")
DEFAULT_SCHEDULER: Final = "default-scheduler"


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`metadata` of any object."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


class Thing(msgspec.Struct, frozen=True, gc=False):
    """Any object: its metadata."""

    metadata: Metadata = Metadata()

    @property
    def labels(self) -> Texts:
        """`metadata.labels`, empty for none."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> Texts:
        """`metadata.annotations`, empty for none."""
        return self.metadata.annotations or {}

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.schedulingGroup` of a pod."""

    pod_group_name: str | None = None


class WorkloadRef(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.workloadRef` of a pod of Kubernetes 1.35."""

    name: str = ""
    pod_group: str = ""


class PodSpec(PodResources, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What is read of a PodSpec."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None


class PodStatus(PodStatusResources, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What is read of a PodStatus."""

    phase: str = ""


class Pod(Thing, frozen=True, gc=False, kw_only=True):
    """A pod, or a pod template; `schedulers.contract.PodFacts` and `gangs.resources.HasResources` in one."""

    spec: PodSpec = PodSpec()
    status: PodStatus | None = None

    @property
    def scheduling_group(self) -> str | None:
        """`spec.schedulingGroup.podGroupName`."""
        return None if self.spec.scheduling_group is None else self.spec.scheduling_group.pod_group_name

    @property
    def workload_ref(self) -> str | None:
        """`spec.workloadRef.name`."""
        return None if self.spec.workload_ref is None else self.spec.workload_ref.name

    @property
    def scheduler(self) -> str:
        """`spec.schedulerName` with its default."""
        return self.spec.scheduler_name or DEFAULT_SCHEDULER

    @property
    def lws(self) -> str | None:
        """Name of its LeaderWorkerSet."""
        return self.labels.get(keys.LWS_NAME)

    @property
    def leads(self) -> bool:
        """Whether it is the leader of a replica."""
        return self.lws is not None and keys.LEADER_NAME not in self.annotations

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.status is not None and self.status.phase in FINISHED


def stamped(stamp: Stamp) -> Pod:
    """Give a pod that carries a stamp and nothing else."""
    group = None if stamp.scheduling_group is None else SchedulingGroup(stamp.scheduling_group)
    ref = stamp.workload_ref
    workload = None if ref is None else WorkloadRef(ref.name, ref.pod_group)
    metadata = Metadata(labels=dict(stamp.labels), annotations=dict(stamp.annotations))
    return Pod(metadata=metadata, spec=PodSpec(scheduling_group=group, workload_ref=workload))


class StatefulSetSpec(msgspec.Struct, frozen=True, gc=False):
    """What is read of a StatefulSet's spec."""

    replicas: int | None = None
    template: Pod = Pod()


class StatefulSet(Thing, frozen=True, gc=False):
    """A StatefulSet: the workers of one replica, or all leaders of an LWS."""

    spec: StatefulSetSpec = StatefulSetSpec()


class SubGroupPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`subGroupPolicy` of an LWS."""

    sub_group_size: int | None = None


class LeaderWorkerTemplate(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.leaderWorkerTemplate` of an LWS."""

    worker_template: Pod = Pod()
    leader_template: Pod | None = None
    size: int | None = None
    sub_group_policy: SubGroupPolicy | None = None


class RollingUpdate(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`rolloutStrategy.rollingUpdateConfiguration` of an LWS."""

    max_surge: int | str | None = None


class RolloutStrategy(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.rolloutStrategy` of an LWS."""

    rolling_update_configuration: RollingUpdate | None = None


class LeaderWorkerSetSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of an LWS's spec."""

    replicas: int | None = None
    startup_policy: str | None = None
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    rollout_strategy: RolloutStrategy | None = None
    scheduling: dict[str, Any] | None = None


class LeaderWorkerSet(Thing, frozen=True, gc=False):
    """A LeaderWorkerSet."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()

    @property
    def size(self) -> int:
        """Pods of one replica."""
        size = self.spec.leader_worker_template.size
        return 1 if size is None else size

    @property
    def templates(self) -> dict[str, Pod]:
        """Field path -> template, the workers' first; a leader without one of its own is made from the workers'."""
        template = self.spec.leader_worker_template
        found = {f"{TEMPLATES}.workerTemplate": template.worker_template}
        if template.leader_template is not None:
            found[f"{TEMPLATES}.leaderTemplate"] = template.leader_template
        return found

    @property
    def leader_template(self) -> Pod:
        """The template that leaders are made from."""
        return self.spec.leader_worker_template.leader_template or self.spec.leader_worker_template.worker_template


TEMPLATES: Final = "spec.leaderWorkerTemplate"


class Group(Thing, frozen=True, gc=False):
    """A group object of any scheduler, or a Workload; its spec as plain values."""

    spec: dict[str, Any] = {}


class PriorityClass(Thing, frozen=True, gc=False, rename="camel"):
    """A PriorityClass."""

    value: int = 0
    global_default: bool | None = None


SHAPES: Final[Mapping[str, type[Thing]]] = {
    POD: Pod,
    STATEFUL_SET: StatefulSet,
    LEADER_WORKER_SET: LeaderWorkerSet,
    WORKLOAD: Group,
    PRIORITY_CLASS: PriorityClass,
}


def shape_of(kind: str) -> type[Thing]:
    """Give the struct of a kind."""
    if kind.startswith(f"{POD_GROUP}."):
        return Group
    return SHAPES.get(kind, Thing)
