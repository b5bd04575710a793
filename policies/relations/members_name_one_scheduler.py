"""All members of a group name one scheduler."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Pod
from policies.snapshot import memberships


def check(case: Case) -> Iterator[Breach]:
    """Compare the pod with the leader of its group, or with the member whose name sorts first."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    pod = case.thing
    for membership in memberships(pod):
        members = case.snapshot.members(membership.provider, pod.metadata.namespace, membership.claim.group)
        first = min(members, key=lambda member: (not member.leads, member.metadata.name), default=pod)
        if first.scheduler != pod.scheduler:
            rule = f'be "{first.scheduler}" as on pod "{first.metadata.name}" of its group "{membership.claim.group}"'
            yield breach("spec.schedulerName", rule, f'"{pod.scheduler}"')


RULE = relation(
    __name__,
    title="All members of a group name one scheduler",
    why="Each scheduler would count its own part of the group only; kube-scheduler fails the whole group",
    severity=ERROR,
    blind="Members that are not among the reviewed objects",
    kinds=[POD],
    check=check,
)
