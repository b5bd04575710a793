"""Replicas as LWS builds them, and a small model of the API server that takes the reconciler's writes."""

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from gangs.members import Malformed, read_member
from reconciler import claims
from reconciler.actions import (
    Action,
    CreateGroup,
    DeletePod,
    DeleteShared,
    LookAgain,
    OpenGate,
    PatchGroup,
    PatchPod,
    Say,
)
from reconciler.cache import Cache
from reconciler.decisions import Outcome, decide
from reconciler.objects import (
    ControllerRevision,
    GroupObject,
    LeaderWorkerSet,
    Metadata,
    Namespace,
    Node,
    Pod,
    StatefulSet,
)
from reconciler.replicas import Sight
from reconciler.sharing import shared_kinds_of
from reconciler.store import Key, Store
from schedulers.configuration import Configuration, default_configuration
from schedulers.contract import GroupKind, Provider
from schedulers.registry import all_providers
from tests.builders import KEY, LWS, NAMESPACE, REVISION, JsonObject, leader_pod, worker_pod

NATIVE: Final = all_providers()["native"]
COSCHEDULING: Final = all_providers()["coscheduling"]
VOLCANO: Final = all_providers()["volcano"]
YUNIKORN: Final = all_providers()["yunikorn"]
PROVIDERS: Final = (NATIVE, COSCHEDULING, VOLCANO)

LEADER: Final = (NAMESPACE, "vllm-0")
"""Key of the leader that `replica` makes when nothing else is said."""


class Late(NamedTuple):
    """Why workers come late: fields of the LWS."""

    spec: JsonObject
    annotations: dict[str, str]


LEADER_READY: Final = Late({"startupPolicy": "LeaderReady"}, {})
EXCLUSIVE: Final = Late({}, {f"{LWS}exclusive-topology": "topology.kubernetes.io/zone"})
IN_TIME: Final = Late({}, {})


@dataclass(frozen=True)
class Plan:
    """One replica to build.

    Attributes:
        provider: its scheduler.
        index: of the replica.
        size: as it is built; the leader's annotation says `annotated` where that is given.
        annotated: the leader's size annotation.
        workers: how many workers exist, `None` for all.
        stamped: whether the webhook was there.
        worker_set: whether the worker StatefulSet is there.
        gpus: of each pod.
        key: the group-key.
        revision: the template revision hash.
        life: tells incarnations of one name apart.
        late: why its workers come late.
        lws: name of the LWS.
        changes: fields of pods to merge in, by pod name.
        lws_annotations: annotations of the LWS.
    """

    provider: Provider = NATIVE
    index: int = 0
    size: int = 2
    annotated: int | None = None
    workers: int | None = None
    stamped: bool = True
    worker_set: bool = True
    gpus: int = 8
    key: str = KEY
    revision: str = REVISION
    life: int = 1
    late: Late = IN_TIME
    lws: str = "vllm"
    changes: dict[str, JsonObject] = field(default_factory=dict)
    lws_annotations: dict[str, str] = field(default_factory=dict)

    @property
    def leader_name(self) -> str:
        """Name of its leader."""
        return f"{self.lws}-{self.index}"

    @property
    def group(self) -> str:
        """Name of its group."""
        labels = leader_pod(self.lws, self.index, key=self.key)["metadata"]["labels"]
        labels[f"{LWS}template-revision-hash"] = self.revision
        member = read_member(NAMESPACE, self.leader_name, labels, {f"{LWS}size": "1"})
        assert member is not None
        assert member.group is not None
        return member.group


def replica(**difference: Any) -> list[JsonObject]:
    """Build a replica's pods, worker StatefulSet and LWS; say what differs from a `Plan`."""
    plan = Plan(**difference)
    return [*pods_of(plan), *([worker_set(plan)] if plan.worker_set else []), leader_worker_set(plan), revision(plan)]


def pods_of(plan: Plan) -> list[JsonObject]:
    """Build leader and workers."""
    workers = (plan.size - 1 if plan.workers is None else plan.workers) if plan.worker_set else 0
    size = plan.size if plan.annotated is None else plan.annotated
    usual: Any = {"size": size, "key": plan.key, "scheduler": plan.provider.scheduler_names[0]}
    pods = [leader_pod(plan.lws, plan.index, **usual)]
    pods += (worker_pod(plan.lws, plan.index, number + 1, **usual) for number in range(workers))
    owners = [("StatefulSet", plan.lws, plan.lws), *([("StatefulSet", plan.leader_name, _life(plan))] * workers)]
    return [_finished(pod, plan, owner) for pod, owner in zip(pods, owners, strict=True)]


def _finished(pod: JsonObject, plan: Plan, owner: tuple[str, str, str]) -> JsonObject:
    meta = pod["metadata"]
    meta["labels"][f"{LWS}template-revision-hash"] = plan.revision
    meta |= {"uid": f"pod/{meta['name']}/{plan.life}", "ownerReferences": [_owner(*owner)]}
    meta["creationTimestamp"] = "2026-11-29T22:05:32Z"
    pod["spec"]["containers"][0]["resources"] = _resources(plan)
    pod["status"] = {"phase": "Pending"}
    if plan.stamped:
        _stamp(pod, plan)
    return merged(pod, plan.changes.get(meta["name"], {}))


def _stamp(pod: JsonObject, plan: Plan) -> None:
    stamp = plan.provider.stamp(plan.group, leader=pod["metadata"]["name"] == plan.leader_name)
    pod["metadata"]["labels"] |= {"lockstep.dev/group": plan.group, **stamp.labels}
    pod["metadata"]["annotations"] |= dict(stamp.annotations)
    if stamp.scheduling_group is not None:
        pod["spec"]["schedulingGroup"] = {"podGroupName": stamp.scheduling_group}
    if stamp.gated:
        pod["spec"]["schedulingGates"] = [{"name": "lockstep.dev/group"}]


def _owner(kind: str, name: str, life: str) -> JsonObject:
    return {"kind": kind, "name": name, "uid": f"{kind.lower()}/{life}", "controller": True}


def _life(plan: Plan) -> str:
    return f"{plan.leader_name}/{plan.life}"


def _resources(plan: Plan) -> JsonObject:
    return {"requests": {"cpu": "1", "nvidia.com/gpu": str(plan.gpus)}, "limits": {"nvidia.com/gpu": str(plan.gpus)}}


def _template(plan: Plan) -> JsonObject:
    return {"spec": {"containers": [{"name": "vllm", "resources": _resources(plan)}]}}


def worker_set(plan: Plan) -> JsonObject:
    """Build the StatefulSet of the workers."""
    metadata = {
        "name": plan.leader_name,
        "namespace": NAMESPACE,
        "uid": f"statefulset/{_life(plan)}",
        "ownerReferences": [_owner("Pod", plan.leader_name, _life(plan))],
    }
    spec = {"replicas": plan.size - 1, "template": _template(plan)}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def leader_worker_set(plan: Plan) -> JsonObject:
    """Build the LWS."""
    annotations = plan.late.annotations | plan.lws_annotations
    metadata = {"name": plan.lws, "namespace": NAMESPACE, "uid": f"lws/{plan.lws}", "annotations": annotations}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": plan.size, "workerTemplate": _template(plan)}}
    api_version = "leaderworkerset.x-k8s.io/v1"
    return {
        "apiVersion": api_version,
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": spec | plan.late.spec,
    }


def revision(plan: Plan) -> JsonObject:
    """Build the LWS's ControllerRevision that the replica is built from."""
    metadata = {
        "name": f"{plan.lws}-{plan.revision}-1",
        "namespace": NAMESPACE,
        "uid": f"revision/{plan.lws}/{plan.revision}",
        "labels": {f"{LWS}name": plan.lws, f"{LWS}template-revision-hash": plan.revision},
        "ownerReferences": [_owner("LeaderWorkerSet", plan.lws, plan.lws)],
    }
    data = {"spec": {"leaderWorkerTemplate": {"size": plan.size, "workerTemplate": _template(plan)}}}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "data": data}


def group(plan: Plan, **difference: Any) -> JsonObject:
    """Build the group object that the replica should have; `difference` is merged in (RFC 7386)."""
    world = World(*pods_of(plan), worker_set(plan), leader_worker_set(plan), revision(plan))
    made = [action for action in world.decide((NAMESPACE, plan.leader_name)).actions if isinstance(action, CreateGroup)]
    world.carry_out(made[0])
    name = made[0].name
    return merged(world.objects["PodGroup", NAMESPACE, name], difference)


def merged(base: JsonObject, change: JsonObject) -> JsonObject:
    """Apply a merge patch (RFC 7386) to a copy."""
    result = copy.deepcopy(base)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            below = result.get(name)
            result[name] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[name] = value
    return result


GROUP_KINDS: Final = {kind.kind for provider in all_providers().values() for kind in provider.kinds}

SHARED_KINDS: Final = ("Workload", "CompositePodGroup", "DisaggregatedSet")
"""What groups share, or is read for that."""

SHAPES: Final[dict[str, Any]] = {
    **dict.fromkeys((*GROUP_KINDS, *SHARED_KINDS, "ResourceClaim", "ResourceClaimTemplate"), GroupObject),
    "Pod": Pod,
    "StatefulSet": StatefulSet,
    "LeaderWorkerSet": LeaderWorkerSet,
    "ControllerRevision": ControllerRevision,
    "Namespace": Namespace,
    "Node": Node,
}


def decoded(obj: JsonObject) -> Any:
    """Read an object as a watch does."""
    return msgspec.json.decode(json.dumps(obj), type=SHAPES[obj["kind"]])


class World:
    """All objects there are, as JSON, and the API server's rules for the reconciler's writes."""

    def __init__(self, *objects: JsonObject, configuration: Configuration | None = None) -> None:
        """Start with some objects."""
        self.configuration = configuration or default_configuration()
        self.objects: dict[tuple[str, str, str], JsonObject] = {}
        self.version = 100
        self.writes = 0
        self.put(*objects)

    def put(self, *objects: JsonObject) -> None:
        """Create or replace objects."""
        for obj in objects:
            self.version += 1
            meta = obj["metadata"]
            meta["resourceVersion"] = str(self.version)
            meta.setdefault("uid", f"{obj['kind'].lower()}/{meta['name']}/{self.version}")
            self.objects[obj["kind"], meta.get("namespace", ""), meta["name"]] = obj

    def remove(self, *objects: JsonObject) -> None:
        """Delete objects."""
        for obj in objects:
            del self.objects[obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]]

    def of_kind(self, kind: str) -> list[JsonObject]:
        """Give the objects of a kind."""
        return [obj for (known, _, _), obj in self.objects.items() if known == kind]

    def cache(self) -> Cache:
        """Give a cache that holds everything."""
        cache = Cache()
        for kind, store in (
            ("Pod", cache.pods),
            ("LeaderWorkerSet", cache.sets),
            ("StatefulSet", cache.stateful_sets),
            ("ControllerRevision", cache.revisions),
            ("Namespace", cache.namespaces),
            ("Node", cache.nodes),
        ):
            fill(store, self.of_kind(kind))
        of_providers = [kind for provider in all_providers().values() for kind in provider.kinds]
        shared = shared_kinds_of(self.configuration.providers())
        for group_kind in (*of_providers, *shared, claims.CLAIMS[0], claims.TEMPLATES[0]):
            cache.groups[group_kind] = Store()
            found = [obj for obj in self.of_kind(group_kind.kind) if obj["apiVersion"] == group_kind.api_version]
            fill(cache.groups[group_kind], found)
        return cache

    def sight(self, key: Key = LEADER, *, age: float = 10.0, recreations: int = 0) -> Sight:
        """See one leader's replica."""
        cache = self.cache()
        leader = cache.pods.get(*key)
        provider = None if leader is None else self.configuration.provider(leader.spec.scheduler_name)
        kind = None if provider is None else next(iter(provider.kinds), None)
        found = cache.sight(key, kind, age=age, recreations=recreations)
        assert not isinstance(found, Malformed | None)
        return found

    def decide(self, key: Key = LEADER, *, age: float = 10.0, recreations: int = 0) -> Outcome:
        """Decide about one leader's replica."""
        return decide(self.sight(key, age=age, recreations=recreations), self.configuration, first)

    def carry_out(self, action: Action) -> None:
        """Do what an action asks for, by the API server's rules."""
        match action:
            case CreateGroup(kind, namespace, name, body):
                assert (kind.kind, namespace, name) not in self.objects, "the object exists already"
                self._write(copy.deepcopy(dict(body)))
            case PatchGroup(kind, namespace, name, body):
                self._patch(kind.kind, namespace, name, dict(body))
            case PatchPod(namespace, name, body):
                self._patch("Pod", namespace, name, dict(body))
            case OpenGate(namespace, name, body):
                self._open(namespace, name, dict(body))
            case DeleteShared(kind, namespace, name, uid):
                assert self.objects[kind.kind, namespace, name]["metadata"]["uid"] == uid
                self.remove(self.objects[kind.kind, namespace, name])
            case DeletePod(namespace, name, uid):
                assert self.objects["Pod", namespace, name]["metadata"]["uid"] == uid
                self.writes += 1
                self.remove(self.objects["Pod", namespace, name])
            case Say() | LookAgain():
                pass

    def settle(self, key: Key = LEADER, *, rounds: int = 5) -> list[Action]:
        """Decide and carry out until nothing is left to write; gives all writes."""
        done: list[Action] = []
        for _ in range(rounds):
            writes = writes_of(self.decide(key).actions)
            if not writes:
                return done
            for action in writes:
                self.carry_out(action)
            done += writes
        raise AssertionError(f"still writes after {rounds} rounds: {done}")

    def _patch(self, kind: str, namespace: str, name: str, body: JsonObject) -> None:
        live = self.objects[kind, namespace, name]
        for field_name in ("uid", "resourceVersion"):
            wanted = body.get("metadata", {}).get(field_name)
            assert wanted in (None, live["metadata"][field_name]), "409 Conflict"
        self._write(merged(live, body))

    def _open(self, namespace: str, name: str, body: JsonObject) -> None:
        """Do what the strategic merge patch means: gates go by their names, the rest is merged."""
        live = copy.deepcopy(self.objects["Pod", namespace, name])
        gone = {gate["name"] for gate in body["spec"]["schedulingGates"] if gate["$patch"] == "delete"}
        there = live["spec"].pop("schedulingGates", [])
        assert gone <= {gate["name"] for gate in there}, "a gate is opened twice"
        if rest := [gate for gate in there if gate["name"] not in gone]:
            live["spec"]["schedulingGates"] = rest
        self.objects["Pod", namespace, name] = live
        self._patch("Pod", namespace, name, {"metadata": body["metadata"]})

    def _write(self, obj: JsonObject) -> None:
        self.writes += 1
        self.put(obj)


def fill(store: Store[Any], objects: Iterable[JsonObject]) -> None:
    """Put JSON objects into a store."""
    entries = {}
    for obj in objects:
        value = decoded(obj)
        meta: Metadata = value.metadata
        entries[meta.namespace, meta.name] = store.make_entry(meta.uid, meta.resource_version, value)
    store.replace(entries)


def first(kinds: Sequence[GroupKind]) -> GroupKind | None:
    """Serve every kind."""
    return next(iter(kinds), None)


def serve_nothing(_: Sequence[GroupKind]) -> GroupKind | None:
    """Serve no group kind."""
    return None


def writes_of(actions: Iterable[Action]) -> list[Action]:
    """Give the actions that change the cluster."""
    return [action for action in actions if not isinstance(action, Say | LookAgain)]


def said(actions: Iterable[Action]) -> list[tuple[str, str]]:
    """Give reason and message of what is said."""
    return [(action.reason, action.message) for action in actions if isinstance(action, Say)]
