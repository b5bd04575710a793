"""The command line of every component, and the files it reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.cluster import audit
from tests.cluster.processes import Process, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.cluster.certificates import Certificates

SCHEDULER_PLUGINS = "scheduler-plugins-scheduler"
"""The schedulerName that the coscheduling scheduler serves."""


@dataclass(frozen=True)
class Layout:
    """Where one control plane's files and ports are."""

    folder: Path
    binaries: Path
    certificates: Certificates
    api_port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    lws_port: int = field(default_factory=free_port)

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def lws(self) -> str:
        """URL of LWS's webhooks."""
        return f"https://127.0.0.1:{self.lws_port}"

    def kubeconfig(self, user: str) -> Path:
        """Kubeconfig file of a user, by its key."""
        return self.folder / f"{user}.kubeconfig"

    def write(self, name: str, content: object) -> str:
        """Write a configuration file (JSON, which is YAML too) and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content, indent=1))
        return str(path)

    def process(self, name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
        """A process named after its binary, its log beside the other files."""
        command = [str(self.binaries / name), *arguments]
        return Process(name, command, self.folder / f"{name}.log", environment or {})


def etcd(layout: Layout) -> Process:
    """Single member, no TLS: loopback only, and gone with the test."""
    client, peer = (f"http://127.0.0.1:{port}" for port in (layout.etcd_port, free_port()))
    return layout.process(
        "etcd",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # A throwaway: nothing has to survive a power cut.
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def api_server(layout: Layout, gates: Mapping[str, bool], runtime_config: Mapping[str, str]) -> Process:
    """RBAC, users by token file, everything in the audit log."""
    certificates = layout.certificates
    policy = layout.folder / "audit-policy.json"
    policy.write_text(audit.policy())
    return layout.process(
        "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{layout.etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.api_port}",
        f"--tls-cert-file={certificates.certificate}",
        f"--tls-private-key-file={certificates.key}",
        f"--token-auth-file={layout.folder / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certificates.service_accounts}",
        f"--service-account-signing-key-file={certificates.service_accounts}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={layout.folder / 'audit.log'}",
        # Megabytes; a rotated log would lose events under a test's offset.
        "--audit-log-maxsize=10000",
        *(_gates(gates)),
        *([f"--runtime-config={_pairs(runtime_config)}"] if runtime_config else []),
    )


def controller_manager(layout: Layout, gates: Mapping[str, bool]) -> Process:
    """All controllers, with room for a few hundred replicas at once."""
    name = "kube-controller-manager"
    return layout.process(
        name,
        *_kubeconfigs(layout, name),
        f"--service-account-private-key-file={layout.certificates.service_accounts}",
        f"--root-ca-file={layout.certificates.ca}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        # A busy machine delays kwok's heartbeats; by itself a node whose lease is 50 s old loses its pods' readiness.
        "--node-monitor-grace-period=300s",
        *_gates(gates),
    )


def scheduler(layout: Layout, gates: Mapping[str, bool]) -> Process:
    """The stock scheduler."""
    return layout.process("kube-scheduler", *_kubeconfigs(layout, "kube-scheduler"), *_gates(gates))


def kwok(layout: Layout) -> Process:
    """Plays kubelet for all nodes."""
    return layout.process(
        "kwok",
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        f"--config={layout.binaries / 'kwok-stages.yaml'}",
        "--manage-all-nodes=true",
        # Else a line a pod and a node, and failures drown.
        "--v=WARN",
        f"--server-address=127.0.0.1:{free_port()}",
    )


def lws(layout: Layout, provider: str | None) -> Process:
    """LWS's controllers and webhooks; `provider` turns on its own gang scheduling."""
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": layout.lws_port, "host": "127.0.0.1", "certDir": str(layout.certificates.folder)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
    }
    if provider is not None:
        configuration["gangSchedulingManagement"] = {"schedulerProvider": provider}
    path = layout.write("lws.json", configuration)
    return layout.process("lws", f"--config={path}", environment={"KUBECONFIG": str(layout.kubeconfig("lws"))})


def coscheduling(layout: Layout) -> Process:
    """The scheduler-plugins scheduler with the Coscheduling plugin under its usual name."""
    plugin = {"name": "Coscheduling"}
    profile = {
        "schedulerName": SCHEDULER_PLUGINS,
        "plugins": {
            "multiPoint": {"enabled": [plugin]},
            "queueSort": {"enabled": [plugin], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    }
    kubeconfig = str(layout.kubeconfig("coscheduling"))
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 200, "burst": 400},
        "profiles": [profile],
    }
    path = layout.write("coscheduling.json", configuration)
    return layout.process("coscheduling", f"--config={path}", *_serving(kubeconfig))


def coscheduling_controller(layout: Layout) -> Process:
    """Writes the status of coscheduling's PodGroups."""
    return layout.process(
        "coscheduling-controller",
        f"--metricsAddr=127.0.0.1:{free_port()}",
        f"--probeAddr=127.0.0.1:{free_port()}",
        environment={"KUBECONFIG": str(layout.kubeconfig("coscheduling"))},
    )


def _kubeconfigs(layout: Layout, user: str) -> list[str]:
    path = str(layout.kubeconfig(user))
    return [f"--kubeconfig={path}", "--leader-elect=false", *_serving(path)]


def _serving(kubeconfig: str) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup=true",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def _gates(gates: Mapping[str, bool]) -> list[str]:
    values = {gate: str(on).lower() for gate, on in gates.items()}
    return [f"--feature-gates={_pairs(values)}"] if values else []


def _pairs(values: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in values.items())
