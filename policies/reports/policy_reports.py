"""PolicyReport objects (`wgpolicyk8s.io/v1alpha2`): what an audit found, where cluster tools look for it.

Source: kubernetes-sigs/wg-policy-prototypes `policy-report/pkg/api/wgpolicyk8s.io/v1alpha2`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from policies.findings import ERROR, NOTE, Finding
from policies.registry import Rule
from schedulers.contract import GroupKind, Right

SOURCE: Final = "lockstep"
POLICY_REPORT: Final = GroupKind("wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports")
CLUSTER_POLICY_REPORT: Final = GroupKind("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport", "clusterpolicyreports")
KINDS: Final = (POLICY_REPORT, CLUSTER_POLICY_REPORT)
RIGHTS: Final = (
    Right("wgpolicyk8s.io", ("policyreports", "clusterpolicyreports"), ("get", "list", "create", "patch", "delete")),
)

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MOST_RESULTS: Final = 500
"""Results of one report: an object of the API server may not be larger than etcd takes."""

CATEGORY: Final = "Gang scheduling"
SEVERITIES: Final = {"error": "high", "warning": "medium", "note": "info"}

Json = dict[str, Any]


def policy_reports(findings: Iterable[Finding], rules: Mapping[str, Rule]) -> list[Json]:
    """Build one report for each object that has findings, in the order of namespace and name.

    A report stands in its object's namespace and names it as `scope`; an object without a namespace gets a
    ClusterPolicyReport. There is no time in it, so that the same findings give the same bytes.

    Args:
        findings: of one review.
        rules: the rules, for their titles and reasons.
    """
    by_object: dict[tuple[str, str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        ref = finding.object
        by_object[ref.namespace, ref.api_version, ref.kind, ref.name].append(finding)
    return [_report(found, rules) for _, found in sorted(by_object.items())]


def report_name(finding: Finding) -> str:
    """Name the report of an object: readable, and its own."""
    ref = finding.object
    digest = hashlib.sha256(f"{ref.api_version}/{ref.kind}/{ref.namespace}/{ref.name}".encode()).hexdigest()[:10]
    return f"{SOURCE}-{ref.kind.lower()}-{digest}"


def _report(findings: list[Finding], rules: Mapping[str, Rule]) -> Json:
    ref = findings[0].object
    kind = POLICY_REPORT if ref.namespace else CLUSTER_POLICY_REPORT
    scope = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
    metadata: Json = {"name": report_name(findings[0]), "labels": {MANAGED_BY: SOURCE}}
    if ref.namespace:
        scope["namespace"] = metadata["namespace"] = ref.namespace
    results = [_result(finding, rules.get(finding.rule)) for finding in findings[:MOST_RESULTS]]
    counts = Counter(result["result"] for result in results)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "scope": scope,
        "summary": {word: counts[word] for word in ("pass", "fail", "warn", "error", "skip")},
        "results": results,
    }


def _result(finding: Finding, rule: Rule | None) -> Json:
    return {
        "source": SOURCE,
        "policy": finding.rule,
        "rule": finding.path or "object",
        "category": CATEGORY,
        "severity": SEVERITIES[finding.severity],
        "result": _outcome(finding),
        "scored": finding.severity != NOTE,
        "message": finding.message,
        "properties": {} if rule is None else {"why": rule.why},
    }


def _outcome(finding: Finding) -> str:
    if finding.excepted or finding.severity == NOTE:
        return "skip"
    return "fail" if finding.severity == ERROR else "warn"
