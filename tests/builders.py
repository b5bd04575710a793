"""Pods of a LeaderWorkerSet and reviews of them, as LWS and the API server make them; a test states the difference."""

import base64
import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, Unpack

import jsonpatch

LWS: Final = "leaderworkerset.sigs.k8s.io/"
KEY: Final = "3026934fa959105a39223221cf76941a46fb01bb"
REVISION: Final = "69fbc5554"
NAMESPACE: Final = "team-a"

JsonObject = dict[str, Any]
Changes = Mapping[str, str | None]
"""Keys to set; `None` takes a key away."""


class Difference(TypedDict, total=False):
    """What sets a pod apart from a usual one.

    `first_pass`: the pod as it is before LWS's webhook; `spec`: fields of the spec to set.
    """

    first_pass: bool
    size: int
    key: str
    scheduler: str | None
    labels: Changes
    annotations: Changes
    spec: JsonObject


def leader_pod(lws: str = "vllm", index: int = 0, **difference: Unpack[Difference]) -> JsonObject:
    """Build a leader; before LWS's webhook it has neither index nor key."""
    own = {f"{LWS}worker-index": "0"}
    if not difference.get("first_pass"):
        own |= {f"{LWS}group-index": str(index), f"{LWS}group-key": difference.get("key", KEY)}
    return _pod(lws, f"{lws}-{index}", own, {}, difference)


def worker_pod(lws: str = "vllm", index: int = 0, worker: int = 1, **difference: Unpack[Difference]) -> JsonObject:
    """Build a worker; before LWS's webhook it has no worker-index."""
    own = {f"{LWS}group-index": str(index), f"{LWS}group-key": difference.get("key", KEY)}
    if not difference.get("first_pass"):
        own[f"{LWS}worker-index"] = str(worker)
    return _pod(lws, f"{lws}-{index}-{worker}", own, {f"{LWS}leader-name": f"{lws}-{index}"}, difference)


def _pod(lws: str, name: str, labels: Changes, annotations: Changes, difference: Difference) -> JsonObject:
    shared = {f"{LWS}name": lws, f"{LWS}template-revision-hash": REVISION}
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": changed({**shared, **labels}, difference.get("labels", {})),
        "annotations": changed(
            {f"{LWS}size": str(difference.get("size", 2)), **annotations}, difference.get("annotations", {})
        ),
    }
    spec = {"containers": [{"name": "vllm", "image": "registry.example/vllm:1"}], **difference.get("spec", {})}
    scheduler = difference.get("scheduler", "default-scheduler")
    if scheduler is not None:
        spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


def changed(own: Changes, changes: Changes) -> dict[str, str]:
    """Lay changes over a map."""
    return {key: value for key, value in {**own, **changes}.items() if value is not None}


def review(pod: object, **request: Any) -> bytes:
    """Build the body of an AdmissionReview that creates a pod; `request` states what differs."""
    return json.dumps(review_object(pod, **request)).encode()


def review_object(pod: object, **request: Any) -> JsonObject:
    """Build an AdmissionReview that creates a pod."""
    whole = {
        "uid": "8bb9e81b-fd9a-4f50-ae8e-5d39b1d05889",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole}


def response(body: bytes) -> JsonObject:
    """Read `response` of an answered review."""
    answer: JsonObject = json.loads(body)
    assert answer.keys() == {"apiVersion", "kind", "response"}
    found: JsonObject = answer["response"]
    return found


def operations(body: bytes) -> list[JsonObject]:
    """Read the patch of an answered review, empty where there is none."""
    found: list[JsonObject] = json.loads(base64.b64decode(response(body).get("patch", "W10=")))
    return found


def patched(pod: JsonObject, patch: Iterable[JsonObject]) -> JsonObject:
    """Apply an RFC 6902 patch to a copy of a pod."""
    result: JsonObject = jsonpatch.apply_patch(copy.deepcopy(pod), list(patch))
    return result
