"""Nodes that kwok keeps alive: as large as a test says, with pods that run as soon as they are bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.resources import NODES, PODS, Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.cluster.client import Client
    from tests.cluster.waiting import Waiter


class Nodes:
    """The nodes of one control plane."""

    def __init__(self, api: Client, waiter: Waiter) -> None:
        """Act through `api`."""
        self._api = api
        self._waiter = waiter

    def add(  # noqa: PLR0913 - what a node is made of
        self,
        names: Iterable[str],
        *,
        gpus: int = 8,
        cpu: str = "8",
        memory: str = "32Gi",
        labels: Mapping[str, str] | None = None,
        ready: bool = True,
    ) -> None:
        """Create nodes; by default each takes one pod of `lws_manifest`. With `ready`, wait until they take pods."""
        wanted = list(names)
        capacity = {"cpu": cpu, "memory": memory, "pods": "110", "nvidia.com/gpu": str(gpus)}
        for name in wanted:
            self._create(name, capacity, labels or {})
        if ready:
            self._waiter.wait(f"nodes {wanted} take pods", lambda: all(map(self.takes_pods, wanted)))

    def _create(self, name: str, capacity: Json, labels: Mapping[str, str]) -> None:
        metadata = {
            "labels": {"kubernetes.io/hostname": name, "type": "kwok", **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }
        status = {"capacity": capacity, "allocatable": capacity}
        self._api.create(NODES, NODES.make(name, metadata=metadata, spec={}, status=status))
        self._api.merge(NODES, name, {"status": status}, subresource="status")

    def takes_pods(self, name: str) -> bool:
        """Is it Ready and free of taints?"""
        node = self._api.get(NODES, name)
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def resize(self, name: str, **allocatable: str) -> None:
        """Change what it can hold, for example `resize("n1", **{"nvidia.com/gpu": "16"})`."""
        status = {"capacity": allocatable, "allocatable": allocatable}
        self._api.merge(NODES, name, {"status": status}, subresource="status")

    def cordon(self, name: str) -> None:
        """Make it take no new pods."""
        self._api.merge(NODES, name, {"spec": {"unschedulable": True}})

    def uncordon(self, name: str) -> None:
        """Make it take pods again."""
        self._api.merge(NODES, name, {"spec": {"unschedulable": None}})

    def delete(self, name: str) -> None:
        """Delete it and, at once, the pods on it (by itself the cluster collects them after 40 s and more)."""
        self._api.delete(NODES, name)
        for pod in self._api.items(PODS):
            if pod["spec"].get("nodeName") == name:
                self._api.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)
