"""Gödel: its kind takes our groups as they are meant, pods are born with both marks. Of it only the kind is here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.resources import PODS, Resource

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

GODEL = "godel-scheduler"
NAME = "godel.bytedance.com/pod-group-name"
CRD = Path(__file__).parent / "crds" / "godel.yaml"
GROUPS = Resource("scheduling.godel.kubewharf.io/v1alpha1", "podgroups", "PodGroup")
YEAR = 31_536_000


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane that serves Gödel's kind."""
    plane = start_plane(Options())
    plane.register_kinds(CRD)
    return plane


def groups(plane: ControlPlane, number: int) -> list[Json]:
    """Wait for so many PodGroups of Gödel."""
    return plane.wait(f"{number} groups", lambda: len(found := plane.api.items(GROUPS)) == number and found) or []


def test_groups_are_kept_as_they_are_meant(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Words, the final time-out and both marks: nothing is pruned, and a leader made anew has a new group."""
    run_lockstep(plane)
    words = {"lockstep.dev/topology": "rack,preferred", "lockstep.dev/queue": "gold"}
    plane.lws.create("vllm", 1, 2, scheduler=GODEL, annotations=words)
    (made,) = groups(plane, 1)
    assert made["spec"] == {
        "minMember": 2,
        "scheduleTimeoutSeconds": YEAR,
        "affinity": {"podGroupAffinity": {"preferred": [{"topologyKey": "rack"}]}},
    }
    pods = plane.wait("two pods", lambda: len(found := plane.lws.pods("vllm")) == 2 and found) or []
    name = made["metadata"]["name"]
    marks = [(pod["metadata"]["labels"][NAME], pod["metadata"]["annotations"][NAME]) for pod in pods]
    assert marks == [(name, name)] * 2

    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait("a new group", lambda: [one["metadata"]["name"] for one in plane.api.items(GROUPS)] not in ([], [name]))
    (anew,) = groups(plane, 1)
    assert anew["metadata"]["name"] != name

    plane.lws.create("late", 1, 2, scheduler=GODEL, startupPolicy="LeaderReady")
    late = {one["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"]: one for one in groups(plane, 2)}["late"]
    assert late["spec"] == {"minMember": 1, "scheduleTimeoutSeconds": YEAR}
