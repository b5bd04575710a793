"""JUnit XML, for build servers: one suite a file, one case a finding; a review that finds nothing is one case."""

from collections import defaultdict
from xml.etree import ElementTree as ET

from policies.findings import Exemption, Finding
from policies.reports import Reviewed

LIVE = "cluster"
"""The suite of objects that come from no file."""


def render(reviewed: Reviewed) -> str:
    """Render errors and warnings as failures, excepted findings as skipped, and notes as passed with output."""
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in reviewed.verdict.findings:
        by_file[finding.source.file if finding.source else LIVE].append(finding)
    root = ET.Element("testsuites", {"name": "lockstep", **_counts(reviewed.verdict.findings, reviewed.objects)})
    for file, findings in sorted(by_file.items()):
        suite = ET.SubElement(root, "testsuite", {"name": plain(file), **_counts(findings, len(findings))})
        for finding in findings:
            _case(suite, finding)
    if not by_file:
        suite = ET.SubElement(root, "testsuite", {"name": "lockstep", **_counts((), 1)})
        ET.SubElement(suite, "testcase", {"name": f"{reviewed.objects} objects", "classname": "lockstep"})
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def plain(text: str) -> str:
    """Take out the characters that XML 1.0 can't hold."""
    return "".join(character if _fits(ord(character)) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _case(suite: ET.Element, finding: Finding) -> None:
    name = plain(f"{finding.object}: {finding.path}" if finding.path else str(finding.object))
    case = ET.SubElement(suite, "testcase", {"name": name, "classname": finding.rule})
    if finding.source is not None:
        case.set("file", plain(finding.source.file))
        case.set("line", str(finding.source.line))
    message = plain(finding.message)
    if isinstance(finding.exception, Exemption):
        ET.SubElement(case, "skipped", {"message": plain(f"{finding.exception.reason}: {message}")})
    elif finding.counts:
        ET.SubElement(case, "failure", {"type": finding.severity, "message": message}).text = message
    else:
        ET.SubElement(case, "system-out").text = message


def _counts(findings: "tuple[Finding, ...] | list[Finding]", tests: int) -> dict[str, str]:
    return {
        "tests": str(max(tests, len(findings))),
        "failures": str(sum(finding.counts for finding in findings)),
        "errors": "0",
        "skipped": str(sum(finding.excepted for finding in findings)),
    }


def _fits(code: int) -> bool:
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000  # noqa: PLR2004
