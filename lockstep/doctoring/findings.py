"""What the doctor finds, and how it is told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

ERROR: Final = "error"
WARNING: Final = "warning"
ORDER: Final = (ERROR, WARNING)


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        check: name of the check that found it.
        severity: `error`: gangs are not formed, or the cluster is at risk; `warning`: they will not be, or less is
            guarded than one thinks.
        what: `<object and field>: must <rule>, got <value>`.
        why: what happens because of it, one sentence.
        mend: the command that mends it, or the first step.
    """

    check: str
    severity: str
    what: str
    why: str
    mend: str


class Report(msgspec.Struct, frozen=True):
    """All that is known after one look.

    Attributes:
        facts: what is installed, by title.
        checks: names of the checks that were made.
        findings: what they found, errors first.
    """

    facts: Mapping[str, str]
    checks: Sequence[str]
    findings: Sequence[Finding]


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Put errors first; within one severity the order of the checks stays."""
    return sorted(findings, key=lambda finding: ORDER.index(finding.severity))


def write_json(report: Report) -> str:
    """Render a report for programs."""
    return msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"


def write_text(report: Report) -> str:
    """Render a report for people."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    width = max((len(title) for title in report.facts), default=0)
    yield from (f"{title.ljust(width)}  {text}" for title, text in report.facts.items())
    for finding in report.findings:
        yield ""
        yield f"{finding.severity.upper()} {finding.check}: {finding.what}"
        yield f"  why:  {finding.why}"
        yield f"  mend: {finding.mend}"
    yield ""
    yield f"{len(report.checks)} checks, {_count(report.findings)}"


def _count(findings: Sequence[Finding]) -> str:
    if not findings:
        return "nothing found"
    errors = sum(finding.severity == ERROR for finding in findings)
    return f"{errors} errors, {len(findings) - errors} warnings"
