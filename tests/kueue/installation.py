"""Kueue beside a control plane: its own kinds, webhooks and certificates, as its manifests install them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Self

from tests.cluster import kinds
from tests.cluster.processes import free_port
from tests.cluster.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Json, Resource

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane

NAMESPACE = "kueue-system"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
ADMISSION_GATE = "kueue.x-k8s.io/admission"

_SERVICE = "kueue-webhook-service"
_SECRET = "kueue-webhook-server-cert"
_SERVICES = Resource("v1", "services", "Service")
_FLAVORS = Resource("kueue.x-k8s.io/v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)
_CLUSTER_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)
_LOCAL_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueue")
# Kueue waits until it has put its CA into these; the manifests get the stanza by a patch each.
_CONVERTED = ("localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters")
_FRAMEWORKS = ("pod", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
_OURS = ("leaderworkersets", "statefulsets", "pods")
_PLENTY = 1000


class Kueue:
    """One Kueue: `with Kueue(plane) as kueue: ...`."""

    def __init__(self, plane: ControlPlane) -> None:
        """Write its configuration; nothing is started yet."""
        self._plane = plane
        self._port = free_port()
        self._certificates = plane.folder / "kueue-certificates"
        self._process = plane.layout.process(
            "kueue",
            f"--config={plane.layout.write('kueue-config.json', self._configuration())}",
            "--feature-gates=VisibilityOnDemand=false",
            environment={"KUBECONFIG": str(plane.kubeconfig())},
        )

    def _configuration(self) -> Json:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "leaderElection": {"leaderElect": False},
            # Without it v0.17 ends unless a certificate for its metrics is in /etc, though it serves no metrics.
            "internalCertManagement": {"enable": True, "webhookServiceName": _SERVICE, "webhookSecretName": _SECRET},
            "webhook": {"port": self._port, "host": "127.0.0.1", "certDir": str(self._certificates)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
            "integrations": {"frameworks": list(_FRAMEWORKS)},
        }

    def __enter__(self) -> Self:
        """Install and start it; stop it when that fails."""
        try:
            self._install()
            self._process.start()
            self._plane.wait("Kueue's certificate", self._mount, 60)
            self._plane.wait("Kueue's webhooks answer", self._answers, 60)
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it; what it installed stays."""
        self._process.kill()

    def offer(self, queue: str, gpus: int) -> None:
        """Set a queue's quota of GPUs; there is plenty of everything else."""
        api = self._plane.api
        amounts = {"cpu": _PLENTY, "memory": f"{_PLENTY}Gi", "nvidia.com/gpu": gpus}
        quotas = [{"name": name, "nominalQuota": str(amount)} for name, amount in amounts.items()]
        groups = [{"coveredResources": list(amounts), "flavors": [{"name": "default", "resources": quotas}]}]
        api.apply(_FLAVORS, _FLAVORS.make("default", spec={}))
        api.apply(
            _CLUSTER_QUEUES, _CLUSTER_QUEUES.make(queue, spec={"namespaceSelector": {}, "resourceGroups": groups})
        )
        api.apply(_LOCAL_QUEUES, _LOCAL_QUEUES.make(queue, spec={"clusterQueue": queue}))

    def report(self) -> str:
        """The last lines of its log."""
        return self._process.tail(20)

    def _install(self) -> None:
        plane, binaries = self._plane, self._plane.layout.binaries
        plane.create_namespace(NAMESPACE)
        # The API server asks a service by its name and certificate; this one leads it to loopback.
        service = {"type": "ExternalName", "externalName": "localhost"}
        plane.api.create(_SERVICES, _SERVICES.make(_SERVICE, NAMESPACE, spec=service))
        plane.api.create(SECRETS, SECRETS.make(_SECRET, NAMESPACE))
        plane.kinds.register([self._converting(kind) for kind in kinds.read([binaries / "crds" / "kueue.yaml"])])
        for configuration in kinds.read([binaries / "kueue-webhooks.yaml"]):
            self._register(configuration)

    def _client(self, path: str) -> Json:
        return {"service": {"name": _SERVICE, "namespace": NAMESPACE, "path": path, "port": self._port}}

    def _converting(self, kind: Json) -> Json:
        if kind["spec"]["names"]["plural"] in _CONVERTED:
            webhook = {"clientConfig": self._client("/convert"), "conversionReviewVersions": ["v1"]}
            kind["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return kind

    def _register(self, configuration: Json) -> None:
        resource = MUTATING_WEBHOOKS if configuration["kind"].startswith("Mutating") else VALIDATING_WEBHOOKS
        asked = [hook for hook in configuration["webhooks"] if _concerns_us(hook)]
        outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
        for hook in asked:
            hook["clientConfig"] = self._client(hook["clientConfig"]["service"]["path"])
            hook["namespaceSelector"] = {"matchExpressions": [outside]}
        self._plane.api.create(resource, resource.make(f"kueue-{configuration['metadata']['name']}", webhooks=asked))

    def _mount(self) -> bool:
        """Play kubelet: the Secret's files go where Kueue looks for them, the one that it waits for last."""
        if self._process.died is not None:
            raise RuntimeError(f"kueue: must run, ended with code {self._process.died}\n{self.report()}")
        data = self._plane.api.get(SECRETS, _SECRET, NAMESPACE)["data"]
        self._certificates.mkdir(exist_ok=True)
        for name in ("tls.key", "tls.crt"):
            path = self._certificates / name
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(data[name]))
        return True

    def _answers(self) -> bool:
        return bool(self._plane.api.create(_FLAVORS, _FLAVORS.make("probe", spec={}), query="dryRun=All"))


def _concerns_us(hook: Json) -> bool:
    rules = hook["rules"]
    return any("kueue.x-k8s.io" in rule["apiGroups"] or set(_OURS) & set(rule["resources"]) for rule in rules)
