"""Pictures of a cluster in text: nodes by replicas, who runs, who waits and why. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Json = dict[str, Any]

INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WIDTH = 12
LONGEST_REASON = 90


def picture(pods: Iterable[Json], nodes: Sequence[str], size: int) -> list[str]:
    """Draw which pod stands on which node, and below it every replica with its pods and its reason.

    Args:
        pods: pods of one LeaderWorkerSet.
        nodes: names of the nodes.
        size: pods of a replica.
    """
    replicas: dict[int, list[Json]] = defaultdict(list)
    for pod in pods:
        replicas[int(pod["metadata"]["labels"][INDEX])].append(pod)
    ordered = sorted(replicas.items())
    return [*_nodes(ordered, nodes), "", *_replicas(ordered, size), "", summary(replicas.values(), size)]


def summary(replicas: Iterable[Sequence[Json]], size: int) -> str:
    """Count replicas that run whole, that hold room for nothing, and that wait with nothing."""
    placed = [sum(map(bound, pods)) for pods in replicas]
    whole, nothing = placed.count(size), placed.count(0)
    part = len(placed) - whole - nothing
    wasted = sum(placed) - whole * size
    return f"{whole} whole, {part} in part ({wasted} nodes held for nothing), {nothing} waiting with nothing"


def bound(pod: Json) -> bool:
    """Tell whether a pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def _nodes(replicas: Sequence[tuple[int, Sequence[Json]]], nodes: Sequence[str]) -> Iterator[str]:
    on = {pod["spec"].get("nodeName"): pod["metadata"]["name"] for _, pods in replicas for pod in pods}
    yield ("  node  " + "".join(f"{node:<{WIDTH}}" for node in nodes)).rstrip()
    yield ("  pod   " + "".join(f"{on.get(node, '-'):<{WIDTH}}" for node in nodes)).rstrip()


def _replicas(replicas: Sequence[tuple[int, Sequence[Json]]], size: int) -> Iterator[str]:
    for index, pods in replicas:
        placed = sum(map(bound, pods))
        bar = "#" * placed + "." * (size - placed)
        yield f"  replica {index:>2}  [{bar}]  {_state(pods, placed, size)}"


def _state(pods: Sequence[Json], placed: int, size: int) -> str:
    if placed == size:
        return "runs"
    reason = next((text for pod in pods if not bound(pod) and (text := _reason(pod))), "the scheduler says nothing")
    if placed:
        return f"HOLDS {placed} OF {size} FOR NOTHING: {reason}"
    return f"waits: {reason}"


def _reason(pod: Json) -> str:
    """The scheduler's words about a pod, shortened to what fits a line."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            text = condition.get("message") or condition.get("reason") or ""
            text = text.partition(". ")[0].removesuffix(".")
            return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."
    return ""
