"""What is free in the cluster, in sum: nothing more than a bound on what can be placed."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gangs.quantities import QuantityError, parse_quantity
from gangs.resources import Requests, ResourceError, add, pod_requests, to_quantities
from reconciler.objects import Node, Pod

OF_NODE_LIFE: Final = "node.kubernetes.io/"
"""Prefix of the taints that say a node is not ready, cordoned or short of something."""


class Shortage(msgspec.Struct, frozen=True):
    """A resource of which more is asked than is free in sum.

    Attributes:
        resource: its name.
        asks: the quantity that is asked.
        free: the quantity that is free.
    """

    resource: str
    asks: str
    free: str


def takes_pods(node: Node) -> bool:
    """Tell whether a node is schedulable: not cordoned, not tainted for its health; other taints may be tolerated."""
    taints = node.spec.taints or ()
    return not node.spec.unschedulable and not any(taint.get("key", "").startswith(OF_NODE_LIFE) for taint in taints)


def free_sum(nodes: Iterable[Node], pods: Iterable[Pod]) -> Requests:
    """Sum what the schedulable nodes have and their bound, unfinished pods don't ask for.

    Args:
        nodes: all nodes.
        pods: all pods, of every namespace and scheduler.
    """
    schedulable = {node.metadata.name: node for node in nodes if takes_pods(node)}
    there = add(*(_allocatable(node) for node in schedulable.values()))
    taken = add(*(_asked(pod) for pod in pods if pod.spec.node_name in schedulable and not pod.finished))
    return {name: amount - taken.get(name, 0) for name, amount in there.items()}


def shortages(asks: Mapping[str, int], free: Mapping[str, int]) -> tuple[Shortage, ...]:
    """Find the resources of which more is asked than is free in sum, by name."""
    short = {name: amount for name, amount in asks.items() if amount > free.get(name, 0)}
    return tuple(
        Shortage(name, quantity, to_quantities({name: max(0, free.get(name, 0))}).get(name, "0"))
        for name, quantity in to_quantities(short).items()
    )


def _allocatable(node: Node) -> Requests:
    found: Requests = {}
    for name, text in (node.status.allocatable or {}).items():
        try:
            found[name] = parse_quantity(text)
        except QuantityError:
            continue
    return found


def _asked(pod: Pod) -> Requests:
    try:
        return pod_requests(pod.spec, pod.status)
    except ResourceError:
        return {}
