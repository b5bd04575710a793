"""The group of a replica whose workers come late has minimum 1 until they are there.

LWS makes such workers only once the leader is ready or has a node, so a leader that waits for them waits for ever
(kubernetes-sigs/lws#379, #540).
"""

from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS, judged_group
from policies.registry import Breach, Case, breach, relation


def check(case: Case) -> Iterator[Breach]:
    """Compare the minimum with the pods that exist."""
    seen = judged_group(case)
    if seen is None or seen.replica.why_late is None or seen.minimum <= 1 + len(seen.replica.workers):
        return
    lws = seen.replica.lws
    rule = f"be 1 until all workers exist, since {seen.replica.why_late} of {keys.LWS_KIND}"
    yield breach(seen.path, f'{rule} "{lws.metadata.name if lws else ""}" makes them late', str(seen.minimum))


RULE = relation(
    __name__,
    title="A group whose workers come late starts with minimum 1",
    why="The workers are made only after the leader runs: a leader that must wait for them never does",
    severity=ERROR,
    blind="The startup policy of a LeaderWorkerSet that is not among the reviewed objects",
    kinds=GROUP_KINDS,
    check=check,
)
