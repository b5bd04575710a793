"""A cluster in small: admission, LWS's controllers, a scheduler that places whole groups, and our reconciler.

Each actor takes one step at a time, so that a test can let them act in any order. Nothing here knows a provider.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from gangs import late
from gangs.names import key_of_lws
from reconciler.actions import Action, OpenGate
from reconciler.cache import is_leader
from reconciler.decisions import decide
from reconciler.gates import open_gates
from reconciler.replicas import Sight
from reconciler.store import Key
from reconciler.turns import line_up, take_turns
from reconciler.wanted import minimum_of
from schedulers.abilities import minimum_path
from schedulers.configuration import Configuration, default_configuration
from schedulers.contract import Provider
from tests.builders import LWS, JsonObject, changed, operations, patched, review
from tests.reconciler.sights import World, decoded, first, merged, writes_of
from webhook.mutation import Decider

REVISION: Final = "69fbc5554"
REQUESTS: Final = {"cpu": "1", "nvidia.com/gpu": "8"}

RUNNING: Final[JsonObject] = {
    "spec": {"nodeName": "node"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


class Scene:
    """Objects and actors of one cluster in which all LWS use one scheduler.

    Attributes:
        world: the objects, and the API server's rules for the reconciler's writes.
        room: how many more pods find a node.
        decide_admission: our webhook.
    """

    def __init__(
        self,
        provider: Provider,
        room: int = 10_000,
        configuration: Configuration | None = None,
        *,
        webhook: bool = True,
    ) -> None:
        """Start with an empty cluster; without our webhook, as in a namespace that its selector leaves out."""
        self.provider, self.room, self._webhook = provider, room, webhook
        self.configuration = configuration or default_configuration()
        self.world = World(configuration=self.configuration)
        numbers = itertools.count(1)
        self.decide_admission = Decider(self.configuration, lambda: f"{next(numbers):040x}")
        self._lives = itertools.count(1)

    # What a user does

    def apply(self, name: str = "vllm", namespace: str = "team-a", **difference: Any) -> None:
        """Create or change an LWS.

        Args:
            name: its name.
            namespace: its namespace.
            difference: `size`, `replicas`, `spec`, `spec_of_template`, `labels` and `annotations` of the LWS, `pod`
                (`metadata` and `spec` of its pod template).
        """
        template = {
            "metadata": {"labels": {}, "annotations": {}, **difference.get("pod", {}).get("metadata", {})},
            "spec": {
                "schedulerName": self.provider.scheduler_names[0],
                "containers": [
                    {"name": "vllm", "image": "registry.example/vllm:1", "resources": {"requests": REQUESTS}}
                ],
                **difference.get("pod", {}).get("spec", {}),
            },
        }
        size = difference.get("size", 2)
        spec = {
            "replicas": difference.get("replicas", 1),
            "leaderWorkerTemplate": {
                "size": size,
                "workerTemplate": template,
                **difference.get("spec_of_template", {}),
            },
            **difference.get("spec", {}),
        }
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"lws/{namespace}/{name}",
            "annotations": difference.get("annotations", {}),
            "labels": difference.get("labels", {}),
        }
        lws = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": metadata,
            "spec": spec,
        }
        self.world.put(lws, _revision(lws))

    def delete_leader(self, name: str = "vllm-0", namespace: str = "team-a") -> None:
        """Delete a leader pod; what it owns is collected with it."""
        self._collect(self.world.objects["Pod", namespace, name])

    # The actors; each says whether it did something

    def lws_controller(self) -> bool:
        """Take one step: a leader too many goes, a leader, a worker StatefulSet or a worker that is missing comes."""
        return any(self._step_of(lws) for lws in self.world.of_kind("LeaderWorkerSet"))

    def reconciler(self) -> bool:
        """Decide about every leader and about whose gates are opened, and write."""
        cache = self.world.cache()
        kind = next(iter(self.provider.kinds), None)
        sights = [cache.sight(key, kind, age=10.0, recreations=0) for key in self.leaders()]
        seen = [sight for sight in sights if isinstance(sight, Sight)]
        turns = take_turns(line_up(seen, self.configuration), self.configuration)
        actions = [action for sight in seen for action in decide(sight, self.configuration, first).actions]
        for opening in turns.openings:
            actions += open_gates(opening.place.standing, opening.replica)
        for action in writes_of(actions):
            self._carry_out(action)
        return bool(writes_of(actions))

    def scheduler(self) -> bool:
        """Place the members of the first group that has as many as its minimum, and room."""
        return any(self._place(*gang) for gang in self.gangs().values())

    def run(self, *actors: Callable[[], bool]) -> None:
        """Let the actors act in turn until none has anything to do."""
        acting = actors or (self.lws_controller, self.reconciler, self.scheduler)
        for _ in range(1_000_000):
            acted = [actor() for actor in acting]
            if not any(acted):
                return
        raise AssertionError("the actors never come to rest")

    # What there is

    def pods(self, **labels: str) -> list[JsonObject]:
        """Give the pods with some labels of LWS's (`name`, `group_index`, ...)."""
        wanted = {f"{LWS}{key.replace('_', '-')}": value for key, value in labels.items()}
        return [pod for pod in self.world.of_kind("Pod") if wanted.items() <= pod["metadata"]["labels"].items()]

    def leaders(self) -> list[Key]:
        """Give the keys of all leaders, in the order of their names."""
        pods = (pod for pod in self.world.of_kind("Pod") if is_leader(decoded(pod)))
        return sorted((pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods)

    def groups(self) -> list[JsonObject]:
        """Give all group objects of the provider."""
        versions = {kind.api_version: kind.kind for kind in self.provider.kinds}
        objects = self.world.objects.values()
        return [obj for obj in objects if versions.get(obj["apiVersion"]) == obj["kind"]]

    def minimum(self, group: JsonObject) -> int:
        """Give a group object's minimum."""
        (kind,) = [kind for kind in self.provider.kinds if kind.api_version == group["apiVersion"]]
        found = minimum_of(group["spec"], minimum_path(self.provider, kind))
        assert found is not None
        return found

    def gangs(self) -> dict[Key, tuple[int, list[JsonObject]]]:
        """Give what the scheduler places together: namespace and name, minimum, members; gated pods are not there yet.

        Without a kind of group object the members say it themselves, once their gates are open: room for the whole
        replica, whoever of it exists.
        """
        members: dict[Key, list[JsonObject]] = {}
        for pod in self.world.of_kind("Pod"):
            name = self.group_of(pod)
            if name is not None and not pod["spec"].get("schedulingGates"):
                members.setdefault((pod["metadata"]["namespace"], name), []).append(pod)
        if not self.provider.kinds:
            return {key: (1, pods) for key, pods in members.items()}
        found = {
            (group["metadata"]["namespace"], group["metadata"]["name"]): self.minimum(group) for group in self.groups()
        }
        return {key: (minimum, members.get(key, [])) for key, minimum in found.items()}

    def group_of(self, pod: JsonObject) -> str | None:
        """Give the group that a pod's scheduler takes it for a member of."""
        claim = self.provider.claim(decoded(pod))
        return None if claim is None else claim.group

    def bound(self) -> int:
        """Count the pods with a node."""
        return sum("nodeName" in pod["spec"] for pod in self.world.of_kind("Pod"))

    # How they do it

    def lws_all_at_once(self) -> bool:
        """Take one step of every replica that there should be."""
        sets = self.world.of_kind("LeaderWorkerSet")
        steps = [self._step_of_replica(lws, index) for lws in sets for index in range(lws["spec"]["replicas"])]
        return any(steps)

    def _step_of(self, lws: JsonObject) -> bool:
        meta, replicas = lws["metadata"], lws["spec"]["replicas"]
        if any(self._step_of_replica(lws, index) for index in range(replicas)):
            return True
        surplus = self.world.objects.get(("Pod", meta["namespace"], f"{meta['name']}-{self._highest(lws)}"))
        if surplus is not None:
            self._collect(surplus)
        return surplus is not None

    def _step_of_replica(self, lws: JsonObject, index: int) -> bool:
        name = f"{lws['metadata']['name']}-{index}"
        leader = self.world.objects.get(("Pod", lws["metadata"]["namespace"], name))
        if leader is not None:
            return self._workers_of(lws, leader, index)
        self._create(_leader(lws, name))
        return True

    def _highest(self, lws: JsonObject) -> int:
        """Give the index of the highest replica that is too many; one that there is not where none is."""
        meta, replicas = lws["metadata"], lws["spec"]["replicas"]
        mine = [name for namespace, name in self.leaders() if namespace == meta["namespace"]]
        prefix = f"{meta['name']}-"
        indexes = [
            int(name[len(prefix) :]) for name in mine if name.startswith(prefix) and name[len(prefix) :].isdigit()
        ]
        return max([index for index in indexes if index >= replicas], default=replicas)

    def _workers_of(self, lws: JsonObject, leader: JsonObject, index: int) -> bool:
        size = lws["spec"]["leaderWorkerTemplate"]["size"]
        annotations = lws["metadata"]["annotations"]
        why = late.why_late(lws["spec"].get("startupPolicy", ""), annotations, size)
        if size == 1 or (why is not None and "nodeName" not in leader["spec"]):
            return False
        namespace, name = leader["metadata"]["namespace"], leader["metadata"]["name"]
        worker_set = self.world.objects.get(("StatefulSet", namespace, name))
        if worker_set is None:
            self.world.put(_worker_set(lws, leader))
            return True
        for number in range(1, worker_set["spec"]["replicas"] + 1):
            if ("Pod", namespace, f"{name}-{number}") not in self.world.objects:
                self._create(_worker(lws, leader, index, number, worker_set["metadata"]["uid"]))
                return True
        return False

    def _create(self, pod: JsonObject) -> None:
        """Admit a pod as the API server does: our webhook, LWS's, and ours again because the pod was changed."""
        for admit in (self.admit, _lws_webhook, self.admit) if self._webhook else (_lws_webhook,):
            pod = admit(pod)
        pod["metadata"]["uid"] = f"pod/{pod['metadata']['name']}/{next(self._lives)}"
        self.world.put(pod)

    def admit(self, pod: JsonObject) -> JsonObject:
        """Let our webhook review a pod's creation."""
        answer = self.decide_admission(review(pod, namespace=pod["metadata"]["namespace"]))
        return patched(pod, operations(answer.body))

    def _collect(self, leader: JsonObject) -> None:
        """Take away a leader and, by the chain of owners, all that is owned through it."""
        gone = {leader["metadata"]["uid"]}
        self.world.remove(leader)
        while owned := [obj for obj in self.world.objects.values() if _owners(obj) & gone]:
            gone |= {obj["metadata"]["uid"] for obj in owned}
            self.world.remove(*owned)

    def _place(self, minimum: int, members: list[JsonObject]) -> bool:
        waiting = [pod for pod in members if "nodeName" not in pod["spec"]]
        if not waiting or len(members) < minimum:
            return False
        placed = len(members) - len(waiting)
        whole = int(members[0]["metadata"]["annotations"][f"{LWS}size"])
        needed = (minimum if self.provider.kinds else whole) - placed
        if max(needed, 1) > self.room:
            return False
        for pod in waiting[: self.room]:
            self.world.put(merged(pod, RUNNING))
            self.room -= 1
        return True

    def _carry_out(self, action: Action) -> None:
        if not isinstance(action, OpenGate):
            self.world.carry_out(action)
            return
        pod = copy.deepcopy(self.world.objects["Pod", action.namespace, action.name])
        body: JsonObject = dict(action.body)
        gone = {gate["name"] for gate in body["spec"]["schedulingGates"]}
        pod["spec"]["schedulingGates"] = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] not in gone]
        self.world.put(merged(pod, {"metadata": body["metadata"]}))


def _owners(obj: JsonObject) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())}


def _owner(obj: JsonObject) -> list[JsonObject]:
    metadata = obj["metadata"]
    return [{"kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"], "controller": True}]


def _revision(lws: JsonObject) -> JsonObject:
    meta = lws["metadata"]
    metadata = {
        "name": f"{meta['name']}-{REVISION}-1",
        "namespace": meta["namespace"],
        "labels": {f"{LWS}name": meta["name"], f"{LWS}template-revision-hash": REVISION},
        "ownerReferences": _owner(lws),
    }
    data = {"spec": {"leaderWorkerTemplate": lws["spec"]["leaderWorkerTemplate"]}}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "data": data}


def _worker_set(lws: JsonObject, leader: JsonObject) -> JsonObject:
    template = lws["spec"]["leaderWorkerTemplate"]
    meta = leader["metadata"]
    metadata = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": f"set/{meta['uid']}",
        "ownerReferences": _owner(leader),
    }
    spec = {"replicas": template["size"] - 1, "template": template["workerTemplate"]}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _leader(lws: JsonObject, name: str) -> JsonObject:
    leaders = {
        "kind": "StatefulSet",
        "metadata": {"name": lws["metadata"]["name"], "uid": f"set/{lws['metadata']['uid']}"},
    }
    return _pod(lws, name, {f"{LWS}worker-index": "0"}, {}, _owner(leaders))


def _worker(lws: JsonObject, leader: JsonObject, index: int, number: int, owner: str) -> JsonObject:
    name, labels = leader["metadata"]["name"], leader["metadata"]["labels"]
    own = {f"{LWS}group-index": str(index), f"{LWS}group-key": labels[f"{LWS}group-key"]}
    owners = [{"kind": "StatefulSet", "name": name, "uid": owner, "controller": True}]
    return _pod(lws, f"{name}-{number}", own, {f"{LWS}leader-name": name}, owners)


def _pod(
    lws: JsonObject, name: str, labels: dict[str, str], annotations: dict[str, str], owners: list[JsonObject]
) -> JsonObject:
    meta, template = lws["metadata"], copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    own = template["workerTemplate"]
    shared = {f"{LWS}name": meta["name"], f"{LWS}template-revision-hash": REVISION}
    exclusive = {key: value for key, value in meta["annotations"].items() if key == f"{LWS}exclusive-topology"}
    metadata = {
        "name": name,
        "namespace": meta["namespace"],
        "labels": changed(own["metadata"]["labels"], {**shared, **labels}),
        "annotations": changed(
            own["metadata"]["annotations"], {f"{LWS}size": str(template["size"]), **exclusive, **annotations}
        ),
        "ownerReferences": owners,
        "creationTimestamp": "2026-11-29T22:05:32Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": own["spec"],
        "status": {"phase": "Pending"},
    }


def _lws_webhook(pod: JsonObject) -> JsonObject:
    """Do what LWS's pod webhook does: a leader's index and key unless it has one, a worker's index."""
    labels, name = pod["metadata"]["labels"], pod["metadata"]["name"]
    ordinal = name.rpartition("-")[2]
    if f"{LWS}leader-name" in pod["metadata"]["annotations"]:
        labels.setdefault(f"{LWS}worker-index", ordinal)
    else:
        labels[f"{LWS}group-index"] = ordinal
        labels.setdefault(f"{LWS}group-key", key_of_lws(pod["metadata"]["namespace"], name))
    return pod


def wholly_placed(scene: Scene) -> Iterator[bool]:
    """Tell of each replica that is not placed in part whether it is placed.

    Raises:
        AssertionError: one is placed in part.
    """
    for namespace, leader in scene.leaders():
        pods = [
            pod
            for pod in scene.world.of_kind("Pod")
            if pod["metadata"]["namespace"] == namespace
            and leader in (pod["metadata"]["name"], pod["metadata"]["annotations"].get(f"{LWS}leader-name"))
        ]
        (placed,) = {"nodeName" in pod["spec"] for pod in pods}
        yield placed
