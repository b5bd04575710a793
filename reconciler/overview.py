"""Every replica of a snapshot with its state."""

from collections.abc import Iterator
from math import inf
from typing import Final

import msgspec

from gangs import keys
from reconciler.autoscaling import misread
from reconciler.objects import LeaderWorkerSet, Pod
from reconciler.replicas import Sight, real_size
from reconciler.room import Shortage
from reconciler.snapshot import Snapshot
from reconciler.states import (
    MALFORMED,
    NO_LEADER,
    NOT_OURS,
    PLACED,
    RUNNING,
    gates_of,
    judge,
)
from reconciler.turns import Line, line_up
from schedulers.configuration import Configuration


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One replica; what `lockstep status --output json` prints.

    Attributes:
        namespace: its namespace.
        lws: name of its LeaderWorkerSet.
        index: index of the replica, -1 where its leader doesn't say.
        revision: template revision hash, empty without a leader.
        provider: whose scheduler it is, empty for a scheduler that is not configured.
        group: name of its group, empty for none.
        state: one of `reconciler.states`.
        fine: whether nothing waits and nothing is wrong.
        pods: how many pods exist.
        bound: how many of them have a node.
        size: how many it has as it is built.
        reason: why the state is what it is.
        gates: scheduling gates of its pods.
        short: resources of which it asks more than is free in sum.
        words: what its scheduler last said about a pod that waits.
        autoscaler: what an autoscaler gets wrong about it, empty where it sees what is so.
        warnings: what Lockstep has warned of about its LWS within the last hour.
    """

    namespace: str
    lws: str
    index: int
    revision: str = ""
    provider: str = ""
    group: str = ""
    state: str
    fine: bool = False
    pods: int = 0
    bound: int = 0
    size: int = 0
    reason: str
    gates: tuple[str, ...] = ()
    short: tuple[Shortage, ...] = ()
    words: str = ""
    autoscaler: str = ""
    warnings: tuple[str, ...] = ()


FINE: Final = (PLACED, RUNNING)


def replica_entries(snapshot: Snapshot, configuration: Configuration) -> list[Entry]:
    """Judge every replica of a snapshot, in the order of namespace, LWS, index."""
    line = _line(snapshot, configuration)
    found = [_entry(leader, snapshot, configuration, line) for leader in snapshot.cache.leader_pods()]
    known = {(entry.namespace, entry.lws, entry.index) for entry in found}
    for lws in snapshot.cache.sets.objects():
        found += (one for one in _by_count(lws, snapshot) if (one.namespace, one.lws, one.index) not in known)
    return sorted(found, key=lambda entry: (entry.namespace, entry.lws, entry.index, entry.group))


def _line(snapshot: Snapshot, configuration: Configuration) -> Line:
    """Put in line the replicas whose gates are opened one after the other."""
    leaders = [key for name in configuration.schedulers for key in snapshot.cache.leaders_at_gate(name)]
    found = (snapshot.cache.sight(key, None, age=inf, recreations=0) for key in leaders)
    places = line_up((sight for sight in found if isinstance(sight, Sight)), configuration)
    return Line(tuple(places), snapshot.stand_ins)


def _entry(leader: Pod, snapshot: Snapshot, configuration: Configuration, line: Line) -> Entry:
    meta = leader.metadata
    provider = configuration.provider(leader.spec.scheduler_name)
    kind = None if provider is None else snapshot.first(provider.kinds)
    sight = snapshot.cache.sight((meta.namespace, meta.name), kind, age=inf, recreations=0)
    if not isinstance(sight, Sight):
        return _malformed(leader, f"pod {meta.name}: {sight}", snapshot)
    found = judge(sight, configuration, snapshot.first, snapshot.free, line)
    bound, size = sum(pod.bound for pod in sight.pods), real_size(sight)
    return Entry(
        namespace=meta.namespace,
        lws=sight.member.lws,
        index=sight.member.index,
        revision=sight.member.revision,
        provider="" if provider is None else provider.name,
        group="" if found.state == NOT_OURS else sight.member.group or "",
        state=found.state,
        fine=found.state in FINE or (found.state == NOT_OURS and bound >= size),
        pods=len(sight.pods),
        bound=bound,
        size=size,
        reason=found.reason,
        gates=tuple(sorted(set(gates_of(sight.pods)))),
        short=found.short,
        words=found.words,
        autoscaler="" if provider is None else misread(found.state, sight.pods, provider),
        warnings=_warnings(snapshot, meta.namespace, sight.member.lws),
    )


def _malformed(leader: Pod, reason: str, snapshot: Snapshot) -> Entry:
    namespace, lws = leader.metadata.namespace, leader.labels.get(keys.LWS_NAME, "")
    warnings = _warnings(snapshot, namespace, lws)
    return Entry(namespace=namespace, lws=lws, index=-1, state=MALFORMED, reason=reason, pods=1, warnings=warnings)


def _by_count(lws: LeaderWorkerSet, snapshot: Snapshot) -> Iterator[Entry]:
    """Give an entry for each replica that an LWS asks for, as it is without a leader pod."""
    namespace, name, replicas = lws.metadata.namespace, lws.metadata.name, lws.spec.replicas
    warnings, reason = _warnings(snapshot, namespace, name), "its leader pod does not exist"
    for index in range(1 if replicas is None else replicas):
        yield Entry(namespace=namespace, lws=name, index=index, state=NO_LEADER, reason=reason, warnings=warnings)


def _warnings(snapshot: Snapshot, namespace: str, lws: str) -> tuple[str, ...]:
    return tuple(snapshot.warnings.get((namespace, lws), ()))
