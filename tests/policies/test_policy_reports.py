"""PolicyReports: one for each object with findings, the same bytes for the same findings."""

import json
from typing import Any, Final

import msgspec

from policies.findings import Exemption, Finding, ObjectRef
from policies.registry import all_rules
from policies.reports.policy_reports import KINDS, MOST_RESULTS, policy_reports

GROUP: Final = ObjectRef("scheduling.volcano.sh/v1beta1", "PodGroup", "team-a", "g")
CLUSTER: Final = ObjectRef("v1", "Namespace", "", "team-a")
RULE: Final = "podgroup-minimum-positive"


def found(ref: ObjectRef, severity: Any = "error", **difference: Any) -> Finding:
    """Build a finding about an object."""
    return Finding(RULE, severity, "spec.minMember", "spec.minMember: must be at least 1, got 0", ref, **difference)


def test_one_report_an_object() -> None:
    """Each object has a report in its namespace that names it; one without a namespace has a cluster's report."""
    reports = policy_reports([found(GROUP), found(GROUP, "warning"), found(CLUSTER)], all_rules())
    assert [(report["kind"], report["metadata"].get("namespace"), report["scope"]["name"]) for report in reports] == [
        ("ClusterPolicyReport", None, "team-a"),
        ("PolicyReport", "team-a", "g"),
    ]
    assert {report["apiVersion"] for report in reports} == {kind.api_version for kind in KINDS}
    assert reports[1]["metadata"]["name"] == "lockstep-podgroup-bee2e96ad1"
    assert reports[1]["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "lockstep"}


def test_results_are_counted() -> None:
    """Errors fail, warnings warn, notes and excepted findings are skipped, and the summary counts them."""
    exempt = found(GROUP, exception=Exemption("me", "for now", "2027-01-01"))
    (report,) = policy_reports([found(GROUP), found(GROUP, "warning"), found(GROUP, "note"), exempt], all_rules())
    assert [(result["result"], result["severity"], result["scored"]) for result in report["results"]] == [
        ("fail", "high", True),
        ("warn", "medium", True),
        ("skip", "info", False),
        ("skip", "high", True),
    ]
    assert report["summary"] == {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 2}
    first = report["results"][0]
    assert (first["policy"], first["rule"], first["message"]) == (
        RULE,
        "spec.minMember",
        "spec.minMember: must be at least 1, got 0",
    )
    assert first["properties"]["why"] == all_rules()[RULE].why


def test_reports_are_stable_and_bounded() -> None:
    """The same findings give the same bytes, and no report grows beyond what an API server stores."""
    many = [found(GROUP) for _ in range(MOST_RESULTS + 5)]
    once, again = (msgspec.json.encode(policy_reports(many, all_rules())) for _ in range(2))
    assert once == again
    assert len(json.loads(once)[0]["results"]) == MOST_RESULTS
    assert policy_reports([], all_rules()) == []
