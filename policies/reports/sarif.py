"""SARIF 2.1.0 (OASIS standard), for code scanning of a repository."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from policies.findings import Exemption, Finding
from policies.registry import Rule
from policies.reports import Reviewed

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERSION: Final = "2.1.0"
FINGERPRINT: Final = "lockstepFinding/v1"

Json = dict[str, Any]


def render(reviewed: Reviewed) -> str:
    """Render one run with its rules and results; an excepted finding is a suppressed result."""
    ids = sorted({*reviewed.rules, *(finding.rule for finding in reviewed.verdict.findings)})
    run = {
        "tool": {
            "driver": {
                "name": "Lockstep",
                "version": reviewed.version,
                "rules": [_rule(rule_id, reviewed.rules.get(rule_id)) for rule_id in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": list(_results(reviewed.verdict.findings, {rule_id: number for number, rule_id in enumerate(ids)})),
    }
    log = {"$schema": SCHEMA, "version": VERSION, "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log)).decode() + "\n"


def _rule(rule_id: str, rule: Rule | None) -> Json:
    if rule is None:
        return {"id": rule_id}
    return {
        "id": rule_id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}. It can't see: {rule.blind}."},
        "defaultConfiguration": {"level": rule.severity},
    }


def _results(findings: Iterable[Finding], numbers: Mapping[str, int]) -> Iterable[Json]:
    for finding in findings:
        result: Json = {
            "ruleId": finding.rule,
            "ruleIndex": numbers[finding.rule],
            "level": finding.severity,
            "message": {"text": finding.message},
            "locations": [_location(finding)],
            "partialFingerprints": {FINGERPRINT: _fingerprint(finding)},
        }
        if isinstance(finding.exception, Exemption):
            exemption = finding.exception
            reason = f"{exemption.reason} ({exemption.owner}, until {exemption.expiry})"
            result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
        yield result


def _location(finding: Finding) -> Json:
    name = f"{finding.object}: {finding.path}" if finding.path else str(finding.object)
    location: Json = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "member"}]}
    if finding.source is not None:
        region = {"startLine": finding.source.line}
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(finding.source.file)}, "region": region}
    return location


def _fingerprint(finding: Finding) -> str:
    """Name a finding the same although its line moves."""
    parts = (finding.rule, str(finding.object), finding.path)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
