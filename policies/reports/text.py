"""Text for people: one line a finding, in the form that editors and terminals turn into links."""

from collections import Counter

from policies.findings import SEVERITIES, Finding
from policies.reports import Reviewed


def render(reviewed: Reviewed) -> str:
    """Render as `<file>:<line>: <severity>: <message> (<object>) [<rule>]`, and one line that sums up."""
    return "".join(f"{line}\n" for line in (*map(_line, reviewed.verdict.findings), summary(reviewed)))


def summary(reviewed: Reviewed) -> str:
    """Say how many objects were reviewed and what was found."""
    findings = reviewed.verdict.findings
    counts = Counter(finding.severity for finding in findings if not finding.excepted)
    parts = [_plural(counts[severity], severity) for severity in SEVERITIES if counts[severity]]
    excepted = sum(finding.excepted for finding in findings)
    parts += [f"{excepted} excepted"] if excepted else []
    return f"{_plural(reviewed.objects, 'object')}: {', '.join(parts) or 'nothing found'}"


def _line(finding: Finding) -> str:
    where = f"{finding.source.file}:{finding.source.line}: " if finding.source else ""
    severity: str = "excepted" if finding.excepted else finding.severity
    return f"{where}{severity}: {printable(finding.message)} ({finding.object}) [{finding.rule}]"


def printable(text: str) -> str:
    """Escape what could move a terminal's cursor or break a line."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
