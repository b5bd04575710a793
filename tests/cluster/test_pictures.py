"""Pictures say what is there."""

from __future__ import annotations

from typing import Any

from tests.cluster.pictures import picture


def pod(name: str, index: int, node: str = "", message: str = "") -> dict[str, Any]:
    """A pod as the picture reads it."""
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {
        "metadata": {"name": name, "labels": {"leaderworkerset.sigs.k8s.io/group-index": str(index)}},
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": [condition] if message else []},
    }


def test_who_runs_who_holds_room_for_nothing_and_who_waits_and_why() -> None:
    """One replica whole, one in part, one waiting, one about which the scheduler says nothing."""
    pods = [
        pod("a-0", 0, "n1"),
        pod("a-0-1", 0, "n2"),
        pod("a-1", 1, "n3"),
        pod("a-1-1", 1, message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none."),
        pod("a-2", 2, message="x" * 100),
        pod("a-2-1", 2),
        pod("a-3", 3),
    ]
    assert picture(pods, ["n1", "n2", "n3", "n4"], 2) == [
        "  node  n1          n2          n3          n4",
        "  pod   a-0         a-0-1       a-1         -",
        "",
        "  replica  0  [##]  runs",
        "  replica  1  [#.]  HOLDS 1 OF 2 FOR NOTHING: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        f"  replica  2  [..]  waits: {'x' * 87}...",
        "  replica  3  [..]  waits: the scheduler says nothing",
        "",
        "1 whole, 1 in part (1 nodes held for nothing), 2 waiting with nothing",
    ]
