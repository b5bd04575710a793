"""A pod's group exists, and it exists in the pod's namespace.

A scheduler looks for the group in the pod's own namespace only, and waits for it without a word.
"""

from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Pod
from policies.snapshot import Membership, group_kind, memberships


def check(case: Case) -> Iterator[Breach]:
    """Look every group of the pod up."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    if case.thing.finished or _comes_first(case, case.thing):
        return
    for membership in memberships(case.thing):
        if membership.provider.kinds:
            yield from _judge(case, case.thing, membership)


def _comes_first(case: Case, pod: Pod) -> bool:
    """Whether the pod is just being written with our stamp: the reconciler makes its group when the pod is stored."""
    return bool(case.subject.user.username) and keys.LOCKSTEP_GROUP in pod.labels


def _judge(case: Case, pod: Pod, membership: Membership) -> Iterator[Breach]:
    kind, claim = group_kind(membership.provider), membership.claim
    if case.snapshot.group(membership.provider, pod.metadata.namespace, claim.group) is not None:
        return
    elsewhere = case.snapshot.namespaces_of(kind, claim.group)
    if elsewhere:
        rule = f'name a PodGroup of its own namespace "{pod.metadata.namespace}"'
        yield breach(claim.path, rule, f'"{claim.group}" of namespace "{min(elsewhere)}"')
    else:
        rule = f"name a {kind} that exists in its namespace"
        yield breach(claim.path, rule, f'"{claim.group}"', certain=case.snapshot.knows(kind))


RULE = relation(
    __name__,
    title="A pod's group exists, in the pod's own namespace",
    why="Schedulers look for a group in the pod's namespace only, and let a pod whose group is missing wait in silence",
    severity=ERROR,
    blind="A group that is made after the review; in files, a group that only the cluster has is a note",
    kinds=[POD],
    check=check,
)
