"""Objects of a cluster as an API server over HTTP has them."""

from collections.abc import Callable

from tests.builders import JsonObject
from tests.reconciler.fake_api import FakeApi
from tests.reconciler.sights import Plan, World, group, replica

Command = Callable[..., tuple[int, str, str]]
"""Runs a command with its words; gives exit code, output and error output."""

ROOTS = {
    "Pod": "/api/v1/pods",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
    "ControllerRevision": "/apis/apps/v1/controllerrevisions",
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Event": "/api/v1/events",
}
GROUPS = {
    "scheduling.k8s.io/v1beta1": "/apis/scheduling.k8s.io/v1beta1/podgroups",
    "scheduling.x-k8s.io/v1alpha1": "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
}
READY: JsonObject = {
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
NODE: JsonObject = {
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "24"}},
}


def put(fake: FakeApi, *objects: JsonObject) -> None:
    """Store objects as they are, with the UIDs they have."""
    for obj in World(*objects).objects.values():
        meta = obj["metadata"]
        root = ROOTS[obj["kind"]] if obj["kind"] in ROOTS else GROUPS[obj["apiVersion"]]
        fake.objects.setdefault(root, {})[meta.get("namespace", ""), meta["name"]] = obj


def put_replica(fake: FakeApi, plan: Plan, *, grouped: bool = True) -> None:
    """Store a replica, with its group unless said otherwise."""
    unchanged = Plan(**vars(plan) | {"changes": {}})
    put(fake, *replica(**vars(plan)), *([group(unchanged)] if grouped else []))
