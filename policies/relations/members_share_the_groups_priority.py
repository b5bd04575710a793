"""A pod and its group have one priority.

kube-scheduler never places a group whose priority differs from its pods'; elsewhere the order of preemption is wrong.
"""

from collections.abc import Iterator

from gangs import intents, keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, POD, PRIORITY_CLASS, LeaderWorkerSet, Pod, PriorityClass
from policies.snapshot import Membership, Snapshot, memberships

WORD = keys.WORD_PREFIX + intents.PRIORITY_CLASS
NATIVE = "native"
PATH = "spec.priorityClassName"
GROUPS_OF_1_35 = "podGroups"
"""A Workload of Kubernetes 1.35 knows no priority: its pods keep their own."""


def check(case: Case) -> Iterator[Breach]:
    """Compare the pod's class with the group's, where groups have one."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    for membership in memberships(case.thing):
        if intents.PRIORITY_CLASS in membership.provider.words:
            yield from _judge(case, case.thing, membership)


def _judge(case: Case, pod: Pod, membership: Membership) -> Iterator[Breach]:
    name = membership.claim.group
    group = case.snapshot.group(membership.provider, pod.metadata.namespace, name)
    if group is None or GROUPS_OF_1_35 in group.spec:
        return
    if membership.provider.name != NATIVE and _asked_for(case.snapshot, pod):
        return
    numbers = group.spec.get("priority"), pod.spec.priority
    if None not in numbers and numbers[0] == numbers[1]:
        return
    theirs = group.spec.get("priorityClassName") or _default_class(case.snapshot)
    ours = pod.spec.priority_class_name or _default_class(case.snapshot)
    if theirs != ours:
        yield breach(PATH, f'be {_shown(theirs)} as in its group "{name}"', _shown(ours))


def _asked_for(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether somebody has given the group a class of its own, by Lockstep's word."""
    lws = snapshot.get(LEADER_WORKER_SET, LeaderWorkerSet, pod.metadata.namespace, pod.lws or "")
    return WORD in pod.annotations or (lws is not None and WORD in lws.annotations)


def _default_class(snapshot: Snapshot) -> str | None:
    classes = snapshot.all(PRIORITY_CLASS, PriorityClass)
    return next((known.metadata.name for known in classes if known.global_default), None)


def _shown(name: str | None) -> str:
    return f'"{name}"' if name else "nothing"


RULE = relation(
    __name__,
    title="A pod has the priority class of its group",
    why="kube-scheduler never places a group whose priority differs from its pods'; others preempt in the wrong order",
    severity=ERROR,
    blind="A PriorityClass whose value was changed after the group was made; groups of schedulers without the field",
    kinds=[POD],
    check=check,
)
