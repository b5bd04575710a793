"""Lockstep as its manifests install it, as far as certificates go: empty Secrets, configurations without a bundle."""

from __future__ import annotations

import base64
import contextlib
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Self

from certs.store import certificates_in, read_stored
from reconciler.certificate_rights import configuration_rights, named_rules, secret_rights
from reconciler.rights import policy_rules, reconciler_rights
from schedulers.registry import all_providers
from tests.certs.model import believed
from tests.cluster.kubelet import Mount
from tests.cluster.lws import NAME_LABEL
from tests.cluster.processes import Process, free_port
from tests.cluster.resources import MUTATING_WEBHOOKS, NAMESPACES, PODS, SECRETS, VALIDATING_WEBHOOKS, Json, Resource

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certs.store import Data, Stored
    from tests.cluster.control_plane import ControlPlane

HOSTS = ("localhost", "127.0.0.1")
"""What the API server calls in place of a Service."""

LEAF, AUTHORITIES = "lockstep-tls", "lockstep-ca"
CONFIGURATIONS = ((MUTATING_WEBHOOKS, "lockstep-mutating"), (VALIDATING_WEBHOOKS, "lockstep-policies"))


class Stage:
    """One installation on a control plane: a webhook with its mounted Secret, and any number of reconcilers.

    Attributes:
        namespace: where its Secrets are.
        mount: the webhook's mounted Secret.
        webhook: the webhook's process.
        reconcilers: processes of the reconciler.
    """

    def __init__(self, plane: ControlPlane, folder: Path, namespace: str, *, mounts: bool = True) -> None:
        """Apply the manifests.

        Args:
            plane: where.
            folder: for logs and the mounted Secret.
            namespace: of the Secrets; made here.
            mounts: whether the mounted Secret follows the stored one by itself, and the webhook is told who calls: a
                test that moves the clock does without, because the webhook's own doesn't move.
        """
        self._plane, self._folder, self.namespace, self._mounts = plane, folder, namespace, mounts
        self.port, self.metrics_port = free_port(), free_port()
        plane.api.create(NAMESPACES, NAMESPACES.make(namespace))
        for name in (LEAF, AUTHORITIES):
            plane.api.create(SECRETS, SECRETS.make(name, namespace, type="Opaque"))
        self.mount = Mount(plane.api, namespace, LEAF, folder / "mounted")
        self.webhook = self._process("webhook", *self._serve_arguments())
        self.reconcilers: list[Process] = []
        rules = policy_rules(reconciler_rights(all_providers().values()))
        plane.access.grant("reconciler", rules + named_rules([*secret_rights(), *configuration_rights()]))

    def __enter__(self) -> Self:
        """Register the configurations and start the webhook."""
        for resource, name in CONFIGURATIONS:
            self.register(resource, name)
        self.webhook.start()
        if self._mounts:
            self.mount.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything and take the configurations away."""
        if self._mounts:
            self.mount.__exit__()
        for process in (*self.reconcilers, self.webhook):
            process.kill()
        for resource, name in CONFIGURATIONS:
            with contextlib.suppress(Exception):
                self._plane.api.delete(resource, name)

    def register(self, resource: Resource, name: str, entries: int = 2) -> None:
        """Apply a configuration without a bundle; only the mutating one's first entry is ever called."""
        hooks = [self._hook(f"w{number}.{name}.lockstep.dev", number) for number in range(entries)]
        if resource is VALIDATING_WEBHOOKS:
            hooks = [hook | {"rules": [_rule("widgets")]} for hook in hooks]
        self._plane.api.apply(resource, resource.make(name, webhooks=hooks))

    def _hook(self, name: str, number: int) -> Json:
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/mutate"},
            "rules": [_rule("widgets" if number else "pods")],
            "objectSelector": {"matchExpressions": [{"key": NAME_LABEL, "operator": "Exists"}]},
        }

    def start_reconciler(self, certificates: str = "own") -> Process:
        """Start one more reconciler, with no right but those rendered for it."""
        hosts = [word for host in HOSTS for word in ("--certificate-host", host)]
        process = self._process(
            f"reconciler-{len(self.reconcilers)}",
            "reconcile",
            "--kubeconfig",
            str(self._plane.kubeconfig("reconciler")),
            *("--certificates", certificates, "--certificate-namespace", self.namespace),
            *("--lease-namespace", self.namespace, "--lease-seconds", "3", "--report-seconds", "0"),
            *hosts,
        )
        self.reconcilers.append(process)
        process.start()
        return process

    def data(self, name: str) -> Data:
        """A Secret's data, decoded."""
        data = self._plane.api.get(SECRETS, name, self.namespace).get("data") or {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def put(self, name: str, **data: bytes | None) -> None:
        """Change keys of a Secret, with `_` for `.` in their names."""
        change = {key.replace("_", "."): value and base64.b64encode(value).decode() for key, value in data.items()}
        self._plane.api.merge(SECRETS, name, {"data": change}, self.namespace)

    def annotate(self, name: str, key: str, value: str) -> None:
        """Annotate a Secret."""
        self._plane.api.merge(SECRETS, name, {"metadata": {"annotations": {key: value}}}, self.namespace)

    @property
    def stored(self) -> Stored:
        """What both Secrets say."""
        return read_stored(self.data(AUTHORITIES), self.data(LEAF))

    def bundles(self, resource: Resource | None = None) -> list[bytes]:
        """The bundle of every entry of one kind of configuration, or of both."""
        found = [self._plane.api.find(kind, name) for kind, name in CONFIGURATIONS if resource in (None, kind)]
        hooks = [hook for one in found if one is not None for hook in one["webhooks"]]
        return [base64.b64decode(hook["clientConfig"].get("caBundle", "")) for hook in hooks]

    def agrees(self, now: datetime) -> bool:
        """Does every entry, and the bundle beside it, believe the leaf?"""
        stored = self.stored
        leaf = stored.leaf.held.certificate
        return all(believed(leaf, certificates_in(one), now) for one in (*self.bundles(), stored.bundle))

    def ready(self) -> tuple[int, str]:
        """The webhook's readiness: status and reason."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/readyz", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            raise LookupError(str(error)) from error

    def admit(self) -> int:
        """Have the API server call the webhook for a pod that is not stored; gives its status."""
        pod = PODS.make("probe", metadata={"labels": {NAME_LABEL: "probe"}})
        pod["spec"] = {"containers": [{"name": "probe", "image": "registry.example/probe:1"}]}
        return self._plane.api.text("POST", f"{PODS.collection('default')}?dryRun=All", pod)[0]

    def report(self) -> str:
        """Log tails of all processes."""
        return "\n".join(f"--- {p.name}\n{p.tail(30)}" for p in (self.webhook, *self.reconcilers))

    def _serve_arguments(self) -> list[str]:
        folder = self.mount.folder
        return [
            *("serve", "--addr", f"127.0.0.1:{self.port}", "--metrics-addr", f"127.0.0.1:{self.metrics_port}"),
            *("--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key"), "--await-certificate"),
            *(word for host in HOSTS if self._mounts for word in ("--server-name", host)),
        ]

    def _process(self, name: str, *arguments: str) -> Process:
        return Process(name, [sys.executable, "-m", "lockstep", *arguments], self._folder / f"{name}.log")


def _rule(resource: str) -> Json:
    group = "" if resource == "pods" else "example.com"
    return {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}
