"""Reads the objects of a live cluster that rules look at, whole, as the API server gives them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from gangs import keys
from policies.objects import Subject
from policies.shapes import (
    LEADER_WORKER_SET,
    LOCAL_QUEUE,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    STATEFUL_SET,
    WORKLOAD,
    Pod,
)
from policies.snapshot import Snapshot, group_kind, memberships, queue_kinds, typed
from policies.targets import GATES, GENERIC_WORKLOAD, NEWEST, Target, parse_target
from reconciler.contract import Api, Forbidden, Gone, object_path
from reconciler.discovery import serves
from reconciler.wire import BAD_ITEM, BadAnswer, Page, decode_page
from schedulers.contract import GroupKind
from schedulers.native_objects import API_GROUP
from schedulers.registry import all_providers

PAGE: Final = 500
SECONDS: Final = 60.0

KINDS: Final[Mapping[str, GroupKind]] = {
    NAMESPACE: GroupKind("", "v1", "Namespace", "namespaces"),
    POD: GroupKind("", "v1", "Pod", "pods"),
    STATEFUL_SET: GroupKind("apps", "v1", "StatefulSet", "statefulsets"),
    LEADER_WORKER_SET: GroupKind("leaderworkerset.x-k8s.io", "v1", keys.LWS_KIND, "leaderworkersets"),
    PRIORITY_CLASS: GroupKind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses"),
    LOCAL_QUEUE: GroupKind("kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues"),
    **queue_kinds(all_providers().values()),
}
"""What is read beside the groups of every scheduler and the Workloads."""

JUDGED: Final = (POD, LEADER_WORKER_SET, WORKLOAD)
"""What is reviewed beside groups; the rest is only looked into."""

Json = dict[str, Any]


class Collected(msgspec.Struct, frozen=True):
    """A cluster at one moment.

    Attributes:
        subjects: the objects to review.
        contents: everything that was read.
        complete: kinds of which everything was read.
        served: titles of the group kinds that the API server serves.
        target: what the API server is.
    """

    subjects: Sequence[Subject]
    contents: Sequence[Json]
    complete: frozenset[str]
    served: tuple[str, ...]
    target: Target

    @property
    def snapshot(self) -> Snapshot:
        """What is known."""
        return self.with_objects(())

    def with_objects(self, subjects: Iterable[Subject]) -> Snapshot:
        """What would be known with some more objects, which replace those of the same name."""
        more = (subject.content for subject in subjects)
        return Snapshot([*self.contents, *more], complete=self.complete, served=self.served)


def collect(api: Api, namespaces: Sequence[str] = ()) -> Collected:
    """Read a cluster once; only get and list are used.

    Args:
        api: whom to ask.
        namespaces: where to look, empty for everywhere.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused what can't be done without.
    """
    groups = [kind for provider in all_providers().values() for kind in provider.kinds]
    served = [kind for kind in groups if serves(api, kind)]
    wanted = {name: kind for name, kind in KINDS.items() if not kind.api_group or serves(api, kind)}
    native = next((kind for kind in served if kind.api_group == API_GROUP), None)
    if native is not None:
        wanted[WORKLOAD] = GroupKind(API_GROUP, native.version, "Workload", "workloads")
    contents: list[Json] = []
    complete: set[str] = set()
    for name, kind in [*wanted.items(), *_first_served(served)]:
        found = _readable(api, kind, namespaces)
        if found is not None:
            contents += found
            complete |= set() if namespaces else {name}
    titles = tuple(kind.title for kind in served)
    return Collected(subjects_of(contents), contents, frozenset(complete), titles, _target(api, native))


def subjects_of(contents: Sequence[Json]) -> list[Subject]:
    """Pick what is to be reviewed, with the labels of its namespace; pods only where they are in a gang or an LWS."""
    names = {group_kind(provider) for provider in all_providers().values() if provider.kinds} | {*JUDGED}
    spaces = {
        content["metadata"]["name"]: content["metadata"].get("labels") or {}
        for content in contents
        if content["kind"] == NAMESPACE
    }
    subjects = [
        Subject(content, namespace_labels=spaces.get(content["metadata"].get("namespace", ""), {}))
        for content in contents
    ]
    return [each for each in subjects if each.kind in names and (each.kind != POD or _concerns_us(each.content))]


def _concerns_us(content: Mapping[str, Any]) -> bool:
    pod = typed(content)
    return pod is None or (isinstance(pod, Pod) and (pod.lws is not None or bool(memberships(pod))))


def _first_served(served: Iterable[GroupKind]) -> Iterator[tuple[str, GroupKind]]:
    """Give each kind of group in its preferred version of those served: the others are the same objects."""
    seen: set[str] = set()
    for kind in served:
        name = f"{kind.kind}.{kind.api_group}"
        if name not in seen:
            seen.add(name)
            yield name, kind


def _readable(api: Api, kind: GroupKind, namespaces: Sequence[str]) -> list[Json] | None:
    """List a kind; `None` where we may not and can do without: then nothing is said about missing ones."""
    try:
        scoped = namespaces if kind.plural not in CLUSTER_SCOPED else ()
        return [item for namespace in scoped or ("",) for item in _listed(api, kind, namespace)]
    except Forbidden:
        if kind.plural in NEEDED:
            raise
        return None


CLUSTER_SCOPED: Final = frozenset({"namespaces", "priorityclasses", "queues"})
NEEDED: Final = frozenset({"pods", "leaderworkersets"})


def _listed(api: Api, kind: GroupKind, namespace: str) -> list[Json]:
    try:
        raws = list(_pages(api, kind, namespace, PAGE))
    except Gone:
        raws = list(_pages(api, kind, namespace, 0))
    contents = []
    for raw in raws:
        content = msgspec.json.decode(raw, type=Json)
        content["metadata"].pop("managedFields", None)
        contents.append({"apiVersion": kind.api_version.removeprefix("/"), "kind": kind.kind, **content})
    return contents


def _pages(api: Api, kind: GroupKind, namespace: str, limit: int) -> Iterator[msgspec.Raw]:
    more = ""
    while True:
        query = ({"limit": str(limit)} if limit else {}) | ({"continue": more} if more else {})
        page = _page(api, object_path(kind, namespace), query)
        yield from page.items or ()
        more = page.metadata.more or ""
        if not more:
            return


def _page(api: Api, path: str, query: Mapping[str, str]) -> Page:
    try:
        return decode_page(api.request("GET", path, query, timeout=SECONDS).body)
    except BAD_ITEM as error:
        raise BadAnswer(f"{path}: must be a list, got {error}") from error


class _Version(msgspec.Struct, frozen=True):
    major: str = ""
    minor: str = ""


def _target(api: Api, native: GroupKind | None) -> Target:
    """Take the server's own version, or the newest known where it is none of ours; its gates can't be asked for."""
    version = msgspec.json.decode(api.request("GET", "/version").body, type=_Version)
    minor = f"{version.major}.{version.minor.rstrip('+')}"
    return parse_target(minor if minor in GATES else NEWEST, GENERIC_WORKLOAD if native is not None else "")
