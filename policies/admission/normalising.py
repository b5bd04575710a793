"""A manifest as the API server would see it: what its types always write, what it fills in, what it does not know.

A rule such as `has(c.resources)` says one thing of a file and another of the Pod that the API server makes of it. Only
what rules about groups and their pods may read is filled in, and only where the manifest's own shape allows.

Source: kubernetes `pkg/apis/core/v1/defaults.go`, `pkg/apis/scheduling/v1beta1/defaults.go`, the types' JSON tags.
"""

from collections.abc import Mapping
from typing import Any, Final

from policies.targets import GENERIC_WORKLOAD, Target

_POD_SPEC: Final[Mapping[str, Any]] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
_CONTAINER: Final[Mapping[str, Any]] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_SCHEDULING: Final = "scheduling.k8s.io"


def as_served(content: Mapping[str, Any], namespace: str, target: Target) -> Mapping[str, Any]:
    """Give the object with what the API server adds; the given one stays as it is."""
    kind, api_version = content.get("kind"), str(content.get("apiVersion", ""))
    served = {**content, "metadata": _metadata(content.get("metadata"), namespace)}
    if (api_version, kind) == ("v1", "Pod"):
        served["spec"] = _pod_spec(content.get("spec"), target)
        served.setdefault("status", {})
    elif api_version.startswith(f"{_SCHEDULING}/") and kind == "PodGroup":
        served.setdefault("status", {})
    return served


def _metadata(value: object, namespace: str) -> object:
    if not isinstance(value, Mapping):
        return value
    return {**value, "namespace": namespace} if namespace else dict(value)


def _pod_spec(value: object, target: Target) -> object:
    if not isinstance(value, Mapping):
        return value
    spec = {**_POD_SPEC, **{key: item for key, item in value.items() if item is not None}}
    if not target.enabled(GENERIC_WORKLOAD):
        spec.pop("schedulingGroup", None)
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(item) for item in spec[field]]
    return spec


def _container(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    filled = {**_CONTAINER, **{key: item for key, item in value.items() if item is not None}}
    filled.setdefault("imagePullPolicy", _pull_policy(filled.get("image")))
    return filled


def _pull_policy(image: object) -> str:
    name = str(image or "").rpartition("/")[2]
    tagged = "@" in name or (":" in name and not name.endswith(":latest"))
    return "IfNotPresent" if tagged else "Always"
