"""LeaderWorkerSets in a test: a manifest to start from, and where its pods are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.cluster.resources import LEADER_WORKER_SETS, PODS, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.client import Client

NAME_LABEL = "leaderworkerset.sigs.k8s.io/name"
INDEX_LABEL = "leaderworkerset.sigs.k8s.io/group-index"


class Placement(NamedTuple):
    """Pods of one replica: how many have a node, how many exist."""

    bound: int
    total: int


def lws_manifest(  # noqa: PLR0913 - what tests vary
    name: str,
    replicas: int,
    size: int,
    *,
    scheduler: str | None = None,
    gpus: int = 8,
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    pod_metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """An LWS whose pods each ask 1 CPU, 1Gi and `gpus` GPUs.

    Args:
        name: of the LWS.
        replicas: how many.
        size: pods of a replica.
        scheduler: the pods' schedulerName.
        gpus: of each pod; 8 fill a node of `Nodes.add`.
        namespace: of the LWS.
        annotations: of the LWS.
        labels: of the LWS.
        pod: merged into the pod template's spec, for example `{"priorityClassName": "high"}`.
        pod_metadata: the pod template's metadata.
        **spec: merged into the LWS's spec, for example `startupPolicy="LeaderReady"`.
    """
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    resources = {"requests": amounts, "limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "server", "image": "registry.example/server:1", "resources": resources}
    pod_spec = {"containers": [container], **({"schedulerName": scheduler} if scheduler else {}), **(pod or {})}
    template = {"metadata": dict(pod_metadata or {}), "spec": pod_spec}
    whole = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}} | spec
    metadata = {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    return LEADER_WORKER_SETS.make(name, namespace, metadata=metadata, spec=whole)


class LeaderWorkerSets:
    """The LeaderWorkerSets of one control plane."""

    def __init__(self, api: Client) -> None:
        """Act through `api`."""
        self._api = api

    def create(self, name: str, replicas: int, size: int, **rest: Any) -> Json:
        """Create what `lws_manifest` makes of the same arguments."""
        return self._api.create(LEADER_WORKER_SETS, lws_manifest(name, replicas, size, **rest))

    def scale(self, name: str, replicas: int, namespace: str = "default") -> Json:
        """Set the number of replicas."""
        return self.change(name, {"replicas": replicas}, namespace)

    def change(self, name: str, spec: Json, namespace: str = "default") -> Json:
        """Merge `spec` into its spec."""
        return self._api.merge(LEADER_WORKER_SETS, name, {"spec": spec}, namespace)

    def delete(self, name: str, namespace: str = "default", propagation: str | None = None) -> None:
        """Delete it; its pods follow."""
        self._api.delete(LEADER_WORKER_SETS, name, namespace, propagation=propagation)

    def pods(self, name: str, namespace: str = "default") -> list[Json]:
        """All its pods, leaders and workers."""
        return self._api.items(PODS, namespace, f"{NAME_LABEL}={name}")

    def replicas(self, name: str, namespace: str = "default") -> dict[int, Placement]:
        """How many pods of each replica have a node, by group index."""
        found: dict[int, list[bool]] = defaultdict(list)
        for pod in self.pods(name, namespace):
            found[int(pod["metadata"]["labels"][INDEX_LABEL])].append(bool(pod["spec"].get("nodeName")))
        return {index: Placement(sum(bound), len(bound)) for index, bound in sorted(found.items())}

    def whole(self, name: str, size: int, namespace: str = "default") -> list[int]:
        """Indexes of the replicas whose `size` pods all have a node."""
        return [index for index, placed in self.replicas(name, namespace).items() if placed.bound == size]

    def in_part(self, name: str, size: int, namespace: str = "default") -> list[int]:
        """Indexes of the replicas of which some pods have a node and some have none."""
        return [index for index, placed in self.replicas(name, namespace).items() if 0 < placed.bound < size]
