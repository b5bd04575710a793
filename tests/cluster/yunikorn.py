"""YuniKorn beside a real control plane: not the real one, which the module proxy doesn't serve, but the model of it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from tests.cluster.client import ApiError, UnreachableError
from tests.cluster.resources import PODS
from tests.reconciler.yunikorn_model import YuniKorn, is_placeholder

if TYPE_CHECKING:
    from tests.cluster.client import Client
    from tests.cluster.resources import Json

EVERY = 0.05


class RealPods:
    """Pods of a real API server, as the model reads and writes them."""

    def __init__(self, api: Client) -> None:
        """Act through `api`."""
        self._api = api

    def all(self) -> list[Json]:
        """Give all pods that are not being deleted."""
        return [pod for pod in self._api.items(PODS) if "deletionTimestamp" not in pod["metadata"]]

    def create(self, pod: Json) -> None:
        """Create a placeholder."""
        self._api.create(PODS, pod)

    def bind(self, pod: Json, node: str) -> None:
        """Bind as schedulers do."""
        meta = pod["metadata"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
        self._api.request("POST", PODS.item(meta["name"], meta["namespace"], "binding"), body)

    def fail(self, pod: Json) -> None:
        """Set a pod to Failed, as YuniKorn does."""
        meta = pod["metadata"]
        status = {"status": {"phase": "Failed", "reason": "ResourceReservationTimeout"}}
        self._api.merge(PODS, meta["name"], status, meta["namespace"], "status")

    def remove(self, pod: Json) -> None:
        """Delete a placeholder at once."""
        meta = pod["metadata"]
        self._api.delete(PODS, meta["name"], meta["namespace"], grace=0)


class Scheduler:
    """The model at work: `with Scheduler(api, {"n1": 8}) as scheduler: ...`.

    Attributes:
        nodes: name -> GPUs; a test may add some.
        pods: the pods.
    """

    def __init__(self, api: Client, nodes: dict[str, int]) -> None:
        """Prepare; nothing runs yet."""
        self.pods, self.nodes = RealPods(api), dict(nodes)
        self._model = YuniKorn(self.pods, self.nodes, time.time)
        self._restart = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yunikorn", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stopping.set()
        self._thread.join(30)

    def restart(self) -> None:
        """Forget everything and read it from the pods again; returns when that is done."""
        self._restart.set()
        while self._restart.is_set() and self._thread.is_alive():
            time.sleep(EVERY)

    def placeholders(self) -> list[Json]:
        """Give the placeholders there are."""
        return [pod for pod in self.pods.all() if is_placeholder(pod)]

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            try:
                self._step()
            except (ApiError, UnreachableError):
                # The pod has changed or gone meanwhile: the next look sees how things are.
                continue

    def _step(self) -> None:
        if self._restart.is_set():
            self._model.restart()
            self._restart.clear()
        moves = self._model.moves()
        if moves:
            moves[0]()
