"""One incarnation of a replica as the cache shows it: who belongs to it, how large it is really built, what it asks."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from gangs import intents, keys, late
from gangs.members import Member
from gangs.resources import PodResources, Requests, replica_requests, to_quantities
from reconciler.objects import (
    POD,
    STATEFUL_SET,
    ControllerRevision,
    GroupObject,
    LeaderWorkerSet,
    Namespace,
    Pod,
    RevisionData,
    StatefulSet,
)
from reconciler.wanted import live_minimum
from schedulers.abilities import OwnSettings
from schedulers.contract import Arrival, GroupKind, Provider, Replica

PATIENCE: Final = 2.0
"""Seconds to wait for a worker StatefulSet before the leader's size annotation is believed."""


class _Everything(Container[str]):
    """Holds every field: what is kept where nobody has asked."""

    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING: Final = _Everything()
Find = Callable[[GroupKind, str], GroupObject | None]


def find_nothing(kind: GroupKind, name: str) -> None:
    """Find no object."""


def whole_nowhere(marks: Mapping[str, str]) -> frozenset[str]:
    """Find no role that has started."""
    del marks
    return frozenset()


class Sight(msgspec.Struct, frozen=True):
    """Everything the cache holds about one leader's replica.

    Attributes:
        leader: the live leader pod.
        member: what it says of itself.
        group: the group object of the name that its members compute.
        workers: pods that name it as their leader, of any incarnation.
        stateful_set: the StatefulSet of the leader's name.
        lws: the LeaderWorkerSet.
        revisions: ControllerRevisions of the LWS.
        namespace: the namespace.
        age: seconds since this leader was first seen.
        recreations: how often a leader of this name has been deleted for want of a stamp.
        now: seconds since 1970, 0 where nothing depends on them.
        kept: gated fields of the group's kind that the API server keeps, `None` while that is not known.
        watched: kinds of group object, and of what groups share, that are followed.
        find: finds an object of such a kind in the replica's namespace.
        whole_roles: gives the roles of a DisaggregatedSet, by labels of its pods, that have a replica placed whole.
    """

    leader: Pod
    member: Member
    group: GroupObject | None = None
    workers: Sequence[Pod] = ()
    stateful_set: StatefulSet | None = None
    lws: LeaderWorkerSet | None = None
    revisions: Sequence[ControllerRevision] = ()
    namespace: Namespace | None = None
    age: float = 0.0
    recreations: int = 0
    now: float = 0.0
    kept: Container[str] | None = EVERYTHING
    watched: frozenset[GroupKind] = frozenset()
    find: Find = find_nothing
    whole_roles: Callable[[Mapping[str, str]], frozenset[str]] = whole_nowhere

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Leader and workers of this incarnation."""
        return (self.leader, *self.own_workers())

    @property
    def worker_set(self) -> StatefulSet | None:
        """The StatefulSet of this incarnation's workers: it is controlled by this very leader pod."""
        owner = None if self.stateful_set is None else self.stateful_set.metadata.controller
        ours = owner is not None and owner.kind == POD and owner.uid == self.leader.metadata.uid
        return self.stateful_set if ours else None

    def own_workers(self) -> tuple[Pod, ...]:
        """Workers of this incarnation, by the chain of controllers: labels can be forged, UIDs can't."""
        if self.worker_set is None:
            return ()
        return tuple(pod for pod in self.workers if controlled_by(pod, self.worker_set.metadata.uid))


class NotYet(msgspec.Struct, frozen=True):
    """The replica can't be judged yet.

    Attributes:
        reason: why, for logs.
        seconds: when to look again at the latest.
    """

    reason: str
    seconds: float


def controlled_by(pod: Pod, uid: str) -> bool:
    """Tell whether the StatefulSet with `uid` controls a pod."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == STATEFUL_SET and owner.uid == uid


def read_replica(sight: Sight, provider: Provider, defaults: intents.Intent, *, strangers: int = 0) -> Replica | NotYet:
    """Compute what a group object depends on.

    Args:
        sight: what the cache holds.
        provider: the pods' scheduler.
        defaults: intent words of the configuration.
        strangers: pods of the replica that are no members and can't become any; the minimum goes without them.

    Raises:
        gangs.resources.ResourceError: when a template asks for something that is no quantity.
    """
    if sight.lws is None:
        return NotYet("its LeaderWorkerSet is not in the cache", 1.0)
    size = real_size(sight)
    why = late.why_late(sight.lws.spec.startup_policy, sight.lws.metadata.annotations or {}, size)
    if why is None and may_have_workers(sight) and sight.group is None and sight.age < PATIENCE:
        return NotYet("its worker StatefulSet is not there yet: the size is a guess", PATIENCE - sight.age)
    requests = whole_requests(sight, size)
    if requests is None:
        return NotYet("the template of its workers is not in the cache", 1.0)
    member = sight.member
    return Replica(
        namespace=member.namespace,
        lws=member.lws,
        index=member.index,
        revision=member.revision,
        group=member.group or "",
        size=size,
        minimum=_minimum(sight, provider, max(1, size - strangers), late_workers=why is not None),
        requests=to_quantities(requests),
        late=why,
        priority_class=sight.leader.spec.priority_class_name,
        intent=read_words(sight, provider, defaults)[0],
        own=read_settings(sight, provider),
        bound=sum(pod.bound for pod in sight.pods),
        preemption_policy=sight.leader.spec.preemption_policy,
        template_size=template_size(sight),
        claims=claims_of(sight),
    )


def claims_of(sight: Sight) -> dict[str, str]:
    """Give the ResourceClaims that the pods of this incarnation share: the name in the pods -> the claim's name."""
    given = sight.leader.spec.resource_claims or ()
    named = {claim.name: claim.resource_claim_name for claim in given if claim.resource_claim_name is not None}
    return {name: claim for name, claim in named.items() if claim == sight.member.group}


def _minimum(sight: Sight, provider: Provider, size: int, *, late_workers: bool) -> int:
    workers = sight.own_workers()
    # Where it counts that workers are bound, a minimum that stays raised while one isn't has the others evicted.
    stays = provider.late_workers.arrival is Arrival.EXIST
    return late.minimum(
        size,
        late=late_workers,
        workers=len(workers),
        arrived=have_arrived(workers, real_size(sight) - 1, provider.late_workers.arrival),
        live=live_minimum(sight.group, provider) if stays and sight.group is not None else None,
    )


def real_size(sight: Sight) -> int:
    """Give the size as it is built: the worker StatefulSet's replicas and the leader; without one, a guess.

    The guess is the leader's annotation. But LWS makes no workers for anybody once the live size is 1, so that leaders
    of an older revision stay alone (LWS 0.8.0 `pkg/controllers/pod_controller.go`).
    """
    if sight.worker_set is not None:
        return sight.worker_set.spec.replicas + 1
    return 1 if live_size(sight) == 1 else sight.member.size


def live_size(sight: Sight) -> int | None:
    """Give the size that the LWS has now, whatever the replica's revision; `None` while it is unknown."""
    return None if sight.lws is None else sight.lws.spec.leader_worker_template.size


def template_size(sight: Sight) -> int | None:
    """Give the size that the replica's own revision has; `None` while its ControllerRevision is unknown."""
    data = revision_data(sight.revisions, sight.member.revision)
    return None if data is None else data.spec.leader_worker_template.size


def may_have_workers(sight: Sight) -> bool:
    """Tell whether a worker StatefulSet that isn't there may still come."""
    return sight.worker_set is None and max(sight.member.size, live_size(sight) or 1) > 1


def have_arrived(workers: Sequence[Pod], needed: int, arrival: Arrival) -> bool:
    """Tell whether all late workers have arrived."""
    there = [pod for pod in workers if not pod.finished and (arrival is Arrival.EXIST or pod.bound)]
    return len(there) >= needed


def whole_requests(sight: Sight, size: int) -> Requests | None:
    """Sum what the replica asks for; `None` while the workers' template is unknown."""
    workers = [pod for pod in sight.own_workers() if not pod.finished][: size - 1]
    template = worker_template(sight)
    if template is None and len(workers) < size - 1:
        return None
    return replica_requests(sight.leader, workers, template, size)


def worker_template(sight: Sight) -> PodResources | None:
    """Find the template of the workers: of their StatefulSet, else of the revision that the leader was built from."""
    if sight.worker_set is not None:
        return sight.worker_set.spec.template.spec
    data = revision_data(sight.revisions, sight.member.revision)
    return None if data is None else data.spec.leader_worker_template.worker_template.spec


def revision_data(revisions: Iterable[ControllerRevision], revision: str) -> RevisionData | None:
    """Find the LWS's own revision of that hash; the label stands on revisions of its StatefulSets too."""
    for candidate in revisions:
        owner = candidate.metadata.controller
        if owner is None or owner.kind != keys.LWS_KIND:
            continue
        if (candidate.metadata.labels or {}).get(keys.REVISION) == revision:
            return msgspec.json.decode(candidate.data, type=RevisionData)
    return None


def read_words(sight: Sight, provider: Provider, defaults: intents.Intent) -> tuple[intents.Intent, list[str]]:
    """Read the intent words of a replica and what is wrong with them."""
    return intents.read_intent(levels_of(sight), provider.own_keys, defaults)


def levels_of(sight: Sight) -> list[intents.Level]:
    """Give what is read for words, the strongest first."""
    levels = [intents.Level("pod", sight.leader.annotations, sight.leader.labels)]
    for path, above in (("leaderworkerset", sight.lws), ("namespace", sight.namespace)):
        if above is not None:
            metadata = above.metadata
            levels.append(intents.Level(path, metadata.annotations or {}, metadata.labels or {}))
    return levels


def read_settings(sight: Sight, provider: Provider) -> dict[str, str]:
    """Read what a scheduler's own settings say for a replica; the strongest level counts."""
    if not isinstance(provider, OwnSettings):
        return {}
    found: dict[str, str] = {}
    for level in reversed(levels_of(sight)):
        for values in (level.annotations, level.labels):
            found |= {key: values[key] for key in provider.settings if key in values}
    return found
