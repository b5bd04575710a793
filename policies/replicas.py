"""One replica as the known objects show it: its pods, its size, and whether its workers come late."""

from collections.abc import Sequence

import msgspec

from gangs import keys, late
from gangs.resources import PodResources, Requests, ResourceError, add, pod_requests, scale
from policies.objects import value_at
from policies.shapes import LEADER_WORKER_SET, POD, Group, LeaderWorkerSet, Pod, StatefulSet, Thing
from policies.snapshot import Snapshot
from schedulers.contract import Provider


class Replica(msgspec.Struct, frozen=True):
    """What is known of the replica that a group object is for.

    Attributes:
        name: pod name of its leader.
        leader: the leader pod.
        workers: pods that name it as their leader and have not finished.
        worker_set: the StatefulSet of its workers.
        lws: its LeaderWorkerSet.
    """

    name: str
    leader: Pod | None
    workers: tuple[Pod, ...]
    worker_set: StatefulSet | None
    lws: LeaderWorkerSet | None

    @property
    def size(self) -> int | None:
        """Pods of the replica: as its worker StatefulSet is built, as its leader is annotated, as its LWS says.

        LWS makes no workers for anybody once the live size is 1 (LWS 0.8.0 `pkg/controllers/pod_controller.go`).
        """
        if self.worker_set is not None and self.worker_set.spec.replicas is not None:
            return self.worker_set.spec.replicas + 1
        live = None if self.lws is None else self.lws.size
        annotated = None if self.leader is None or live == 1 else _whole(self.leader.annotations.get(keys.SIZE))
        return live if annotated is None else annotated

    @property
    def guessed(self) -> bool:
        """Whether its workers' template is that of the live LWS, which may be of another revision than its own."""
        stored = self.leader is not None and bool(self.leader.metadata.resource_version)
        return stored and self.worker_set is None

    @property
    def why_late(self) -> str | None:
        """The field of the LWS that makes workers late, `None` when they come with the leader."""
        if self.lws is None or self.size is None:
            return None
        return late.why_late(self.lws.spec.startup_policy or "", self.lws.annotations, self.size)

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod of it that exists."""
        return self.workers if self.leader is None else (self.leader, *self.workers)

    def strangers(self, provider: Provider, group: str) -> int:
        """Count its pods that are not in a group: it goes without them."""
        return sum(_claimed(provider, pod) != group for pod in self.pods)

    def requests(self) -> Requests | None:
        """Sum what it asks for; `None` when a template or the size is not known, or asks for no quantity."""
        leader, worker = self._leader_spec(), self._worker_template()
        if self.size is None or leader is None:
            return None
        here = self.workers[: self.size - 1]
        missing = self.size - 1 - len(here)
        if missing and worker is None:
            return None
        status = None if self.leader is None else self.leader.status
        try:
            parts = [pod_requests(leader, status, defaulted=True)]
            parts += [pod_requests(pod.spec, pod.status, defaulted=True) for pod in here]
            parts += [scale(pod_requests(worker, defaulted=True), missing)] if worker is not None else []
        except ResourceError:
            return None
        return add(*parts)

    def _leader_spec(self) -> PodResources | None:
        if self.leader is not None:
            return self.leader.spec
        return None if self.lws is None else self.lws.leader_template.spec

    def _worker_template(self) -> PodResources | None:
        if self.worker_set is not None:
            return self.worker_set.spec.template.spec
        return None if self.lws is None else self.lws.spec.leader_worker_template.worker_template.spec


def replica_of_group(group: Group, provider: Provider, snapshot: Snapshot) -> Replica | None:
    """Find the replica of a group object: by its controller, its members, or its labels; `None` for another's group."""
    namespace, name = group.place
    members = snapshot.members(provider, namespace, name)
    leader = _leader(group, members, snapshot)
    thing: Thing = leader if leader is not None else group
    lws_name, index = _named(thing) or next((found for pod in members if (found := _named(pod))), (None, None))
    lws = None if lws_name is None else snapshot.get(LEADER_WORKER_SET, LeaderWorkerSet, namespace, lws_name)
    if leader is None and lws is None:
        return None
    leader_name = f"{lws_name}-{index}" if leader is None else leader.metadata.name
    workers = tuple(pod for pod in snapshot.pods_of(namespace, lws_name or "") if _works_for(pod, leader_name))
    worker_set = None if leader is None else snapshot.worker_set(leader)
    return Replica(leader_name, leader, workers, worker_set, lws)


def minimum_of(group: Group, provider: Provider) -> int | None:
    """Read the minimum of a group object; `None` where it has none or no whole number."""
    value = value_at(group.spec, provider.minimum)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _leader(group: Group, members: Sequence[Pod], snapshot: Snapshot) -> Pod | None:
    owner = group.metadata.controller
    if owner is not None and owner.kind == POD:
        owned = snapshot.get(POD, Pod, group.metadata.namespace, owner.name)
        if owned is not None and owned.leads:
            return owned
    return next((pod for pod in members if pod.leads and not pod.leaving), None)


def _named(thing: Thing) -> tuple[str, str] | None:
    lws, index = thing.labels.get(keys.LWS_NAME), thing.labels.get(keys.GROUP_INDEX)
    return None if lws is None or index is None else (lws, index)


def _works_for(pod: Pod, leader: str) -> bool:
    return pod.annotations.get(keys.LEADER_NAME) == leader and not pod.finished


def _claimed(provider: Provider, pod: Pod) -> str | None:
    claim = provider.claim(pod)
    return None if claim is None else claim.group


def _whole(text: str | None) -> int | None:
    fits = text is not None and text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004 - int32
    return int(text) if text is not None and fits else None
