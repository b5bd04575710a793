"""A group's minimum is the whole replica, unless late workers explain less."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS, judged_group
from policies.registry import Breach, Case, breach, relation


def check(case: Case) -> Iterator[Breach]:
    """Compare the minimum with the replica's pods that are, or will be, members."""
    seen = judged_group(case)
    if seen is None or seen.replica.why_late is not None:
        return
    needed = max(1, seen.size - seen.replica.strangers(seen.provider, seen.group.metadata.name))
    if seen.minimum < needed:
        rule = f'be {needed}, the pods of replica "{seen.replica.name}", whose workers come with their leader'
        yield breach(seen.path, rule, str(seen.minimum))


RULE = relation(
    __name__,
    title="A group's minimum is the whole replica unless its workers come late",
    why="A part of the replica would start and hold its room for nothing, or pin a topology that cannot hold the rest",
    severity=ERROR,
    blind="Pods of the replica that opted out and are not among the reviewed objects",
    kinds=GROUP_KINDS,
    check=check,
)
