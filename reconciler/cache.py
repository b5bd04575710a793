"""Everything the reconciler knows of the cluster: one store a kind, and the sight of one replica put together."""

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Final

from gangs import keys
from gangs.members import Malformed, read_member
from reconciler.objects import (
    POD,
    ControllerRevision,
    GroupObject,
    LeaderWorkerSet,
    Metadata,
    Namespace,
    Node,
    Pod,
    StatefulSet,
)
from reconciler.replicas import EVERYTHING, Sight
from reconciler.store import Key, Store
from reconciler.written import Written
from schedulers.abilities import Declares
from schedulers.contract import GroupKind
from schedulers.registry import all_providers

PODS: Final = GroupKind("", "v1", "Pod", "pods")
NODES: Final = GroupKind("", "v1", "Node", "nodes")
NAMESPACES: Final = GroupKind("", "v1", "Namespace", "namespaces")
STATEFUL_SETS: Final = GroupKind("apps", "v1", "StatefulSet", "statefulsets")
REVISIONS: Final = GroupKind("apps", "v1", "ControllerRevision", "controllerrevisions")
LEADER_WORKER_SETS: Final = GroupKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")

OF_LEADER: Final = "of leader"
OF_LWS: Final = "of lws"
OF_NAMESPACE: Final = "of namespace"
OF_GROUP: Final = "of group"
AT_GATE: Final = "at the gate"


Kept = Callable[[GroupKind], Container[str] | None]
"""Gives the gated fields of a kind that the API server keeps, `None` while that is not known."""


class Cache:
    """The stores, and what is read out of them for one leader.

    Attributes:
        kept: says which gated fields are kept; everything where nobody asks the API server.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.pods: Store[Pod] = Store(
            {
                OF_LEADER: _of_leader,
                OF_LWS: _leader_of_lws,
                OF_NAMESPACE: _leader_of_namespace,
                OF_GROUP: _of_group,
                AT_GATE: _at_gate,
            }
        )
        self.sets: Store[LeaderWorkerSet] = Store()
        self.stateful_sets: Store[StatefulSet] = Store()
        self.revisions: Store[ControllerRevision] = Store({OF_LWS: _of_lws})
        self.namespaces: Store[Namespace] = Store()
        self.nodes: Store[Node] = Store()
        self.groups: dict[GroupKind, Store[GroupObject]] = {}
        self.written = Written()
        self.kept: Kept = lambda _: EVERYTHING

    def sight(
        self, key: Key, kind: GroupKind | None, *, age: float, recreations: int, now: float = 0.0
    ) -> Sight | Malformed | None:
        """Put together what is known about the leader pod `key`.

        Args:
            key: namespace and name of a leader pod.
            kind: the group kind that counts for it, `None` where the cluster serves none.
            age: seconds since this leader was first seen.
            recreations: how often its like has been deleted for want of a stamp.
            now: seconds since 1970, 0 where nothing depends on them.

        Returns:
            The sight; what is wrong with its labels; or `None` when there is no such leader.
        """
        namespace, name = key
        leader = self.pods.get(namespace, name)
        if leader is None or not is_leader(leader):
            return None
        try:
            member = read_member(namespace, name, leader.labels, leader.annotations)
        except Malformed as problem:
            return problem
        if member is None:
            return None
        return Sight(
            leader=leader,
            member=member,
            group=None if kind is None or member.group is None else self.group(kind, namespace, member.group),
            workers=self.pods.by_index(OF_LEADER, key),
            stateful_set=self.stateful_sets.get(namespace, name),
            lws=self.sets.get(namespace, member.lws),
            revisions=self.revisions.by_index(OF_LWS, (namespace, member.lws)),
            namespace=self.namespaces.get("", namespace),
            age=age,
            recreations=recreations,
            now=now,
            kept=EVERYTHING if kind is None else self.kept(kind),
            watched=frozenset(self.groups),
            find=lambda kind, name: self.group(kind, namespace, name),
            whole_roles=lambda marks: self._whole_roles(namespace, marks),
        )

    def lws_of(self, pod: Pod) -> LeaderWorkerSet | None:
        """Find the LWS of a pod."""
        return self.sets.get(pod.metadata.namespace, pod.labels.get(keys.LWS_NAME, ""))

    def group(self, kind: GroupKind, namespace: str, name: str) -> GroupObject | None:
        """Find a group object as it is: what the watch has shown, or what our own write was answered with."""
        store = self.groups.get(kind)
        return self.written.latest(kind, namespace, name, None if store is None else store.get(namespace, name))

    def leaders_of_pod(self, pod: Pod) -> Iterator[Key]:
        """Give the leader that a pod's change concerns."""
        if is_leader(pod):
            yield (pod.metadata.namespace, pod.metadata.name)
        else:
            yield from _of_leader(pod)

    def leaders_of_group(self, group: GroupObject) -> Iterator[Key]:
        """Give the leaders that a group object's change concerns: its owner, and who computes its name."""
        namespace, name = group.metadata.namespace, group.metadata.name
        owner = group.metadata.controller
        if owner is not None and owner.kind == POD:
            yield (namespace, owner.name)
        if owner is not None and owner.kind == keys.LWS_KIND:
            yield from self.leaders_of_lws(namespace, owner.name)
        if owner is None or owner.kind == keys.DISAGGREGATED_KIND:
            # A DisaggregatedSet itself, or what belongs to one.
            yield from self._leaders_of_set(namespace, name if owner is None else owner.name)
        for pod in self.pods.by_index(OF_GROUP, (namespace, name)):
            yield from self.leaders_of_pod(pod)

    def leaders_of_lws(self, namespace: str, lws: str) -> list[Key]:
        """Give all leaders of an LWS."""
        return [_key(pod.metadata) for pod in self.pods.by_index(OF_LWS, (namespace, lws))]

    def leaders_of_namespace(self, namespace: str) -> list[Key]:
        """Give all leaders in a namespace."""
        return [_key(pod.metadata) for pod in self.pods.by_index(OF_NAMESPACE, namespace)]

    def _leaders_of_set(self, namespace: str, name: str) -> list[Key]:
        leaders = self.leaders_in(namespace)
        return [_key(pod.metadata) for pod in leaders if pod.labels.get(keys.DISAGGREGATED_NAME) == name]

    def _whole_roles(self, namespace: str, marks: Mapping[str, str]) -> frozenset[str]:
        leaders = (pod for pod in self.leaders_in(namespace) if marks.items() <= pod.labels.items())
        return frozenset(pod.labels.get(keys.DISAGGREGATED_ROLE, "") for pod in leaders if self._is_placed(pod))

    def _is_placed(self, leader: Pod) -> bool:
        """Tell whether as many pods of a replica have a node as its leader's annotation counts."""
        size = leader.annotations.get(keys.SIZE, "")
        pods = [leader, *self.pods.by_index(OF_LEADER, _key(leader.metadata))]
        return size.isdigit() and sum(pod.bound and not pod.leaving for pod in pods) >= int(size)

    def leaders_in(self, namespace: str) -> list[Pod]:
        """Give the pods of all leaders in a namespace."""
        return self.pods.by_index(OF_NAMESPACE, namespace)

    def leaders_at_gate(self, scheduler_name: str) -> list[Key]:
        """Give the leaders of replicas of a scheduler of which a pod is gated, unplaced, or carries a declaration."""
        pods = self.pods.by_index(AT_GATE, scheduler_name)
        return list(dict.fromkeys(key for pod in pods for key in self.leaders_of_pod(pod)))

    def leaders(self) -> list[Key]:
        """Give all leaders."""
        return [_key(pod.metadata) for pod in self.leader_pods()]

    def leader_pods(self) -> list[Pod]:
        """Give the pods of all leaders."""
        return [pod for pod in self.pods.objects() if is_leader(pod)]


def is_leader(pod: Pod) -> bool:
    """Tell whether a pod is a leader: by its index, and because it names no other as its leader."""
    return pod.labels.get(keys.WORKER_INDEX) == "0" and keys.LEADER_NAME not in pod.annotations


def _key(metadata: Metadata) -> Key:
    return (metadata.namespace, metadata.name)


def _of_leader(pod: Pod) -> Iterable[Key]:
    leader = pod.annotations.get(keys.LEADER_NAME)
    return () if leader is None else ((pod.metadata.namespace, leader),)


def _leader_of_lws(pod: Pod) -> Iterable[Key]:
    lws = pod.labels.get(keys.LWS_NAME)
    return ((pod.metadata.namespace, lws),) if lws is not None and is_leader(pod) else ()


def _leader_of_namespace(pod: Pod) -> Iterable[str]:
    return (pod.metadata.namespace,) if is_leader(pod) else ()


def _of_group(pod: Pod) -> Iterable[Key]:
    group = pod.labels.get(keys.LOCKSTEP_GROUP)
    return () if group is None else ((pod.metadata.namespace, group),)


def _at_gate(pod: Pod) -> Iterable[str]:
    """File what a line of gates depends on, so that replicas that have long been placed cost it nothing."""
    stamped = keys.LOCKSTEP_GROUP in pod.labels and not pod.finished
    if pod.gated or (stamped and (not pod.bound or any(key in pod.annotations for key in _declarations()))):
        yield pod.spec.scheduler_name


@functools.cache
def _declarations() -> frozenset[str]:
    declaring = [provider for provider in all_providers().values() if isinstance(provider, Declares)]
    return frozenset(key for provider in declaring for key in provider.declared)


def _of_lws(revision: ControllerRevision) -> Iterable[Key]:
    lws = (revision.metadata.labels or {}).get(keys.LWS_NAME)
    return () if lws is None else ((revision.metadata.namespace, lws),)
