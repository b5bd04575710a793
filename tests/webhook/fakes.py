"""LWS's own pod webhook as far as it meets ours, and deciders with a known key."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from schedulers.configuration import Configuration
from tests.builders import LWS, JsonObject, operations, patched, review
from webhook.mutation import Decider
from webhook.reviews import Decision

REVIEWS: Final = Path(__file__).parent.parent / "data" / "reviews"
OBSERVED: Final = Path(__file__).parent.parent / "data" / "observed"
DRAWN: Final = "d" * 40
SCHEDULERS: Final = {
    "default-scheduler": "native",
    "volcano": "volcano",
    "scheduler-plugins-scheduler": "coscheduling",
    "yunikorn": "yunikorn",
}
ALLOWED_PATHS: Final = frozenset(
    {
        "/metadata/labels/leaderworkerset.sigs.k8s.io~1group-key",
        "/metadata/labels/lockstep.dev~1group",
        "/metadata/labels/scheduling.x-k8s.io~1pod-group",
        "/metadata/annotations/scheduling.k8s.io~1group-name",
        "/metadata/annotations/volcano.sh~1task-spec",
        "/metadata/labels/yunikorn.apache.org~1app-id",
        "/metadata/annotations/yunikorn.apache.org~1task-group-name",
        "/spec/schedulingGroup",
        "/spec/schedulingGates",
        "/spec/schedulingGates/-",
        "/spec/resourceClaims",
        "/spec/resourceClaims/-",
        *(f"/spec/resourceClaims/{number}" for number in range(3)),
        *(f"/spec/containers/{number}/resources{rest}" for number in range(3) for rest in ("", "/claims", "/claims/-")),
        *(f"/spec/schedulingGates/{number}" for number in range(3)),
    }
)


def decider(schedulers: Mapping[str, str] = SCHEDULERS, key: str = DRAWN) -> Decider:
    """Build a decider that draws `key` on every leader that has none."""
    return Decider(Configuration(dict(schedulers)), lambda: key)


def recorded(name: str) -> bytes:
    """Read a recorded review."""
    return (REVIEWS / f"{name}.json").read_bytes()


def recorded_pod(name: str) -> JsonObject:
    """Read the pod of a recorded review."""
    pod: JsonObject = json.loads(recorded(name))["request"]["object"]
    return pod


def observed_pod(name: str) -> JsonObject:
    """Read a pod that a real control plane has stored."""
    pod: JsonObject = json.loads((OBSERVED / f"{name}.json").read_text())
    return pod


def admit(pod: JsonObject, decide: Decider | None = None, **request: Any) -> tuple[Decision, JsonObject]:
    """Decide on a pod and apply the patch."""
    decision = (decide or decider())(review(pod, **request))
    assert decision.status == 200
    return decision, patched(pod, operations(decision.body))


def lws_key(namespace: str, leader: str) -> str:
    """Give the key that LWS writes on a leader without one."""
    return hashlib.sha1(f"{namespace}/{leader}".encode(), usedforsecurity=False).hexdigest()


def lws_webhook(pod: JsonObject, namespace: str, *, volcano: bool = False) -> JsonObject:
    """Do what LWS's pod webhook does to keys that we look at; with its Volcano provider if wanted.

    Source: kubernetes-sigs/lws `pkg/webhooks/pod_webhook.go`, `pkg/schedulerprovider/volcano_provider.go`.
    """
    metadata, labels = pod["metadata"], dict(pod["metadata"]["labels"])
    annotations, spec = dict(metadata["annotations"]), dict(pod["spec"])
    if f"{LWS}leader-name" in annotations:
        labels.setdefault(f"{LWS}worker-index", metadata["name"].rpartition("-")[2])
    else:
        labels.setdefault(f"{LWS}group-index", metadata["name"].rpartition("-")[2])
        labels.setdefault(f"{LWS}group-key", lws_key(namespace, metadata["name"]))
        topology = annotations.get(f"{LWS}exclusive-topology")
        if topology is not None:
            spec["affinity"] = _exclusive(topology, labels[f"{LWS}group-key"])
    if volcano:
        parts = (f"{LWS}name", f"{LWS}group-index", f"{LWS}template-revision-hash")
        annotations["scheduling.k8s.io/group-name"] = "-".join(labels[part] for part in parts)
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def _exclusive(topology: str, key: str) -> JsonObject:
    same = {"key": f"{LWS}group-key", "operator": "In", "values": [key]}
    other = {"key": f"{LWS}group-key", "operator": "NotIn", "values": [key]}
    any_ = {"key": f"{LWS}group-key", "operator": "Exists"}
    return {
        "podAffinity": _required(topology, [same]),
        "podAntiAffinity": _required(topology, [any_, other]),
    }


def _required(topology: str, expressions: list[JsonObject]) -> JsonObject:
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
