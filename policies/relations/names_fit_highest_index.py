"""The names that follow from an LWS's name still fit with the highest index that LWS may create.

A worker StatefulSet is named after its leader pod, and its pods are labelled with its name and a hash: that label is
the tightest limit (kubernetes-sigs/lws#410). Surge adds replicas for a while (kubernetes-sigs/lws#614).
"""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, LeaderWorkerSet

LONGEST_LABEL = 63
HASH = 11
"""A hyphen and ten characters, which the StatefulSet controller adds in the label `controller-revision-hash`."""

MOST = 2**31 - 1


def check(case: Case) -> Iterator[Breach]:
    """Measure the longest name of a worker StatefulSet's revision."""
    lws = case.thing
    assert isinstance(lws, LeaderWorkerSet)  # noqa: S101 - the rule's kind
    highest = highest_index(lws)
    most = LONGEST_LABEL - HASH - len(f"-{highest}")
    name = lws.metadata.name
    if len(name) > most:
        rule = f"be at most {most} characters, so that the names of replica {highest} fit a label"
        yield breach("metadata.name", rule, f'"{name}" of {len(name)}')


def highest_index(lws: LeaderWorkerSet) -> int:
    """Give the highest index of a replica that can exist: `replicas` and `maxSurge`, from 0."""
    replicas = 1 if lws.spec.replicas is None else max(0, lws.spec.replicas)
    return max(0, replicas + _surge(lws, replicas) - 1)


def _surge(lws: LeaderWorkerSet, replicas: int) -> int:
    strategy = lws.spec.rollout_strategy
    update = None if strategy is None else strategy.rolling_update_configuration
    surge = 0 if update is None or update.max_surge is None else update.max_surge
    if isinstance(surge, int):
        return min(max(0, surge), MOST)
    percent = surge.removesuffix("%")
    return -(-replicas * int(percent) // 100) if percent.isascii() and percent.isdigit() and len(percent) < 5 else 0  # noqa: PLR2004


RULE = relation(
    __name__,
    title="The names that follow from an LWS's name fit with the highest index there may be",
    why="Pods or labels of high replicas are refused by the API server: those replicas never come whole",
    severity=ERROR,
    blind="Later scaling beyond what the manifest says",
    kinds=[LEADER_WORKER_SET],
    check=check,
)
