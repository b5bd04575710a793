"""An installation from the shipped manifests: applied by kubectl, its containers run as processes on loopback.

What the cluster would do is done here, and nothing else: the kubelet's part (a container's arguments, its mounted
ConfigMap, Secret and token) and the Service's (an overlay names a loopback URL instead).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import urllib3

from manifests.shipped import NAMESPACE
from tests.cluster import users
from tests.cluster.processes import Process, free_port
from tests.cluster.resources import CONFIG_MAPS, SECRETS, Json, Resource
from tests.cluster.users import User

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.cluster.client import Client
    from tests.cluster.control_plane import ControlPlane

MANIFESTS: Final = Path(__file__).parent.parent.parent / "manifests"
DEPLOYMENTS: Final = Resource("apps/v1", "deployments", "Deployment")
RECONCILER: Final = "lockstep-reconciler"
POLICY: Final = "lockstep-policy"
MUTATING: Final = "lockstep-mutating"
VALIDATING: Final = "lockstep-policies"

_KUBELET_SECONDS = 0.5


def account_name(account: str) -> str:
    """Name one of our accounts as the API server does."""
    return f"system:serviceaccount:{NAMESPACE}:{account}"


class Installation:
    """The shipped manifests on one control plane, and their containers beside it."""

    def __init__(self, plane: ControlPlane, folder: Path, *, components: Sequence[str] = ()) -> None:
        """Choose ports and folders; `components` are what is applied beside all schedulers."""
        self._plane, self._folder, self._components = plane, folder, tuple(components)
        self.secure_port = free_port()
        self.ports = {name: free_port() for name in ("webhook", "policy")}
        self.metrics_ports = {name: free_port() for name in ("webhook", "policy", "reconciler")}
        self.tls, self._config = folder / "tls", folder / "config"
        for made in (self.tls, self._config):
            made.mkdir(parents=True)
        self.processes: dict[str, Process] = {}
        self._kubelet = Kubelet(plane.api, self.tls)

    def overlay(self, components: Sequence[str] = ()) -> Path:
        """Write an overlay of the installation of all schedulers, with its own components and some more."""
        components = (*self._components, *components)
        folder = self._folder / "-".join(["overlay", *components])
        folder.mkdir(exist_ok=True)
        relative = os.path.relpath(MANIFESTS, folder)
        validate = "/validate" if "policies-deny" in components else "/validate/warn"
        hooks = {
            ("MutatingWebhookConfiguration", MUTATING): ("webhook", "/mutate"),
            ("ValidatingWebhookConfiguration", VALIDATING): ("policy", validate),
        }
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{relative}/install"],
            "components": [f"{relative}/components/{name}" for name in components],
            "patches": [
                {"target": {"kind": kind, "name": name}, "patch": self._by_url(*where)}
                for (kind, name), where in hooks.items()
            ],
        }
        (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
        return folder

    def _by_url(self, server: str, path: str) -> str:
        client_config = "/webhooks/0/clientConfig"
        url = f"https://127.0.0.1:{self.ports[server]}{path}"
        operations = [
            {"op": "test", "path": f"{client_config}/service/path", "value": path},
            {"op": "remove", "path": f"{client_config}/service"},
            {"op": "add", "path": f"{client_config}/url", "value": url},
        ]
        return json.dumps(operations)

    def apply(self, *components: str) -> str:
        """Apply the overlay and give what kubectl says."""
        return self._plane.kubectl("apply", "--validate=strict", "-k", str(self.overlay(components)))

    def __enter__(self) -> Self:
        """Apply and start every container; stop what was started when that fails."""
        try:
            self.apply()
            self._write_config()
            self._kubelet.start()
            for container in ("webhook", "reconciler", "policy"):
                self.start(container)
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the containers; the objects stay."""
        self.stop()

    def stop(self) -> None:
        """Stop every container."""
        for process in self.processes.values():
            process.stop(60)
        self._kubelet.stop()

    def away(self, *containers: str) -> Away:
        """Stop some containers for as long as a `with` block lasts."""
        return Away(self, containers)

    def start(self, container: str, *more: str) -> None:
        """Start one container with the arguments of its Deployment, and `more`."""
        if container not in self.processes:
            arguments = [*self.arguments(container), *more]
            command = [sys.executable, "-m", "lockstep", *arguments]
            self.processes[container] = Process(container, command, self._folder / f"{container}.log")
        self.processes[container].start()

    def wait_ready(self) -> None:
        """Wait until every container would be ready, and the API server trusts what they serve."""
        for name in self.metrics_ports:
            self._plane.wait(f"{name} is ready", lambda name=name: self._is_ready(name), 60, 0.2)  # type: ignore[misc]

    def _is_ready(self, name: str) -> bool:
        died = self.processes[name].died
        assert died is None, f"{name} ended with {died}: {self.processes[name].tail()}"
        status, text = self.get(name, "/readyz")
        assert status == 200, f"{text}\n{self.processes[name].tail(3)}"
        return True

    def arguments(self, container: str) -> list[str]:
        """Give a container's arguments with the places and ports of this machine."""
        deployment = "lockstep-policy" if container == "policy" else "lockstep-webhook"
        pod = self._plane.api.get(DEPLOYMENTS, deployment, NAMESPACE)["spec"]["template"]["spec"]
        found = next(each for each in pod["containers"] if each["name"] == container)
        places = {
            "/etc/lockstep/tls": str(self.tls),
            "/etc/lockstep/config": str(self._config),
            "--addr=:8443": f"--addr=127.0.0.1:{self.ports.get(container)}",
            "--metrics-addr=:8080": f"--metrics-addr=127.0.0.1:{self.metrics_ports[container]}",
            "--metrics-addr=:8081": f"--metrics-addr=127.0.0.1:{self.metrics_ports[container]}",
            "--secure-metrics-addr=:8444": f"--secure-metrics-addr=127.0.0.1:{self.secure_port}",
            # Processes that are stopped beside their peers have nobody who sends them requests.
            "--drain-seconds=20": "--drain-seconds=0",
        }
        return [*(_placed(text, places) for text in found["args"] if text != "--in-cluster"), *self._account(container)]

    def _account(self, container: str) -> list[str]:
        """Give what stands for the mounted token, and for the names that a pod's own address adds to."""
        if container == "webhook":
            return []
        kubeconfig = ["--kubeconfig", str(self.kubeconfig(RECONCILER if container == "reconciler" else POLICY))]
        if container == "policy":
            return kubeconfig
        hosts = ("lockstep-webhook", "lockstep-policy")
        names = [f"--certificate-host={host}.{NAMESPACE}.svc" for host in hosts]
        where = ["--lease-namespace", NAMESPACE, "--certificate-namespace", NAMESPACE]
        return [*kubeconfig, *where, *names, "--certificate-host=127.0.0.1"]

    def kubeconfig(self, account: str) -> Path:
        """Write a kubeconfig with a token of one of our accounts, asked for as a kubelet asks."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self._plane.api.request("POST", path, request)["status"]["token"]
        user = User(account, account_name(account), token=token)
        file = self._folder / f"{account}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(users.kubeconfig(user, self._plane.server, self._plane.certificates.ca))
        return file

    def _write_config(self) -> None:
        for name, text in self._plane.api.get(CONFIG_MAPS, "lockstep-config", NAMESPACE)["data"].items():
            (self._config / name).write_text(text)

    def get(self, name: str, path: str) -> tuple[int, str]:
        """GET a path of a container's plain port."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.metrics_ports[name]}{path}")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            raise LookupError(f"{name}: {error}") from error

    def scraped(self, monitor: Json) -> str:
        """Scrape what a ServiceMonitor names, over TLS that is verified as it says."""
        port_of = {
            "https": self.ports[monitor["metadata"]["name"].removeprefix("lockstep-")],
            "metrics-tls": self.secure_port,
        }
        return "".join(self._scrape(endpoint, port_of[endpoint["port"]]) for endpoint in monitor["spec"]["endpoints"])

    def _scrape(self, endpoint: Json, port: int) -> str:
        tls = endpoint["tlsConfig"]
        authority = self.tls / tls["ca"]["secret"]["key"]
        pool = urllib3.HTTPSConnectionPool(
            "127.0.0.1",
            port,
            ca_certs=str(authority),
            server_hostname=tls["serverName"],
            assert_hostname=tls["serverName"],
        )
        with contextlib.closing(pool):
            answer = pool.request("GET", endpoint["path"], retries=False, timeout=10)
        assert answer.status == 200
        return answer.data.decode()

    def report(self) -> str:
        """Log tails of all containers."""
        return "\n".join(f"--- {p.name}\n{p.tail(20)}" for p in self.processes.values())


class Away:
    """Containers that do not run, or hang, inside of a `with` block."""

    def __init__(self, installation: Installation, containers: Sequence[str]) -> None:
        """Stop nothing yet."""
        self._installation, self._containers = installation, containers

    def __enter__(self) -> None:
        """Stop them."""
        for name in self._containers:
            self._installation.processes[name].kill()

    def __exit__(self, *_: object) -> None:
        """Start them again and wait until they are ready."""
        for name in self._containers:
            self._installation.start(name)
        self._installation.wait_ready()


class Kubelet:
    """Keeps a folder equal to the Secret that pods mount, swapping all of it at once as a kubelet does."""

    def __init__(self, api: Client, folder: Path) -> None:
        """Mount into `folder`."""
        self._api, self._folder = api, folder
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self._versions = 0
        self._seen: Mapping[str, Any] = {}

    def start(self) -> None:
        """Look at once, then again and again."""
        self._sync()
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stopping.wait(_KUBELET_SECONDS):
            self._sync()

    def _sync(self) -> None:
        secret = self._api.find(SECRETS, "lockstep-tls", NAMESPACE)
        data: Json = (secret or {}).get("data") or {}
        if data != self._seen:
            self._swap(data)
            self._seen = data

    def _swap(self, data: Mapping[str, str]) -> None:
        self._versions += 1
        version = self._folder / f"..{self._versions}"
        version.mkdir()
        for name, value in data.items():
            (version / name).write_bytes(base64.b64decode(value))
        fresh = self._folder / "..data.new"
        fresh.symlink_to(version.name)
        fresh.replace(self._folder / "..data")
        for name in data:
            if not (self._folder / name).is_symlink():
                (self._folder / name).symlink_to(f"..data/{name}")


def _placed(text: str, places: Mapping[str, str]) -> str:
    for word, place in places.items():
        text = text.replace(word, place)
    return text
