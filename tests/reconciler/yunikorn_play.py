"""A cluster in small whose replicas YuniKorn places: `tests.schedulers.scene` with the model of YuniKorn in it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from reconciler.actions import Action
from reconciler.decisions import decide
from reconciler.gates import open_gates
from reconciler.replicas import Sight
from reconciler.turns import line_up, take_turns
from schedulers.configuration import Configuration, default_configuration
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import YUNIKORN, first, merged, writes_of
from tests.reconciler.yunikorn_model import YuniKorn, app_of, bound, is_placeholder
from tests.schedulers.scene import RUNNING, Scene

START: Final = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
MOST_STEPS: Final = 20_000


class Play(Scene):
    """One cluster. Time goes on by one second with every pod that is made, and when a test says so.

    Attributes:
        now: seconds since 1970.
        nodes: name -> GPUs; a pod of `apply` takes 8.
        yunikorn: the scheduler.
        disturbed: applications of which a worker was deleted.
    """

    def __init__(self, nodes: int = 0, configuration: Configuration | None = None) -> None:
        """Start with so many nodes that take one pod each."""
        super().__init__(YUNIKORN, 0, configuration or default_configuration())
        self.now = START
        self.nodes: dict[str, int] = {}
        self.add_nodes(nodes)
        self.yunikorn = YuniKorn(self, self.nodes, lambda: self.now)
        self.disturbed: set[str] = set()

    def delete_worker(self, pod: JsonObject) -> None:
        """Delete a worker alone; its StatefulSet makes it anew."""
        self.disturbed.add(app_of(pod))
        self.world.remove(pod)

    def add_nodes(self, number: int) -> None:
        """Add nodes that take one pod each."""
        for _ in range(number):
            self.nodes[f"n{len(self.nodes)}"] = 8

    # What the model of YuniKorn does to pods

    def all(self) -> list[JsonObject]:
        """Give all pods."""
        return self.world.of_kind("Pod")

    def create(self, pod: JsonObject) -> None:
        """Create a placeholder."""
        self.world.put(self._stamped(pod))

    def bind(self, pod: JsonObject, node: str) -> None:
        """Place a pod; it runs at once."""
        since = {"conditions": [_condition("Ready", self._time()), _condition("PodScheduled", self._time())]}
        self._put(pod, merged(RUNNING, {"spec": {"nodeName": node}, "status": since}))

    def fail(self, pod: JsonObject) -> None:
        """Set a pod to Failed."""
        self._put(pod, {"status": {"phase": "Failed"}})

    def remove(self, pod: JsonObject) -> None:
        """Delete a pod."""
        self.world.remove(pod)

    def _put(self, pod: JsonObject, change: JsonObject) -> None:
        meta = pod["metadata"]
        live = self.world.objects["Pod", meta.get("namespace", ""), meta["name"]]
        self.world.put(merged(live, change))

    # The actors

    def lws_controller(self) -> bool:
        """Take one step of LWS's, or make a replica with a failed pod anew, or collect what has lost its owner."""
        failed = next((pod for pod in self.all() if pod["status"].get("phase") == "Failed"), None)
        if failed is not None:
            labels, meta = failed["metadata"]["labels"], failed["metadata"]
            leader = f"{labels[f'{LWS}name']}-{labels[f'{LWS}group-index']}"
            self.delete_leader(leader, meta["namespace"])
        before = {pod["metadata"]["uid"] for pod in self.all()}
        acted = super().lws_controller()
        for pod in self.all():
            if pod["metadata"]["uid"] not in before:
                self._put(self._stamped(pod), {})
        return self._collect_placeholders() or acted or failed is not None

    def _stamped(self, pod: JsonObject) -> JsonObject:
        self.now += 1
        pod["metadata"]["creationTimestamp"] = self._time()
        pod.setdefault("status", {"phase": "Pending"})
        return pod

    def _time(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _collect_placeholders(self) -> bool:
        uids = {pod["metadata"]["uid"] for pod in self.all()}
        lost = [pod for pod in self.placeholders() if pod["metadata"]["ownerReferences"][0]["uid"] not in uids]
        self.world.remove(*lost)
        return bool(lost)

    def reconciler(self, most: int | None = None) -> bool:
        """Decide about everything as a process that has just been started; after `most` writes it is killed."""
        actions = writes_of(self.wanted())
        for action in actions[:most]:
            self.world.carry_out(action)
        return bool(actions)

    def wanted(self) -> list[Action]:
        """Give what the reconciler would do."""
        sights = self.sights()
        turns = take_turns(line_up(sights, self.configuration), self.configuration)
        actions = [action for sight in sights for action in decide(sight, self.configuration, first).actions]
        for opening in turns.openings:
            actions += open_gates(opening.place.standing, opening.replica)
        return actions

    def sights(self) -> list[Sight]:
        """See every replica."""
        cache = self.world.cache()
        found = [cache.sight(key, None, age=10.0, recreations=0, now=self.now) for key in self.leaders()]
        return [sight for sight in found if isinstance(sight, Sight)]

    def scheduler(self, pick: Callable[[int], int] = lambda _: 0) -> bool:
        """Take one of the steps that YuniKorn may take."""
        moves = self.yunikorn.moves()
        if moves:
            moves[pick(len(moves))]()
        return bool(moves)

    def settle(self, pick: Callable[[int], int] = lambda _: 0) -> None:
        """Let everyone act until nobody has anything to do."""
        for _ in range(MOST_STEPS):
            acted = [self.lws_controller(), self.reconciler(), self.scheduler(pick)]
            if not any(acted):
                return
        raise AssertionError("the actors never come to rest")

    # What a test looks at

    def replicas(self) -> dict[str, list[JsonObject]]:
        """Give the real pods of each application."""
        found: dict[str, list[JsonObject]] = {}
        for pod in self.all():
            if not is_placeholder(pod):
                found.setdefault(app_of(pod), []).append(pod)
        return found

    def open(self) -> list[str]:
        """Give the applications of which a pod waits without our gate."""
        return [app for app, pods in self.replicas().items() if any(map(waits, pods))]

    def whole(self) -> list[str]:
        """Give the applications of which as many pods have a node as the replica has."""
        return [app for app, pods in self.replicas().items() if sum(map(bound, pods)) == size_of(pods[0])]

    def in_part(self) -> list[str]:
        """Give the applications of which some pods have a node and some wait."""
        return [app for app, pods in self.replicas().items() if len({bound(pod) for pod in pods}) > 1]

    def placeholders(self) -> list[JsonObject]:
        """Give the placeholders."""
        return [pod for pod in self.all() if is_placeholder(pod)]

    def declared(self) -> Iterator[JsonObject]:
        """Give the real pods that carry task groups."""
        for pod in self.all():
            if not is_placeholder(pod) and "yunikorn.apache.org/task-groups" in pod["metadata"]["annotations"]:
                yield pod


def gated(pod: JsonObject) -> bool:
    """Tell whether our gate holds a pod."""
    return {"name": "lockstep.dev/group"} in (pod["spec"].get("schedulingGates") or [])


def waits(pod: JsonObject) -> bool:
    """Tell whether a pod waits for its scheduler."""
    return not gated(pod) and not bound(pod) and pod["status"].get("phase") != "Failed"


def size_of(pod: JsonObject) -> int:
    """Give the size of a pod's replica."""
    return int(pod["metadata"]["annotations"][f"{LWS}size"])


def _condition(kind: str, when: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastTransitionTime": when}
