"""A group's minimum is not above the pods that its replica can ever have."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS, judged_group
from policies.registry import Breach, Case, breach, relation


def check(case: Case) -> Iterator[Breach]:
    """Compare the minimum with the size as the replica is built."""
    seen = judged_group(case)
    if seen is not None and seen.minimum > seen.size:
        rule = f'be at most {seen.size}, the size of replica "{seen.replica.name}"'
        yield breach(seen.path, rule, str(seen.minimum))


RULE = relation(
    __name__,
    title="A group's minimum is not above the size of its replica",
    why="The scheduler waits for pods that nobody makes: the replica never starts",
    severity=ERROR,
    blind="Groups of anything but LeaderWorkerSets; a replica whose leader and LeaderWorkerSet are not known",
    kinds=GROUP_KINDS,
    check=check,
)
