"""The policies in force beside LWS, schedulers and Lockstep: nobody's honest write breaks one, a forged one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from lockstep.main import main
from tests.cluster.resources import PODS
from tests.cluster.scenarios import ON_BOTH, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep

POLICIES: Final = sorted((Path(__file__).parents[2] / "policies").glob("*.yaml"))
BROKEN: Final = "validation.policy.admission.k8s.io/validation_failure"
FORGED: Final = {"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/worker-index": "0"}


@pytest.fixture(scope="module")
def guarded(coscheduling_plane: ControlPlane, lockstep: Lockstep) -> ControlPlane:
    """The control plane with Lockstep, and with every policy in force."""
    assert lockstep.webhook.alive
    for policy in POLICIES:
        coscheduling_plane.apply_yaml(policy.read_text(encoding="utf-8"))
    coscheduling_plane.wait("a forged pod is found", lambda: forge(coscheduling_plane))
    return coscheduling_plane


@pytest.fixture
def plane(guarded: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with four nodes."""
    guarded.reset()
    guarded.nodes.add(["n1", "n2", "n3", "n4"], labels={"rack": "r1"})
    return guarded


def forge(plane: ControlPlane) -> list[str]:
    """Try to create a pod with LWS's labels; gives what the API server found against it."""
    since = plane.audit.offset()
    annotations = {"leaderworkerset.sigs.k8s.io/size": "2"}
    spec = {"containers": [{"name": "main", "image": "registry.example/x:1"}]}
    labels = FORGED | {"leaderworkerset.sigs.k8s.io/template-revision-hash": "x"}
    pod = PODS.make("vllm-7", metadata={"labels": labels, "annotations": annotations}, spec=spec)
    plane.api.create(PODS, pod, query="dryRun=All")
    return broken(plane, since)


def broken(plane: ControlPlane, since: int) -> list[str]:
    """List what the policies found since then, of every user."""
    return [
        f"{event['user']['username']}: {failure['message']}"
        for event in plane.audit.events(since=since, dry_runs=True)
        for failure in json.loads(event.get("annotations", {}).get(BROKEN, "[]"))
    ]


def audited(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Audit the cluster; gives the errors and warnings."""
    code = main(["audit", "--kubeconfig", str(plane.kubeconfig()), "--output", "json"])
    told = capsys.readouterr()
    assert code in (0, 1), told.err
    findings = json.loads(told.out)["findings"]
    return [finding["message"] for finding in findings if finding["severity"] != "note"]


@ON_BOTH
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="workers with their leader"),
        pytest.param({"startupPolicy": "LeaderReady"}, id="workers when the leader is ready"),
        pytest.param({"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}}, id="one rack"),
    ],
)
def test_honest_writes_break_nothing(
    plane: ControlPlane, scheduler: Scheduler, change: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    """C45: over start, scaling and a lost leader, no write of anybody breaks a policy, and an audit finds nothing."""
    since = plane.audit.offset()
    plane.lws.create("vllm", 1, 2, scheduler=scheduler.name, **change)
    plane.wait("one replica whole", lambda: plane.lws.whole("vllm", 2) == [0])
    plane.lws.scale("vllm", 2)
    wanted: Callable[[], bool] = lambda: len(plane.lws.whole("vllm", 2)) >= (1 if "annotations" in change else 2)  # noqa: E731
    plane.wait("the second too, where there is another rack", wanted)
    plane.api.delete(PODS, "vllm-0", grace=0)
    plane.wait("it is whole again", wanted, 60)
    plane.wait("an audit finds nothing", lambda: audited(plane, capsys) == [], 20)
    assert broken(plane, since) == []


def test_forged_membership_is_found(plane: ControlPlane) -> None:
    """A pod that carries LWS's labels, and is of no StatefulSet, is told to its creator and to the audit log."""
    (found,) = forge(plane)
    assert found.partition(": ")[2] == (
        'metadata.ownerReferences: must name StatefulSet "vllm" as the controller of a pod of "vllm", got nothing'
    )
