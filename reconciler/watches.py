"""Which kinds are watched, into which stores, and which replicas a change concerns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from gangs import keys
from reconciler import claims
from reconciler.cache import (
    LEADER_WORKER_SETS,
    NAMESPACES,
    NODES,
    PODS,
    REVISIONS,
    STATEFUL_SETS,
    Cache,
)
from reconciler.capacity import grew
from reconciler.contract import Api
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
from reconciler.store import Key, Store
from reconciler.telemetry import Meters
from reconciler.watching import Target, Watch
from schedulers.contract import GroupKind

T = TypeVar("T")

ALL: Final = ("",)
NO_SELECTORS: Final[Mapping[str, str]] = {}
OF_LWS: Final = {"label_selector": keys.LWS_NAME}
OURS: Final[Mapping[str, str]] = {"label_selector": keys.LOCKSTEP_GROUP}
TAKES_ROOM: Final = {"field_selector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
"""Selects pods that hold capacity; one that leaves the selection gives it back."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod that holds capacity, whoever made it; nothing of it is read."""


class Hints:
    """Turns changes into keys of the work queue and notes of growth."""

    def __init__(self, cache: Cache, add: Callable[[Key], None], growth: Callable[[], None]) -> None:
        """Pass keys to `add`, growth of capacity to `growth`."""
        self._cache, self._add, self._growth = cache, add, growth

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """Pass on a change of an LWS pod."""
        for pod in (old, new):
            self._all(() if pod is None else self._cache.leaders_of_pod(pod))

    def stateful_set(self, old: StatefulSet | None, new: StatefulSet | None) -> None:
        """Pass on a change of a worker StatefulSet."""
        metadata = _metadata(old, new)
        owner = metadata.controller
        if owner is not None and owner.kind == POD:
            self._add((metadata.namespace, metadata.name))

    def lws(self, old: LeaderWorkerSet | None, new: LeaderWorkerSet | None) -> None:
        """Pass on a change of an LWS to all its leaders; its status, which changes with every pod, is not read."""
        metadata = _metadata(old, new)
        if old is not None and new is not None and _same(old, new):
            return
        self._all(self._cache.leaders_of_lws(metadata.namespace, metadata.name))

    def revision(self, old: ControllerRevision | None, new: ControllerRevision | None) -> None:
        """Pass on a change of a revision to all leaders of its LWS."""
        metadata = _metadata(old, new)
        lws = (metadata.labels or {}).get(keys.LWS_NAME)
        self._all(() if lws is None else self._cache.leaders_of_lws(metadata.namespace, lws))

    def namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        """Pass on a namespace's new labels and annotations to all leaders in it."""
        if old is None or new is None or _marks(old) != _marks(new):
            self._all(self._cache.leaders_of_namespace(_metadata(old, new).name))

    def node(self, old: Node | None, new: Node | None) -> None:
        """Note a node's growth."""
        if grew(old, new):
            self._growth()

    def placed(self, old: Placed | None, new: Placed | None) -> None:
        """Note a pod that has given its room back."""
        if old is not None and new is None:
            self._growth()

    def group(self, kind: GroupKind, old: GroupObject | None, new: GroupObject | None) -> None:
        """Pass on a change of a group object."""
        self._cache.written.seen(kind, old, new)
        for group in (old, new):
            self._all(() if group is None else self._cache.leaders_of_group(group))

    def _all(self, found: Iterable[Key]) -> None:
        for key in found:
            self._add(key)


class Watches:
    """Makes the watches of one process."""

    def __init__(self, api: Api, cache: Cache, hints: Hints, namespaces: Sequence[str], meters: Meters) -> None:
        """Watch `namespaces`, empty for all of them."""
        self._api, self._cache, self._hints, self._meters = api, cache, hints, meters
        self._namespaces = tuple(namespaces) or ALL

    def of_objects(self) -> list[Watch[object]]:
        """Make the watches that are always needed."""
        cache, hints = self._cache, self._hints
        return [
            *self._each(PODS, Pod, cache.pods, hints.pod, OF_LWS),
            *self._each(LEADER_WORKER_SETS, LeaderWorkerSet, cache.sets, hints.lws),
            *self._each(STATEFUL_SETS, StatefulSet, cache.stateful_sets, hints.stateful_set, OF_LWS),
            *self._each(REVISIONS, ControllerRevision, cache.revisions, hints.revision, OF_LWS),
            *self._cluster_wide(NAMESPACES, Namespace, cache.namespaces, hints.namespace),
            *self._cluster_wide(NODES, Node, cache.nodes, hints.node),
        ]

    def of_placed_pods(self) -> list[Watch[object]]:
        """Make the watches that notice room given back by any pod."""
        store: Store[Placed] = Store()
        return self._each(PODS, Placed, store, self._hints.placed, TAKES_ROOM)

    def of_groups(self, kind: GroupKind) -> list[Watch[object]]:
        """Make the watches of a kind of group object."""
        store = self._cache.groups.setdefault(kind, Store())
        selectors = OURS if kind in claims.CLAIMS else NO_SELECTORS
        return self._each(kind, GroupObject, store, lambda old, new: self._hints.group(kind, old, new), selectors)

    def _each(
        self,
        kind: GroupKind,
        shape: type[T],
        store: Store[T],
        on_change: Callable[[T | None, T | None], None],
        selectors: Mapping[str, str] = NO_SELECTORS,
    ) -> list[Watch[object]]:
        targets = [Target(kind, namespace, **selectors) for namespace in self._namespaces]
        return [self._watch(target, shape, store, on_change) for target in targets]

    def _cluster_wide(
        self, kind: GroupKind, shape: type[T], store: Store[T], on_change: Callable[[T | None, T | None], None]
    ) -> list[Watch[object]]:
        return [self._watch(Target(kind), shape, store, on_change)]

    def _watch(
        self, target: Target, shape: type[T], store: Store[T], on_change: Callable[[T | None, T | None], None]
    ) -> Watch[object]:
        decode = msgspec.json.Decoder(shape).decode
        watch: Watch[T] = Watch(self._api, target, decode, store, on_change, meters=self._meters)
        return watch  # type: ignore[return-value] # what it carries is of no interest to who starts and stops it


def _same(old: LeaderWorkerSet, new: LeaderWorkerSet) -> bool:
    same_life = old.metadata.uid == new.metadata.uid
    return same_life and old.spec == new.spec and old.metadata.annotations == new.metadata.annotations


def _marks(namespace: Namespace) -> tuple[object, ...]:
    return (namespace.metadata.labels, namespace.metadata.annotations)


def _metadata(*objects: StatefulSet | LeaderWorkerSet | ControllerRevision | Namespace | None) -> Metadata:
    """Give the metadata of the newest object that is there."""
    return next(known.metadata for known in reversed(objects) if known is not None)
