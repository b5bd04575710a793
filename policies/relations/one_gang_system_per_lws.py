"""One system alone makes the groups of an LWS.

LWS can make them itself (`spec.scheduling`, or its Volcano provider), and so can what stands above it; with Lockstep
beside it each replica has two groups, and both wait (kubernetes-sigs/lws#1075, ai-dynamo/dynamo#4616).
"""

from collections import defaultdict
from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, LeaderWorkerSet
from policies.snapshot import Snapshot, provider_of_kind
from schedulers.registry import all_providers, usual_schedulers


def check(case: Case) -> Iterator[Breach]:
    """Look at what the LWS asks for, and at the groups that there are of its replicas."""
    lws = case.thing
    assert isinstance(lws, LeaderWorkerSet)  # noqa: S101 - the rule's kind
    scheduler = lws.leader_template.scheduler
    away = lws.leader_template.labels.get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT
    if lws.spec.scheduling and not away and scheduler in usual_schedulers(all_providers()):
        rule = f'be unset, or the pod template labelled {keys.LOCKSTEP_GANG}: "{keys.OPTED_OUT}"'
        yield breach("spec.scheduling", rule, f"LWS's own groups beside Lockstep's for scheduler \"{scheduler}\"")
    for index, groups in sorted(_by_replica(case.snapshot, lws).items()):
        if len(groups) > 1:
            rule = f"have one group for each replica, made by one system, for replica {index}"
            yield breach("metadata.name", rule, " and ".join(sorted(groups)))


def _by_replica(snapshot: Snapshot, lws: LeaderWorkerSet) -> dict[str, set[str]]:
    """Index -> groups of one incarnation; the group of an older one that is not collected yet does not count."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kind, group in snapshot.groups_of(*lws.place):
        index, owner = group.labels.get(keys.GROUP_INDEX), group.metadata.controller
        if index is not None and not group.leaving and provider_of_kind(kind) is not None:
            found[index]["" if owner is None else owner.uid].add(f'{kind} "{group.metadata.name}"')
    return {index: max(lives.values(), key=len) for index, lives in found.items()}


RULE = relation(
    __name__,
    title="One system alone makes the groups of an LWS",
    why="Two writers make two groups for one replica: their minimums contradict, and the replica waits for both",
    severity=ERROR,
    blind="Groups without LWS's labels; LWS's Volcano provider before its first group",
    kinds=[LEADER_WORKER_SET],
    check=check,
)
