"""A real control plane on loopback: etcd, kube-apiserver, controller manager, schedulers, LWS, kwok."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.cluster import certificates, commands, foreign_schedulers, kinds, users
from tests.cluster.access import Access
from tests.cluster.audit import AuditLog
from tests.cluster.client import Client
from tests.cluster.kinds import Kinds
from tests.cluster.lws import LeaderWorkerSets, lws_manifest
from tests.cluster.nodes import Nodes
from tests.cluster.resources import (
    COSCHEDULING_GROUPS,
    EVENTS,
    KAI_GROUPS,
    KOORDINATOR_GROUPS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NATIVE_GROUPS,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    VOLCANO_GROUPS,
    Resource,
)
from tests.cluster.waiting import Waiter, WaitError
from tests.cluster.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.cluster.processes import Process

    PlaneFactory = Callable[["Options"], "ControlPlane"]

VOLCANO_CRDS = kinds.VOLCANO_CRDS

# Owners first: a StatefulSet that is left makes its pods again.
_GROUPS = (NATIVE_GROUPS, COSCHEDULING_GROUPS, VOLCANO_GROUPS, KOORDINATOR_GROUPS, KAI_GROUPS)
_RESET = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS, *_GROUPS)
_LAST = ("kube-apiserver", "etcd")


@dataclass(frozen=True)
class Options:
    """What a control plane consists of.

    Attributes:
        gates: feature gates of API server, controller manager and scheduler.
        runtime_config: API versions that the API server serves beside its usual ones.
        scheduler: run kube-scheduler.
        kwok: run kwok, without which no node gets ready and no pod runs.
        lws: run LWS with its webhooks.
        lws_provider: turn on LWS's own gang scheduling (`volcano`).
        coscheduling: serve the scheduler-plugins kinds and run its scheduler.
        coscheduling_controller: run its controller too, which writes PodGroup status.
        volcano: serve Volcano's kinds; nothing of Volcano runs.
        koordinator: serve Koordinator's kinds and run its scheduler.
        kai: serve KAI's kinds and run its scheduler, binder and podgrouper (see `foreign_schedulers`).
    """

    gates: Mapping[str, bool] = field(default_factory=lambda: {"GenericWorkload": True})
    runtime_config: Mapping[str, str] = field(default_factory=lambda: {"scheduling.k8s.io/v1beta1": "true"})
    scheduler: bool = True
    kwok: bool = True
    lws: bool = True
    lws_provider: str | None = None
    coscheduling: bool = False
    coscheduling_controller: bool = False
    volcano: bool = False
    koordinator: bool = False
    kai: bool = False


class ControlPlane:
    """One control plane: `with ControlPlane(binaries, folder) as plane: ...`.

    Attributes:
        api: a client with all rights.
        kinds: register custom kinds.
        nodes: add, cordon, delete nodes.
        lws: create LeaderWorkerSets, see where their pods are.
        webhooks: register a mutating webhook.
        access: give rights to users that have none.
        audit: who wrote what.
        users: everyone who has a token, by key.
    """

    def __init__(self, binaries: Path, folder: Path, options: Options | None = None) -> None:
        """Write certificates, tokens and configuration into `folder`; nothing is started yet."""
        self.options = options or Options()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificates = certificates.create(folder / "certificates")
        self.layout = commands.Layout(folder, binaries, self.certificates)
        self.users = users.draw()
        self._write_users()
        self._processes = {process.name: process for process in self._commands()}
        self._clients: dict[str, Client] = {}
        waiter = Waiter(self.report)
        self.wait, self.holds = waiter.wait, waiter.holds
        self.api = self.client("admin")
        self.audit = AuditLog(folder / "audit.log")
        self.kinds = Kinds(self.api, waiter)
        self.nodes = Nodes(self.api, waiter)
        self.lws = LeaderWorkerSets(self.api)
        self.webhooks = Webhooks(self.api, waiter)
        self.access = Access(self.api, waiter, self.users)

    def _write_users(self) -> None:
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(users.token_file(self.users.values()))
        for user in self.users.values():
            path = self.kubeconfig(user.key)
            path.touch(mode=0o600)
            path.write_text(users.kubeconfig(user, self.server, self.certificates.ca))

    def _commands(self) -> Iterator[Process]:
        options, layout = self.options, self.layout
        yield commands.etcd(layout)
        yield commands.api_server(layout, options.gates, options.runtime_config)
        yield commands.controller_manager(layout, options.gates)
        if options.scheduler:
            yield commands.scheduler(layout, options.gates)
        if options.kwok:
            yield commands.kwok(layout)
        if options.lws:
            yield commands.lws(layout, options.lws_provider)
        if options.coscheduling:
            yield commands.coscheduling(layout)
        if options.coscheduling_controller:
            yield commands.coscheduling_controller(layout)
        if options.koordinator:
            yield foreign_schedulers.koordinator(layout)
        if options.kai:
            yield from foreign_schedulers.kai(layout)

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self.layout.server

    def kubeconfig(self, user: str = "admin") -> Path:
        """Kubeconfig file of a user, by its key."""
        return self.layout.kubeconfig(user)

    def client(self, user: str) -> Client:
        """A client that acts as a user, by its key."""
        if user not in self._clients:
            self._clients[user] = Client(self.server, self.users[user].token, self.certificates.ca)
        return self._clients[user]

    def __enter__(self) -> Self:
        """Start everything; stop what was started when that fails."""
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything."""
        self.down()

    def up(self) -> None:
        """Start everything and wait until it answers.

        Kinds are registered before the controller manager starts: its garbage collector looks for new ones only every
        30 s.
        """
        self.start("etcd")
        self._processes["kube-apiserver"].start()
        definitions = kinds.read(self._kinds())
        self._wait_ready("kube-apiserver")
        self.kinds.register(definitions)
        self._prepare()
        rest = [name for name in self._processes if name not in _LAST]
        for name in rest:
            self._processes[name].start()
        for name in rest:
            self._wait_ready(name)
        self.wait("default service account", lambda: self.api.get(SERVICE_ACCOUNTS, "default"), 60)

    def _prepare(self) -> None:
        if self.options.koordinator:
            foreign_schedulers.prepare_koordinator(self.api)
        if self.options.kai:
            foreign_schedulers.prepare_kai(self.api)

    def down(self) -> None:
        """Stop everything, etcd last, and drop etcd's data; logs stay."""
        for client in self._clients.values():
            client.close()
        clients = [process for name, process in self._processes.items() if name not in _LAST]
        for process in clients:
            process.kill()
        for name in _LAST:
            self._processes[name].kill()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def start(self, name: str) -> None:
        """Start one component (`kube-apiserver`, `lws`, ...) and wait until it answers."""
        self._processes[name].start()
        self._wait_ready(name)

    def stop(self, name: str) -> None:
        """Stop one component with TERM; its data stays.

        The API server takes 10 s for this while others watch; `kill` is quicker.
        """
        self._processes[name].stop()

    def kill(self, name: str) -> None:
        """Stop one component with KILL; its data stays."""
        self._processes[name].kill()

    def restart(self, name: str) -> None:
        """Stop and start one component."""
        self.stop(name)
        self.start(name)

    def pids(self) -> dict[str, int]:
        """Process ids of the components that run, by name."""
        return {name: process.pid for name, process in self._processes.items() if process.pid is not None}

    def _wait_ready(self, name: str) -> None:
        if name == "kube-apiserver":
            self.wait("API server is ready", lambda: self._alive(name) and self._ready(), 120, 0.1)
        if name == "lws":
            self.webhooks.register_lws(self.layout.lws, self.certificates.ca.read_bytes())
            self.wait("LWS's webhooks answer", lambda: self._alive(name) and self._lws_answers(), 120, 0.1)

    def _alive(self, name: str) -> bool:
        code = self._processes[name].died
        if code is not None:
            raise WaitError(f"{name}: must run, ended with code {code}\n{self.report()}")
        return True

    def _ready(self) -> bool:
        return self.api.text("GET", "/readyz")[0] == 200

    def _lws_answers(self) -> bool:
        probe = lws_manifest("probe", 0, 1)
        return bool(self.api.create(LEADER_WORKER_SETS, probe, query="dryRun=All"))

    def _kinds(self) -> list[Path]:
        options, folder = self.options, self.layout.binaries / "crds"
        files = [folder / name for name in kinds.LWS_CRDS if options.lws]
        if options.coscheduling or options.coscheduling_controller:
            files += [folder / name for name in kinds.COSCHEDULING_CRDS]
        if options.volcano or options.lws_provider == "volcano":
            files.append(VOLCANO_CRDS)
        files += [folder / name for name in kinds.KOORDINATOR_CRDS if options.koordinator]
        files += [folder / name for name in kinds.KAI_CRDS if options.kai]
        return files

    def register_kinds(self, *files: Path) -> None:
        """Apply CustomResourceDefinitions and wait until the API server serves them."""
        self.kinds.register(kinds.read(files))

    def serves(self, resource: Resource) -> bool:
        """Does the API server serve this kind?"""
        return self.kinds.served(resource)

    def kubectl(self, *arguments: str, text: str | None = None, user: str = "admin") -> str:
        """Run kubectl and return what it prints; `text` is its standard input.

        Raises:
            RuntimeError: it failed; the message is its own.
        """
        command = [str(self.layout.binaries / "kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        environment = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply_yaml(self, text: str) -> None:
        """Apply manifests by kubectl's server-side apply."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be created in it."""
        self.api.create(NAMESPACES, NAMESPACES.make(name, metadata={"labels": dict(labels or {})}))
        self.wait(f"service account of {name}", lambda: self.api.get(SERVICE_ACCOUNTS, "default", name))

    def reset(self, seconds: float = 120) -> None:
        """Delete every LWS, pod, group object, node and event, so that tests of one module don't meet.

        Webhook configurations and rights stay.
        """
        end = time.monotonic() + seconds
        for resource in filter(self.serves, _RESET):
            left = f"{resource.plural} of {resource.version}: none left"
            gone = lambda resource=resource: self._delete_everywhere(resource) == 0  # noqa: E731
            self.wait(left, gone, max(1, end - time.monotonic()))
        self.api.request("DELETE", NODES.collection(), {})
        self.api.delete_all(EVENTS)

    def _delete_everywhere(self, resource: Resource) -> int:
        items = self.api.items(resource)
        for namespace in {item["metadata"]["namespace"] for item in items}:
            self.api.delete_all(resource, namespace, grace=0)
        return len(items)

    def report(self, lines: int = 12) -> str:
        """Each component's state and the last lines of its log."""
        return "\n".join(
            f"--- {name}: {_state(process)}\n{process.tail(lines)}" for name, process in self._processes.items()
        )


def _state(process: Process) -> str:
    if process.alive:
        return f"runs as {process.pid}"
    return "stopped" if process.died is None else f"ended with code {process.died}"
