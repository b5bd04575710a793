"""What is free in sum."""

from typing import Any

import pytest

from reconciler.objects import Node, Pod
from reconciler.room import Shortage, free_sum, shortages, takes_pods
from tests.builders import JsonObject
from tests.reconciler.sights import decoded

NANO = 10**9


def node(name: str, spec: JsonObject | None = None, **allocatable: str) -> Node:
    """A node with 8 GPUs and 4 CPUs unless said otherwise."""
    status = {"allocatable": {"cpu": "4", "nvidia.com/gpu": "8"} | allocatable}
    found: Node = decoded({"kind": "Node", "metadata": {"name": name}, "spec": spec or {}, "status": status})
    return found


def pod(where: str, gpus: int, phase: str = "Running", cpu: str = "1") -> Pod:
    """A pod on a node."""
    requests = {"nvidia.com/gpu": str(gpus), "cpu": cpu}
    spec = {"nodeName": where, "containers": [{"name": "x", "resources": {"requests": requests}}]}
    found: Pod = decoded({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}})
    return found


TAKES: dict[str, tuple[JsonObject, bool]] = {
    "plain": ({}, True),
    "cordoned": ({"unschedulable": True}, False),
    "not ready": ({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, False),
    "under pressure": ({"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]}, False),
    "a taint that pods may tolerate": ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, True),
}


@pytest.mark.parametrize(("spec", "takes"), TAKES.values(), ids=TAKES.keys())
def test_cordoned_and_sick_nodes_take_no_pods(spec: JsonObject, *, takes: bool) -> None:
    """Other taints are somebody's wish, and may be tolerated."""
    assert takes_pods(node("n1", spec)) is takes


def test_free_is_allocatable_less_what_bound_unfinished_pods_ask() -> None:
    """On schedulable nodes alone; pods without a node and finished ones take nothing."""
    nodes = [node("n1"), node("n2"), node("n3", {"unschedulable": True})]
    pods = [pod("n1", 8), pod("n2", 3), pod("n3", 8), pod("", 8), pod("n2", 8, "Failed"), pod("n2", 1, "Succeeded")]
    assert free_sum(nodes, pods) == {"cpu": 6 * NANO, "nvidia.com/gpu": 5 * NANO}


def test_what_can_not_be_read_counts_for_nothing() -> None:
    """A sum with a hole is better than none; the API server lets neither in."""
    assert free_sum([node("n1", cpu="x")], [pod("n1", 1, cpu="y")]) == {"nvidia.com/gpu": 8 * NANO}


SHORT: dict[str, tuple[Any, Any, tuple[Shortage, ...]]] = {
    "enough": ({"cpu": NANO}, {"cpu": NANO}, ()),
    "too little": ({"cpu": 3 * NANO}, {"cpu": NANO // 2}, (Shortage("cpu", "3", "500m"),)),
    "not there at all": ({"gpu": NANO}, {}, (Shortage("gpu", "1", "0"),)),
    "less than nothing, after an overcommitment": ({"cpu": NANO}, {"cpu": -NANO}, (Shortage("cpu", "1", "0"),)),
    "nothing is asked": ({"gpu": 0}, {}, ()),
    "in bytes": ({"memory": 2**31 * NANO}, {"memory": 2**30 * NANO}, (Shortage("memory", "2Gi", "1Gi"),)),
}


@pytest.mark.parametrize(("asks", "free", "short"), SHORT.values(), ids=SHORT.keys())
def test_a_shortage_names_both_amounts(asks: Any, free: Any, short: tuple[Shortage, ...]) -> None:
    """As quantities, for each resource that is short."""
    assert shortages(asks, free) == short
