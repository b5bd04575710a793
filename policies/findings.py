"""What a review finds: the one JSON shape of every command, report and endpoint."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["error", "warning", "note"]

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"
SEVERITIES: Final[tuple[Severity, ...]] = (ERROR, WARNING, NOTE)
"""Worst first."""


class Source(msgspec.Struct, frozen=True, order=True):
    """A place in a file.

    Attributes:
        file: its name as it was given.
        line: from 1.
    """

    file: str
    line: int


class ObjectRef(msgspec.Struct, frozen=True, rename="camel", order=True):
    """Names one object; a cluster-scoped one has an empty namespace."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Render as `Kind namespace/name`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Exemption(msgspec.Struct, frozen=True):
    """Why a finding may pass.

    Attributes:
        owner: who answers for it.
        reason: why.
        expiry: the last day, `YYYY-MM-DD`.
    """

    owner: str
    reason: str
    expiry: str


class Finding(msgspec.Struct, frozen=True):
    """One broken rule.

    Attributes:
        rule: id of the rule.
        severity: an error makes the verdict "not allowed"; a warning is worth a look; a note is what can't be told
            from the reviewed objects alone.
        path: field path of the culprit, empty for the object as a whole.
        message: `<field path>: must <rule>, got <value>`.
        object: whose field it is.
        source: where that field stands, `None` for an object that comes from no file.
        exception: why it may pass; absent when it may not.
    """

    rule: str
    severity: Severity
    path: str
    message: str
    object: ObjectRef
    source: Source | None = None
    exception: Exemption | msgspec.UnsetType = msgspec.UNSET

    @property
    def excepted(self) -> bool:
        """Whether an exception lets it pass."""
        return self.exception is not msgspec.UNSET

    @property
    def counts(self) -> bool:
        """Whether somebody has to do something: neither a note nor excepted."""
        return self.severity != NOTE and not self.excepted


class Verdict(msgspec.Struct, frozen=True):
    """The result of a review.

    Attributes:
        allowed: false when a finding of severity error is not excepted.
        findings: in the order of file, line, object and rule.
    """

    allowed: bool
    findings: tuple[Finding, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing is left to do: no error and no warning but excepted ones."""
        return not any(finding.counts for finding in self.findings)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Order findings, drop repetitions, and draw the verdict."""
    ordered = tuple(sorted(dict.fromkeys(findings), key=_order))
    return Verdict(not any(finding.severity == ERROR and not finding.excepted for finding in ordered), ordered)


def verdict_json(verdict: Verdict) -> bytes:
    """Encode a verdict as the JSON shape: compact, keys in their order."""
    return msgspec.json.encode(verdict)


def ref_of(content: Mapping[str, Any]) -> ObjectRef:
    """Name an object of any shape; what is not a string counts as empty."""
    metadata = content.get("metadata")
    fields = metadata if isinstance(metadata, Mapping) else {}
    name = _text(fields.get("name")) or _text(fields.get("generateName"))
    return ObjectRef(_text(content.get("apiVersion")), _text(content.get("kind")), _text(fields.get("namespace")), name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _order(finding: Finding) -> tuple[Any, ...]:
    source = finding.source or Source("", 0)
    return source.file, source.line, finding.object, finding.rule, finding.message
