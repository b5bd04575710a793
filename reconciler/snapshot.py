"""The cluster as it is at one moment: everything listed once, for commands that only look."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from gangs import keys
from gangs.resources import Requests
from reconciler.cache import LEADER_WORKER_SETS, NAMESPACES, NODES, PODS, REVISIONS, STATEFUL_SETS, Cache
from reconciler.contract import Api, Forbidden, Gone
from reconciler.discovery import serves
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
from reconciler.recorder import EVENTS
from reconciler.room import free_sum
from reconciler.store import Entry, Key, Store
from reconciler.watches import ALL, NO_SELECTORS, OF_LWS, TAKES_ROOM
from reconciler.watching import Target
from reconciler.wire import BAD_ITEM, BadAnswer, Page, decode_page
from schedulers.abilities import Declares
from schedulers.contract import GroupKind, Provider


class HasMetadata(Protocol):
    """An object of whatever kind."""

    @property
    def metadata(self) -> Metadata:
        """`metadata`."""


T = TypeVar("T", bound=HasMetadata)

log = logging.getLogger(__name__)

PAGE: Final = 500
OURS: Final = "lockstep"
ABOUT_LWS: Final = {"field_selector": f"involvedObject.kind={keys.LWS_KIND}"}


class _Source(msgspec.Struct, frozen=True, gc=False):
    component: str = ""


class _Involved(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of an Event."""

    metadata: Metadata = Metadata()
    involved_object: _Involved = _Involved()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: _Source = _Source()


class Snapshot(msgspec.Struct, frozen=True):
    """What was listed.

    Attributes:
        cache: the objects; nodes are not in it.
        served: the group kinds that the cluster serves.
        free: what is free in sum, `None` where it was not looked at, or nodes or the pods of others can't be listed.
        warnings: namespace and name of an LWS -> what Lockstep has warned of, newest last.
        stand_ins: namespace and group -> the pods that its scheduler has made to hold its room.
    """

    cache: Cache
    served: frozenset[GroupKind]
    free: Requests | None
    warnings: Mapping[Key, Sequence[str]]
    stand_ins: Mapping[Key, Sequence[Pod]] = {}

    def first(self, kinds: Sequence[GroupKind]) -> GroupKind | None:
        """Find the first of some kinds that is served."""
        return next((kind for kind in kinds if kind in self.served), None)


def take_snapshot(
    api: Api, providers: Collection[Provider], namespaces: Sequence[str] = (), *, room: bool = True
) -> Snapshot:
    """List everything once.

    Args:
        api: whom to ask; only get and list are used.
        providers: whose group objects are of interest.
        namespaces: where replicas are looked for, empty for everywhere.
        room: whether to look what is free, which takes all nodes and all placed pods of the cluster.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused what can't be done without.
    """
    cache, where = Cache(), tuple(namespaces) or ALL
    wanted = [kind for provider in providers for kind in provider.kinds]
    served = frozenset(kind for kind in dict.fromkeys(wanted) if serves(api, kind))
    # Pods before groups: what has no group then had time to get one.
    fill(cache.pods, _everywhere(api, PODS, where, Pod, OF_LWS))
    fill(cache.sets, _everywhere(api, LEADER_WORKER_SETS, where, LeaderWorkerSet))
    fill(cache.stateful_sets, _everywhere(api, STATEFUL_SETS, where, StatefulSet, OF_LWS))
    fill(cache.revisions, _everywhere(api, REVISIONS, where, ControllerRevision, OF_LWS))
    for kind in served:
        cache.groups[kind] = Store()
        fill(cache.groups[kind], _everywhere(api, kind, where, GroupObject))
    fill(cache.namespaces, _namespaces(api))
    carried = {key for pod in cache.pods.objects() for key in pod.labels}
    labels = carried & {provider.stand_in for provider in providers if isinstance(provider, Declares)}
    return Snapshot(cache, served, _free(api) if room else None, _warnings(api, where), _stand_ins(api, where, labels))


def _stand_ins(api: Api, namespaces: Sequence[str], labels: Iterable[str]) -> dict[Key, Sequence[Pod]]:
    """Collect the pods that hold room for others, by their group."""
    found: dict[Key, list[Pod]] = {}
    for label in labels:
        for pod in _everywhere(api, PODS, namespaces, Pod, {"label_selector": f"{label},!{keys.LWS_NAME}"}):
            found.setdefault((pod.metadata.namespace, pod.labels.get(label, "")), []).append(pod)
    return {key: tuple(pods) for key, pods in found.items()}


def fill(store: Store[T], objects: Iterable[T]) -> None:
    """Put objects into a store."""
    entries: dict[Key, Entry[T]] = {}
    for found in objects:
        meta = found.metadata
        entries[meta.namespace, meta.name] = store.make_entry(meta.uid, meta.resource_version, found)
    store.replace(entries)


def list_objects(api: Api, target: Target, shape: type[T]) -> list[T]:
    """List in pages; when a list outlives the server's history, once more in one piece.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused.
    """
    decode = msgspec.json.Decoder(shape).decode
    try:
        raws = list(_pages(api, target, PAGE))
    except Gone:
        raws = list(_pages(api, target, 0))
    found = []
    for raw in raws:
        try:
            found.append(decode(raw))
        except BAD_ITEM as error:
            log.warning("%s: skipped an object that can't be read: %s", target.title, error)
    return found


def _pages(api: Api, target: Target, limit: int) -> Iterator[msgspec.Raw]:
    more = ""
    while True:
        query = target.query | ({"limit": str(limit)} if limit else {}) | ({"continue": more} if more else {})
        page = _page(api, target, query)
        yield from page.items or ()
        more = page.metadata.more or ""
        if not more:
            return


def _page(api: Api, target: Target, query: Mapping[str, str]) -> Page:
    try:
        return decode_page(api.request("GET", target.path, query, timeout=60.0).body)
    except BAD_ITEM as error:
        raise BadAnswer(f"{target.path}: must be a list, got {error}") from error


def _everywhere(
    api: Api, kind: GroupKind, namespaces: Iterable[str], shape: type[T], selectors: Mapping[str, str] = NO_SELECTORS
) -> Iterator[T]:
    for namespace in namespaces:
        yield from list_objects(api, Target(kind, namespace, **selectors), shape)


def _namespaces(api: Api) -> list[Namespace]:
    try:
        return list_objects(api, Target(NAMESPACES), Namespace)
    except Forbidden as error:
        log.warning("which namespaces keep Lockstep away is not known: %s", error)
        return []


def _free(api: Api) -> Requests | None:
    try:
        nodes = list_objects(api, Target(NODES), Node)
        return free_sum(nodes, list_objects(api, Target(PODS, **TAKES_ROOM), Pod))
    except Forbidden as error:
        log.warning("what is free is not known: %s", error)
        return None


def _warnings(api: Api, namespaces: Iterable[str]) -> dict[Key, Sequence[str]]:
    """Collect what Lockstep has warned of; API servers forget events after an hour."""
    try:
        events = list(_everywhere(api, EVENTS, namespaces, Event, ABOUT_LWS))
    except Forbidden as error:
        log.warning("what Lockstep has warned of is not known: %s", error)
        return {}
    told: dict[Key, list[str]] = {}
    for event in sorted(events, key=lambda event: (event.metadata.creation_timestamp, event.metadata.name)):
        if event.source.component == OURS and event.type == "Warning":
            about = event.involved_object
            told.setdefault((about.namespace, about.name), []).append(f"{event.reason}: {event.message}")
    return {key: tuple(lines) for key, lines in told.items()}
