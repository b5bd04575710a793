"""All members of a group are pods of one replica, and of one life of it."""

from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Pod
from policies.snapshot import Membership, memberships

LIFE = (keys.REVISION, keys.GROUP_KEY)
"""Labels that all pods of one life of a replica share."""


def check(case: Case) -> Iterator[Breach]:
    """Compare the pod with the leader of its group, or with the member whose name sorts first."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    pod = case.thing
    if pod.finished:
        return
    for membership in memberships(pod):
        claim = membership.claim
        if pod.lws is None:
            yield from _intruder(case, pod, membership)
            continue
        members = case.snapshot.members(membership.provider, pod.metadata.namespace, claim.group)
        fit = [member for member in members if member.lws is not None and not member.finished]
        first = min(fit, key=lambda member: (not member.leads, member.leaving, member.metadata.name), default=pod)
        difference = _difference(first, pod)
        if difference:
            yield breach(claim.path, f"name a group of {difference}", f'"{claim.group}"')


def _intruder(case: Case, pod: Pod, membership: Membership) -> Iterator[Breach]:
    claim = membership.claim
    group = case.snapshot.group(membership.provider, pod.metadata.namespace, claim.group)
    lws = None if group is None else group.labels.get(keys.LWS_NAME)
    if lws is not None:
        yield breach(claim.path, f'be left to the pods of {keys.LWS_KIND} "{lws}"', f'"{claim.group}"')


def _difference(first: Pod, pod: Pod) -> str:
    mine, theirs = _replica(pod), _replica(first)
    if mine != theirs:
        return f'replica "{mine}" only, not of "{theirs}" with pod "{first.metadata.name}"'
    if pod.leads and first.metadata.name != pod.metadata.name:
        return f'one leader only, not also of leader "{first.metadata.name}"'
    for key in LIFE:
        here, there = pod.labels.get(key), first.labels.get(key)
        if here is not None and there is not None and here != there:
            return f'its own incarnation only, not of that of pod "{first.metadata.name}" whose {key} is another'
    return ""


def _replica(pod: Pod) -> str:
    index = pod.labels.get(keys.GROUP_INDEX)
    if index is None:
        leader = pod.annotations.get(keys.LEADER_NAME, pod.metadata.name)
        index = leader.rpartition("-")[2]
    return f"{pod.lws}-{index}"


RULE = relation(
    __name__,
    title="A group holds the pods of one replica, in one of its lives",
    why="Members of two replicas or of two incarnations count for each other: the gang is released in part",
    severity=ERROR,
    blind="Members that are not among the reviewed objects; two lives of equal revision and group-key",
    kinds=[POD],
    check=check,
)
