"""Lockstep's own processes beside a control plane: the commands users run, with the rights rendered for them."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from reconciler.rights import policy_rules, reconciler_rights
from schedulers.registry import all_providers
from tests.cluster.processes import Process, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane

LockstepFactory = Callable[..., "Lockstep"]

WEBHOOK = "lockstep-mutating"
"""Sorts before `lws-...`, as the design asks."""

USER = "lockstep-reconciler"


class Lockstep:
    """A webhook and any number of reconcilers for one control plane."""

    def __init__(self, plane: ControlPlane, folder: Path, *, configuration: dict[str, object] | None = None) -> None:
        """Prepare; `configuration` is written as the processes' configuration file, without it none is given."""
        self._plane, self._folder = plane, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._configuration = configuration
        self.port = free_port()
        self.webhook = self._process("webhook", *self._serve_arguments())
        self.reconcilers: list[Process] = []
        self.metrics_ports: list[int] = []

    def __enter__(self) -> Self:
        """Start webhook and one reconciler and register the webhook; stop what was started when that fails."""
        try:
            self.start_webhook()
            self.register()
            self.start_reconciler()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Unregister and stop."""
        self._plane.webhooks.unregister_mutating(WEBHOOK)
        self._stop()

    def _stop(self) -> None:
        for process in (*self.reconcilers, self.webhook):
            process.stop()

    def register(self) -> None:
        """Register the webhook with the API server."""
        ca = self._plane.certificates.ca.read_bytes()
        self._plane.webhooks.register_mutating(WEBHOOK, f"https://127.0.0.1:{self.port}", ca)

    def start_webhook(self) -> None:
        """Start the webhook and wait until it listens."""
        self.webhook.start()
        self._plane.wait("webhook listens", self._listens, 20, 0.05)

    def start_reconciler(self, *arguments: str, user: str = "reconciler") -> Process:
        """Start one more reconciler, as a user with just the rendered rights; returns when its caches are whole."""
        self._plane.access.grant(user, policy_rules(reconciler_rights(all_providers().values())))
        port = free_port()
        number = len(self.reconcilers)
        process = self._process(
            f"reconciler-{number}",
            "reconcile",
            "--kubeconfig",
            str(self._plane.kubeconfig(user)),
            "--metrics-addr",
            f"127.0.0.1:{port}",
            *self._config_arguments(),
            *arguments,
        )
        self.reconcilers.append(process)
        self.metrics_ports.append(port)
        process.start()
        self.wait_ready(number)
        return process

    def wait_ready(self, number: int = 0) -> None:
        """Wait until a reconciler's caches are whole."""
        self._plane.wait("reconciler is ready", lambda: self.get(number, "/readyz")[0] == 200, 30, 0.1)

    def get(self, number: int, path: str) -> tuple[int, str]:
        """GET a path of a reconciler's health port."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.metrics_ports[number]}{path}")
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            raise LookupError(f"reconciler {number}: {error}") from error

    def metric(self, name: str, number: int = 0, **labels: str) -> float:
        """Read a metric of a reconciler; 0 where it isn't there."""
        inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        sample = f"{name}{{{inside}}}" if inside else name
        for line in self.get(number, "/metrics")[1].splitlines():
            text, _, value = line.rpartition(" ")
            if text == sample:
                return float(value)
        return 0.0

    def report(self) -> str:
        """Log tails of all processes."""
        return "\n".join(f"--- {p.name}\n{p.tail(20)}" for p in (self.webhook, *self.reconcilers))

    def _listens(self) -> bool:
        if self.webhook.died is not None:
            raise AssertionError(f"webhook ended with {self.webhook.died}: {self.webhook.tail()}")
        return '"serving"' in self.webhook.tail(400)

    def _serve_arguments(self) -> list[str]:
        certificates = self._plane.certificates
        return [
            "serve",
            "--addr",
            f"127.0.0.1:{self.port}",
            "--cert",
            str(certificates.certificate),
            "--key",
            str(certificates.key),
            "--drain-seconds",
            "0",
            *self._config_arguments(),
        ]

    def _config_arguments(self) -> list[str]:
        if self._configuration is None:
            return []
        path = self._folder / "configuration.json"
        head = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}
        path.write_text(json.dumps(head | self._configuration))
        return ["--config", str(path)]

    def _process(self, name: str, *arguments: str) -> Process:
        return Process(name, [sys.executable, "-m", "lockstep", *arguments], self._folder / f"{name}.log")
