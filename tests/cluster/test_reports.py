"""Findings about the live cluster stand in PolicyReports, where cluster tools look for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from policies.reports.policy_reports import RIGHTS
from policies.rights import service_rights
from reconciler.rights import policy_rules, reconciler_rights
from schedulers.registry import all_providers
from tests.cluster.processes import Process
from tests.cluster.resources import PODS, Resource

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane

CRDS = Path(__file__).parent / "crds" / "policyreports.yaml"
REPORTS = Resource("wgpolicyk8s.io/v1alpha2", "policyreports", "PolicyReport")
FORGED_POD = "forged-0-1"
FORGED = {
    "lockstep.dev/group": "someone-else",
    "leaderworkerset.sigs.k8s.io/name": "vllm",
    "leaderworkerset.sigs.k8s.io/group-index": "0",
    "leaderworkerset.sigs.k8s.io/group-key": "0123456789",
    "leaderworkerset.sigs.k8s.io/template-revision-hash": "5f9c",
}


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that serves PolicyReports, with a user who may do what auditing and reporting take."""
    control_plane.register_kinds(CRDS)
    providers = all_providers().values()
    rights = [*reconciler_rights(providers), *service_rights(providers), *RIGHTS]
    control_plane.access.grant("reconciler", policy_rules(rights))
    return control_plane


def test_a_report_comes_with_the_finding_and_goes_with_its_object(plane: ControlPlane, tmp_path: Path) -> None:
    """A forged member is reported in its namespace; once it is gone, so is the report."""
    annotations = {"leaderworkerset.sigs.k8s.io/size": "2", "leaderworkerset.sigs.k8s.io/leader-name": "vllm-0"}
    spec = {"containers": [{"name": "c", "image": "registry.example/c:1"}]}
    plane.api.create(PODS, PODS.make(FORGED_POD, metadata={"labels": FORGED, "annotations": annotations}, spec=spec))
    arguments = ("--kubeconfig", str(plane.kubeconfig("reconciler")), "--report-seconds", "2")
    reconciler = Process("reconciler", [sys.executable, "-m", "lockstep", "reconcile", *arguments], tmp_path / "log")
    reconciler.start()
    try:
        reports = plane.wait("the forged pod is reported", lambda: reports_of(plane, FORGED_POD), 60)
        rules = {result["policy"] for report in reports for result in report["results"]}
        assert "members-owned-by-their-replica" in rules
        plane.api.delete(PODS, FORGED_POD, grace=0)
        plane.wait("the report is gone", lambda: not reports_of(plane, FORGED_POD), 60)
    finally:
        reconciler.stop()


def reports_of(plane: ControlPlane, pod: str) -> list[dict[str, Any]]:
    """Find the reports about a pod."""
    return [report for report in plane.api.items(REPORTS, "default") if report["scope"]["name"] == pod]
