"""Kueue says how many replicas may start, Lockstep sees to it that those that may are placed whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.lockstep import Lockstep
from tests.kueue.installation import ADMISSION_GATE, QUEUE_LABEL, Kueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane


@pytest.fixture
def lockstep(plane: ControlPlane, tmp_path: Path) -> Iterator[Lockstep]:
    """Lockstep beside both."""
    with Lockstep(plane, tmp_path) as running:
        yield running


@pytest.mark.usefixtures("lockstep")
def test_quota_and_nodes_each_hold_back_whole_replicas(plane: ControlPlane, kueue: Kueue) -> None:
    """Four replicas of two on four one-pod nodes.

    With quota for two, two are placed whole and Kueue's gate holds the other two; with quota for all, the other two are
    let in and wait whole for room; two more nodes bring exactly one of them.
    """
    plane.nodes.add(["n1", "n2", "n3", "n4"])
    kueue.offer("team", gpus=32)
    plane.lws.create("vllm", 4, 2, labels={QUEUE_LABEL: "team"})
    plane.wait("two replicas whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, 60)
    plane.holds("two whole, four pods gated", lambda: placed(plane) == 4 and gated(plane) == 4)

    kueue.offer("team", gpus=64)
    plane.wait("all are let in", lambda: gated(plane) == 0, 60)
    plane.holds("two whole and none in part", lambda: placed(plane) == 4 and not plane.lws.in_part("vllm", 2))

    plane.nodes.add(["n5", "n6"])
    plane.wait("a third replica whole", lambda: len(plane.lws.whole("vllm", 2)) == 3, 60)
    plane.holds("three whole and none in part", lambda: placed(plane) == 6 and not plane.lws.in_part("vllm", 2))


def placed(plane: ControlPlane) -> int:
    """Count the pods that have a node."""
    return sum(replica.bound for replica in plane.lws.replicas("vllm").values())


def gated(plane: ControlPlane) -> int:
    """Count the pods that Kueue has not let in."""
    gates = [pod["spec"].get("schedulingGates", []) for pod in plane.lws.pods("vllm")]
    return sum(any(gate["name"] == ADMISSION_GATE for gate in each) for each in gates)
