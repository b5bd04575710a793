"""Keeps the objects that groups of several replicas share: there while a replica needs them, gone when none is left."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gangs import keys
from reconciler.actions import Action, CreateGroup, DeleteShared, LookAgain, Say
from reconciler.cache import Cache
from reconciler.objects import GroupObject, Metadata, Pod
from reconciler.replicas import Sight
from reconciler.wanted import controller_reference
from schedulers.contract import GroupKind, Provider, Replica
from schedulers.sharing import Shared, SharesObjects, Sharing

STALE: Final = 1.0
"""Seconds until an object in the way is looked at again, should its deletion not be seen."""


class Kept(msgspec.Struct, frozen=True):
    """What is done about the shared objects of one replica.

    Attributes:
        actions: in order.
        reference: fields of the group's spec that refer to them.
        ready: whether the group may be made.
    """

    actions: tuple[Action, ...] = ()
    reference: Mapping[str, object] = {}
    ready: bool = True


ALONE: Final = Kept()


def keep_shared(sight: Sight, provider: Provider, replica: Replica, kind: GroupKind) -> Kept:
    """Bring about what a replica's group refers to; a group that exists keeps the references it was made with."""
    if not isinstance(provider, SharesObjects):
        return ALONE
    served = [shared for shared in provider.shared_kinds(kind) if shared in sight.watched]
    sharing = provider.share(replica, kind, served, sight.kept or ())
    if sharing.waits and sight.group is None:
        return Kept(tuple(_wait(replica)), ready=False)
    if sight.group is not None and not _refers(sight.group, sharing.reference):
        return ALONE
    actions = tuple(action for shared in sharing.objects for action in _keep(sight, shared, replica))
    if any(isinstance(action, Say | LookAgain) for action in actions):
        return Kept(actions, ready=sight.group is not None)
    missing = any(shared.first and sight.find(shared.kind, shared.name) is None for shared in sharing.objects)
    return Kept((*actions, *_say_apart(replica, sharing)), sharing.reference, ready=not missing)


def _refers(live: GroupObject, reference: Mapping[str, object]) -> bool:
    """Tell whether a group that exists was made with these references; they can't be added later."""
    return all(live.spec.get(name) == value for name, value in reference.items())


def _keep(sight: Sight, shared: Shared, replica: Replica) -> Iterator[Action]:
    owner = _owner(sight, shared)
    if owner is None:
        return
    live = sight.find(shared.kind, shared.name)
    if live is None:
        yield CreateGroup(shared.kind, replica.namespace, shared.name, _body(shared, replica, owner))
    elif keys.LOCKSTEP_SHARED not in (live.metadata.labels or {}):
        message = f"{shared.kind.title} {shared.name}: is not ours, and is left as it is"
        yield Say("GroupOwnedByOther", message, shared.name)
    elif live.metadata.deletion_timestamp is not None or not live.metadata.is_controlled_by(str(owner["uid"])):
        yield LookAgain(STALE, f"{shared.kind.title} {shared.name} of before is still there")


def _body(shared: Shared, replica: Replica, owner: Mapping[str, object]) -> dict[str, object]:
    labels: dict[str, str] = {keys.LOCKSTEP_SHARED: shared.name, **shared.marks}
    return {
        "apiVersion": shared.kind.api_version,
        "kind": shared.kind.kind,
        "metadata": {
            "name": shared.name,
            "namespace": replica.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": dict(shared.fields),
    }


def _owner(sight: Sight, shared: Shared) -> dict[str, object] | None:
    """Name the controller of a shared object: the LWS, or the DisaggregatedSet that controls it."""
    if sight.lws is None:
        return None
    metadata = sight.lws.metadata
    if not shared.of_set:
        return controller_reference(keys.LWS_API_VERSION, keys.LWS_KIND, metadata.name, metadata.uid)
    above = metadata.controller
    if above is None:
        return None
    return controller_reference(keys.DISAGGREGATED_API_VERSION, keys.DISAGGREGATED_KIND, above.name, above.uid)


def _wait(replica: Replica) -> Iterator[Action]:
    """Hold the group back, and its pods with it."""
    name = "" if replica.roles is None else replica.roles.name
    message = f"replicas beyond the first wait until every role of DisaggregatedSet {name} has a replica that is placed"
    yield Say("WaitsForRoles", message, name, type="Normal")
    yield LookAgain(STALE, "a role of its DisaggregatedSet has not started")


def _say_apart(replica: Replica, sharing: Sharing) -> Iterator[Action]:
    """Say that roles which are wanted together are placed apart."""
    if not sharing.apart or replica.roles is None:
        return
    name = replica.roles.name
    why = "the API server has no CompositePodGroup, or its roles differ in priority class or are more than 8"
    yield Say("RolesApart", f"roles of DisaggregatedSet {name} are placed apart: {why}", name)


class Leftovers:
    """Finds shared objects of ours that no leader needs any more."""

    def __init__(self, cache: Cache) -> None:
        """Remember nothing."""
        self._cache = cache
        self._unused: frozenset[str] = frozenset()

    def find(self, kinds: Collection[GroupKind]) -> list[DeleteShared]:
        """Give those that were unused at the last look too: a leader that is replaced is away for a moment."""
        unused = [
            DeleteShared(kind, live.metadata.namespace, live.metadata.name, live.metadata.uid)
            for kind in kinds
            if (store := self._cache.groups.get(kind)) is not None
            for live in store.objects()
            if self._is_unused(live.metadata)
        ]
        before, self._unused = self._unused, frozenset(one.uid for one in unused)
        return [one for one in unused if one.uid in before]

    def _is_unused(self, metadata: Metadata) -> bool:
        labels = dict(metadata.labels or {})
        if labels.pop(keys.LOCKSTEP_SHARED, None) != metadata.name or metadata.deletion_timestamp is not None:
            return False
        leaders = self._cache.leaders_in(metadata.namespace)
        return bool(labels) and not any(_bears(pod, labels) for pod in leaders)


def _bears(pod: Pod, marks: Mapping[str, str]) -> bool:
    return marks.items() <= pod.labels.items()


def shared_with(provider: Provider, kind: GroupKind) -> tuple[GroupKind, ...]:
    """List the kinds beside group objects of a kind that a provider writes or reads."""
    return provider.shared_kinds(kind) if isinstance(provider, SharesObjects) else ()


def shared_kinds_of(providers: Iterable[Provider]) -> list[GroupKind]:
    """List the kinds beside group objects that providers write or read, in any version."""
    found = (shared for of in providers for kind in of.kinds for shared in shared_with(of, kind))
    return list(dict.fromkeys(found))
