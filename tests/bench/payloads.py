"""AdmissionReview bodies that carry a LeaderWorkerSet pod of about 6.5 kB, as an API server sends them.

Each has its own uid, names, hash and environment, so that nothing can be cached whole. The same count gives the same
bytes.
"""

import hashlib
import json
import random
import uuid
from pathlib import Path
from typing import Any

COUNT = 64

_LWS = "leaderworkerset.sigs.k8s.io/"
_NAMESPACE = "team-serving"
_SIZE = 8
_OWNER_UID = "8f8c3c0e-5f5e-4b71-9a3b-3a0c6d4a3f10"
_SPEC_FIELDS = (
    "affinity",
    "dnsPolicy",
    "enableServiceLinks",
    "hostname",
    "restartPolicy",
    "schedulerName",
    "securityContext",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
)
_ENV_FIELDS = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "NCCL_DEBUG", "HF_HOME", "TP_SIZE")


def make_bodies(count: int = COUNT) -> list[bytes]:
    """Make `count` bodies; the same count gives the same bytes."""
    draw = random.Random(7)
    return [json.dumps(_review(draw, i), separators=(",", ":")).encode() for i in range(count)]


def write_bodies(file: Path) -> None:
    """Write the bodies to `file`, one a line, for the load client."""
    file.write_bytes(b"\n".join(make_bodies()) + b"\n")


def _review(draw: random.Random, number: int) -> dict[str, Any]:
    pod = _pod(draw, number)
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": _uid(draw),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": pod["metadata"]["name"],
            "namespace": _NAMESPACE,
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:statefulset-controller",
                "uid": "2b8a3f5e-7c5d-4a59-8f2e-0f7f2f1f8f77",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def _pod(draw: random.Random, number: int) -> dict[str, Any]:
    lws = f"vllm-llama-{draw.randrange(10**4):04d}"
    leader = f"{lws}-{number // _SIZE}"
    key = hashlib.sha1(f"{_NAMESPACE}/{leader}".encode()).hexdigest()  # noqa: S324 - the key that LWS makes
    metadata = _metadata(draw, lws, leader, number % _SIZE, key)
    environment = _environment(draw, lws, leader, number % _SIZE)
    spec = _spec(metadata["name"], lws, key, environment)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {}}


def _metadata(draw: random.Random, lws: str, leader: str, worker: int, key: str) -> dict[str, Any]:
    name = f"{leader}-{worker}" if worker else leader
    labels = {
        "app.kubernetes.io/name": "vllm",
        "app.kubernetes.io/part-of": "inference",
        "apps.kubernetes.io/pod-index": str(worker),
        "controller-revision-hash": f"{leader}-{key[:9]}",
        _LWS + "name": lws,
        _LWS + "group-index": leader.rpartition("-")[2],
        _LWS + "worker-index": str(worker),
        _LWS + "group-key": key,
        _LWS + "template-revision-hash": key[10:20],
        "statefulset.kubernetes.io/pod-name": name,
    }
    annotations = {
        _LWS + "size": str(_SIZE),
        _LWS + "subdomainPolicy": "Shared",
        _LWS + "exclusive-topology": "cloud.example.com/rack",
    }
    if worker:
        annotations[_LWS + "leader-name"] = leader
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": leader if worker else lws, "uid": _OWNER_UID}
    return {
        "name": name,
        "generateName": f"{leader}-",
        "namespace": _NAMESPACE,
        "uid": _uid(draw),
        "creationTimestamp": "2026-11-20T10:00:00Z",
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        "managedFields": [_managed_fields(labels, annotations)],
    }


def _environment(draw: random.Random, lws: str, leader: str, worker: int) -> dict[str, str]:
    return {
        "LWS_LEADER_ADDRESS": f"{leader}.{lws}.{_NAMESPACE}",
        "LWS_GROUP_SIZE": str(_SIZE),
        "LWS_WORKER_INDEX": str(worker),
        "NCCL_DEBUG": "WARN",
        "NCCL_IB_HCA": "mlx5",
        "NCCL_SOCKET_IFNAME": "eth0",
        "HF_HOME": "/models/hf",
        "TP_SIZE": "8",
        "PP_SIZE": "2",
        "VLLM_LOGGING_LEVEL": "INFO",
        "RAY_memory_monitor_refresh_ms": "0",
        "VLLM_ATTENTION_BACKEND": "FLASH_ATTN",
        "MODEL_ID": f"org/model-{draw.randrange(10**6)}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel-collector.observability:4317",
    }


def _spec(name: str, lws: str, key: str, environment: dict[str, str]) -> dict[str, Any]:
    same_group = {"matchExpressions": [{"key": _LWS + "group-key", "operator": "In", "values": [key]}]}
    affinity = [{"labelSelector": same_group, "topologyKey": "cloud.example.com/rack"}]
    absent = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "volumes": _volumes(),
        "containers": [_container(environment)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "hostname": name,
        "subdomain": lws,
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", **absent},
            {"key": "node.kubernetes.io/unreachable", **absent},
        ],
        "priorityClassName": "serving-high",
        "priority": 1000,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _container(environment: dict[str, str]) -> dict[str, Any]:
    resources = {"cpu": "31500m", "memory": "240Gi", "nvidia.com/gpu": "8"}
    pod_ip = {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
    token = {"name": "kube-api-access-x7k2p", "readOnly": True}
    return {
        "name": "vllm",
        "image": f"registry.example.com/serving/vllm-openai@sha256:{hashlib.sha256(b'image').hexdigest()}",
        "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
        "args": ["--model=/models/llama", "--tensor-parallel-size=8", "--pipeline-parallel-size=2", "--port=8080"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [*({"name": key, "value": value} for key, value in environment.items()), pod_ip],
        "resources": {"limits": resources, "requests": resources},
        "volumeMounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108 - a path inside a pod
            {"name": "models", "readOnly": True, "mountPath": "/models"},
            {**token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "readinessProbe": {
            "tcpSocket": {"port": 8080},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 30,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _volumes() -> list[dict[str, Any]]:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    return [
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "models", "persistentVolumeClaim": {"claimName": "models-rox", "readOnly": True}},
        {"name": "kube-api-access-x7k2p", "projected": {"sources": [token, authority], "defaultMode": 420}},
    ]


def _managed_fields(labels: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    """The field set that a StatefulSet's pod carries at admission, about 2 kB."""
    metadata = {
        "f:annotations": {".": {}, **_owned(annotations)},
        "f:labels": {".": {}, **_owned(labels)},
        "f:ownerReferences": {".": {}, f'k:{{"uid":"{_OWNER_UID}"}}': {}},
    }
    spec = _owned(_SPEC_FIELDS)
    spec["f:containers"] = {'k:{"name":"vllm"}': _owned_container()}
    spec["f:volumes"] = {".": {}, 'k:{"name":"dshm"}': {".": {}, "f:emptyDir": {".": {}, "f:medium": {}}, "f:name": {}}}
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-20T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": metadata, "f:spec": spec},
    }


def _owned_container() -> dict[str, Any]:
    resources = {".": {}, **_owned(["cpu", "memory", "nvidia.com/gpu"])}
    return {
        ".": {},
        **_owned(["args", "command", "image", "imagePullPolicy", "name", "terminationMessagePath"]),
        "f:env": {
            ".": {},
            **{f'k:{{"name":"{name}"}}': {".": {}, **_owned(["name", "value"])} for name in _ENV_FIELDS},
        },
        "f:ports": {".": {}, 'k:{"containerPort":8080}': {".": {}, **_owned(["containerPort", "name", "protocol"])}},
        "f:readinessProbe": {".": {}, **_owned(["failureThreshold", "periodSeconds"])},
        "f:resources": {".": {}, "f:limits": resources, "f:requests": resources},
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/models"}': {".": {}, **_owned(["mountPath", "name"])}},
    }


def _owned(names: Any) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


def _uid(draw: random.Random) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))
