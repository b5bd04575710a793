"""YuniKorn's reactions, as far as gangs depend on them: applications, placeholders, time-outs, restarts.

After what was seen on the real scheduler (`tests/data/observed/yunikorn`) and its sources: apache/yunikorn-k8shim
`pkg/cache/application.go`, `pkg/cache/metadata.go`, `pkg/cache/placeholder.go`; apache/yunikorn-core
`pkg/scheduler/objects/application.go`, `pkg/scheduler/objects/queue.go`. Of resources it knows GPUs alone.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from tests.builders import JsonObject

APP_ID: Final = "yunikorn.apache.org/app-id"
TASK_GROUP: Final = "yunikorn.apache.org/task-group-name"
TASK_GROUPS: Final = "yunikorn.apache.org/task-groups"
PARAMETERS: Final = "yunikorn.apache.org/schedulingPolicyParameters"
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"
GPUS: Final = "nvidia.com/gpu"

USUAL_TIMEOUT: Final = 900.0
"""Seconds, of the core, where the application asks for none."""

Move = Callable[[], None]


class Pods(Protocol):
    """Where the pods are: a model of the API server, or a real one."""

    def all(self) -> list[JsonObject]:
        """Give all pods of the cluster."""

    def create(self, pod: JsonObject) -> None:
        """Create a placeholder."""

    def bind(self, pod: JsonObject, node: str) -> None:
        """Give a pod its node."""

    def fail(self, pod: JsonObject) -> None:
        """Set a pod to Failed."""

    def remove(self, pod: JsonObject) -> None:
        """Delete a placeholder."""


@dataclass
class Application:
    """One application.

    Attributes:
        name: its id.
        originator: the first of its pods that was seen.
        groups: its task groups as that pod declares them.
        timeout: seconds from the first placed placeholder on, or from the pod's creation where `asked`.
        asked: whether the pod asks for a time-out.
        hard: whether its pods fail when it gives up.
        reserving: whether its pods wait for placeholders.
        known: UIDs of its pods.
        since: when the first placeholder was placed.
    """

    name: str
    originator: JsonObject
    groups: list[JsonObject] = field(default_factory=list)
    timeout: float = USUAL_TIMEOUT
    asked: bool = False
    hard: bool = False
    reserving: bool = False
    known: set[str] = field(default_factory=set)
    since: float | None = None


class YuniKorn:
    """The scheduler. `moves` may come in any order: reserved asks are tried in the order of a Go map."""

    def __init__(self, pods: Pods, nodes: Mapping[str, int], now: Callable[[], float]) -> None:
        """Start with nothing known.

        Args:
            pods: where pods are read and written.
            nodes: name -> GPUs; may grow.
            now: seconds since 1970.

        Attribute `gave_up` names the applications whose placeholders have timed out.
        """
        self.pods, self.nodes, self.now = pods, nodes, now
        self.apps: dict[str, Application] = {}
        self.gave_up: set[str] = set()
        self._numbers = itertools.count(1)

    def moves(self) -> list[Move]:
        """Give what may happen next."""
        pods = [pod for pod in self.pods.all() if schedulable(pod)]
        self._forget(pods)
        real = [pod for pod in pods if not is_placeholder(pod)]
        unknown = [pod for pod in real if pod["metadata"]["uid"] not in self._app(pod).known]
        found: list[Move] = [lambda pod=pod: self._notice(pod) for pod in unknown]  # type: ignore[misc]
        for app in self.apps.values():
            mine = [pod for pod in pods if app_of(pod) == app.name]
            found += self._moves_of(app, mine, pods)
        return found

    def restart(self) -> None:
        """Forget everything and read it from the pods again, the oldest first."""
        self.apps.clear()
        pods = sorted((pod for pod in self.pods.all() if schedulable(pod)), key=_created)
        for pod in (pod for pod in pods if not is_placeholder(pod)):
            self._add(pod)
        for app in list(self.apps.values()):
            held = [pod for pod in pods if app_of(pod) == app.name and is_placeholder(pod)]
            self._recover(app, held)

    def _recover(self, app: Application, held: list[JsonObject]) -> None:
        app.reserving = bool(app.groups)
        if any(bound(pod) for pod in held):
            app.since = self.now()
        if not app.groups or held:
            return
        if app.asked and self.now() - _created(app.originator) >= app.timeout:
            self._give_up(app, [])
            return
        self._reserve(app)

    def _app(self, pod: JsonObject) -> Application:
        return self.apps.get(app_of(pod), Application("", pod))

    def _notice(self, pod: JsonObject) -> None:
        """See a pod for the first time; what the first pod of an application declares counts, and nothing else."""
        app = self._add(pod)
        if len(app.known) == 1 and app.groups:
            if app.asked and self.now() - _created(pod) >= app.timeout:
                self._give_up(app, [])
                return
            app.reserving = True
            self._reserve(app)

    def _add(self, pod: JsonObject) -> Application:
        app = self.apps.get(app_of(pod))
        if app is None:
            app = self.apps[app_of(pod)] = application(pod)
        app.known.add(pod["metadata"]["uid"])
        return app

    def _reserve(self, app: Application) -> None:
        for group in app.groups:
            for _ in range(group["minMember"]):
                self.pods.create(placeholder(app, group, next(self._numbers)))

    def _moves_of(self, app: Application, mine: list[JsonObject], all_pods: list[JsonObject]) -> Iterator[Move]:
        held = [pod for pod in mine if is_placeholder(pod)]
        if app.since is not None and held and self.now() >= app.since + app.timeout:
            yield lambda: self._give_up(app, held)
            return
        if app.reserving:
            yield from self._reserving(app, held, all_pods)
            return
        for pod in mine:
            if not is_placeholder(pod) and not bound(pod) and pod["metadata"]["uid"] in app.known:
                yield from self._running(pod, held, all_pods)

    def _reserving(self, app: Application, held: list[JsonObject], all_pods: list[JsonObject]) -> Iterator[Move]:
        if held and all(bound(pod) for pod in held):
            yield lambda: setattr(app, "reserving", False)
        for pod in held:
            node = self._room(pod, all_pods)
            if not bound(pod) and node is not None:
                yield lambda pod=pod, node=node: self._place_first(app, pod, node)  # type: ignore[misc]

    def _place_first(self, app: Application, pod: JsonObject, node: str) -> None:
        app.since = self.now() if app.since is None else app.since
        self.pods.bind(pod, node)

    def _running(self, pod: JsonObject, held: list[JsonObject], all_pods: list[JsonObject]) -> Iterator[Move]:
        """Replace a placeholder of the pod's task group; without one the pod is an ordinary ask."""
        group = pod["metadata"]["annotations"].get(TASK_GROUP)
        stand_in = next((one for one in held if one["metadata"]["annotations"][TASK_GROUP] == group), None)
        if stand_in is not None:
            yield lambda: self._replace(stand_in, pod)
        elif (node := self._room(pod, all_pods)) is not None:
            yield lambda: self.pods.bind(pod, node)

    def _replace(self, stand_in: JsonObject, pod: JsonObject) -> None:
        self.pods.remove(stand_in)
        self.pods.bind(pod, stand_in["spec"]["nodeName"])

    def _give_up(self, app: Application, held: list[JsonObject]) -> None:
        """Let placeholders go; pods that run go on, pods that waited for all of them fail, or start one by one."""
        self.gave_up.add(app.name)
        for pod in held:
            self.pods.remove(pod)
        failed, app.since, app.reserving = app.reserving and app.hard, None, False
        if failed or (not held and app.hard):
            for pod in self.pods.all():
                if app_of(pod) == app.name and schedulable(pod) and not is_placeholder(pod):
                    self.pods.fail(pod)

    def _forget(self, pods: list[JsonObject]) -> None:
        """Forget applications without a pod, and the placeholders that went with their originator."""
        there = {pod["metadata"]["uid"] for pod in pods if not is_placeholder(pod)}
        for app in list(self.apps.values()):
            app.known &= there
            if not app.known:
                del self.apps[app.name]

    def _room(self, pod: JsonObject, pods: list[JsonObject]) -> str | None:
        free = dict(self.nodes)
        for other in pods:
            if bound(other):
                free[other["spec"]["nodeName"]] = free.get(other["spec"]["nodeName"], 0) - asks(other)
        return next((name for name in sorted(free) if free[name] >= asks(pod)), None)


def application(pod: JsonObject) -> Application:
    """Read an application from its first pod."""
    annotations = pod["metadata"].get("annotations", {})
    parameters = annotations.get(PARAMETERS, "")
    timeout = re.search(r"placeholderTimeoutInSeconds=(\d+)", parameters)
    return Application(
        app_of(pod),
        pod,
        json.loads(annotations.get(TASK_GROUPS, "[]")),
        USUAL_TIMEOUT if timeout is None else float(timeout[1]),
        asked=timeout is not None,
        hard="gangSchedulingStyle=Hard" in parameters,
    )


def placeholder(app: Application, group: JsonObject, number: int) -> JsonObject:
    """Build a placeholder as the shim does, as far as anybody reads it."""
    owner, quantities = app.originator["metadata"], dict(group["minResource"])
    own = {PLACEHOLDER: "true", TASK_GROUP: group["name"]}
    copied = {key: owner["annotations"][key] for key in (TASK_GROUPS, PARAMETERS) if key in owner["annotations"]}
    name = f"tg-{app.name[:28]}-{group['name'][:20]}-{number}"
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["name"], "uid": owner["uid"], "controller": False}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner.get("namespace", ""),
            "labels": {APP_ID: app.name, "yunikorn.apache.org/queue": ""},
            "annotations": {**own, **copied},
            "ownerReferences": [reference],
        },
        "spec": {
            "schedulerName": "yunikorn",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.7",
                    "resources": {"requests": quantities, "limits": quantities},
                }
            ],
        },
    }


def app_of(pod: JsonObject) -> str:
    """Give the application of a pod; pods of a namespace that name none share one."""
    labels = pod["metadata"].get("labels", {})
    return str(labels.get(APP_ID) or f"yunikorn-{pod['metadata'].get('namespace', '')}-autogen")


def schedulable(pod: JsonObject) -> bool:
    """Tell whether YuniKorn looks at a pod: its own, without a gate, not finished."""
    spec, phase = pod["spec"], pod.get("status", {}).get("phase")
    return spec.get("schedulerName") == "yunikorn" and not spec.get("schedulingGates") and phase != "Failed"


def is_placeholder(pod: JsonObject) -> bool:
    """Tell a placeholder from a real pod."""
    return PLACEHOLDER in pod["metadata"].get("annotations", {})


def bound(pod: JsonObject) -> bool:
    """Tell whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def asks(pod: JsonObject) -> int:
    """Give the GPUs that a pod asks for."""
    return sum(int(one.get("resources", {}).get("requests", {}).get(GPUS, 0)) for one in pod["spec"]["containers"])


def _created(pod: JsonObject) -> float:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp()
