"""`lockstep status` on the real control plane, as a user who may only look."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.rights import policy_rules, status_rights
from schedulers.registry import all_providers

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import LockstepFactory


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with four one-pod nodes and a user who may look."""
    control_plane.reset()
    control_plane.nodes.add(["n1", "n2", "n3", "n4"])
    control_plane.access.grant("reader", policy_rules(status_rights(all_providers().values())))
    return control_plane


def test_c12_c09_status_tells_why_each_replica_waits(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Ten replicas wait for their groups first; then two run, and eight wait for the sixteen GPUs they ask."""
    lockstep = run_lockstep(plane)
    lockstep.reconcilers[0].kill()
    plane.lws.create("vllm", 10, 2)
    plane.wait("all pods exist", lambda: len(plane.lws.pods("vllm")) == 20)
    code, entries = status_of(plane)
    assert (code, Counter(entry["state"] for entry in entries)) == (1, {"no group": 10})
    group = entries[3]["group"]
    kind = "podgroups.scheduling.k8s.io/v1beta1"
    assert entries[3]["reason"] == f'2 members wait, and there is no {kind} "{group}" yet'

    lockstep.reconcilers[0].start()
    plane.wait("two replicas run", lambda: Counter(states(plane)) == {"running": 2, "waits for capacity": 8}, 40, 1)
    code, entries = status_of(plane)
    waiting = [entry for entry in entries if entry["state"] == "waits for capacity"]
    assert code == 1
    assert {entry["reason"] for entry in waiting} == {
        "asks nvidia.com/gpu 16, 0 free in sum (a sum is not a placement)"
    }
    assert all(entry["short"] == [{"resource": "nvidia.com/gpu", "asks": "16", "free": "0"}] for entry in waiting)
    assert any(entry["words"] for entry in waiting)

    plane.lws.scale("vllm", 2)
    plane.wait("both that are left run", lambda: states(plane) == ["running", "running"], 40, 1)
    assert status_of(plane)[0] == 0


def states(plane: ControlPlane) -> list[str]:
    """Give the state of every replica."""
    return [entry["state"] for entry in status_of(plane)[1]]


def status_of(plane: ControlPlane) -> tuple[int, list[dict[str, Any]]]:
    """Run the command; gives its exit code and what it printed."""
    command = [sys.executable, "-m", "lockstep", "status", "--kubeconfig", str(plane.kubeconfig("reader"))]
    done = subprocess.run([*command, "--output", "json", "vllm"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)
