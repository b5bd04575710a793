"""Exceptions: findings that may pass, each with an owner, a reason and a last day."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from policies.findings import ERROR, WARNING, Finding, ObjectRef, Source

EXPIRED: Final = "exceptions-in-force"
UNUSED: Final = "exceptions-in-use"

API_VERSION: Final = "lockstep.dev/v1alpha1"
KIND: Final = "Exceptions"


class Excepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The one object an exception is for: no wildcards.

    Attributes:
        kind: its kind.
        name: its name.
        namespace: its namespace, empty for a cluster-scoped one.
    """

    kind: str
    name: str
    namespace: str = ""


class ExceptionEntry(msgspec.Struct, frozen=True):
    """One exception.

    Attributes:
        id: of the exception; nothing else has it.
        rule: id of the rule that the object is exempt from.
        object: which.
        owner: who answers for it.
        reason: why.
        expires: the last day it holds, `YYYY-MM-DD`.
        source: where it stands.
    """

    id: str
    rule: str
    object: Excepted
    owner: str
    reason: str
    expires: str
    source: Source


class Exceptions(msgspec.Struct, frozen=True):
    """A file of exceptions on one day.

    Attributes:
        entries: all of them.
        today: `YYYY-MM-DD`.
    """

    entries: Sequence[ExceptionEntry] = ()
    today: str = ""

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Mark the findings that may pass, and add one for each exception that has expired or lets nothing pass."""
        used: set[str] = set()
        for finding in findings:
            entry = next((entry for entry in self.entries if _matches(entry, finding)), None)
            if entry is None:
                yield finding
                continue
            used.add(entry.id)
            yield finding if self._expired(entry) else msgspec.structs.replace(finding, exception=entry.id)
        for entry in self.entries:
            yield from self._complaints(entry, used=entry.id in used)

    def _expired(self, entry: ExceptionEntry) -> bool:
        return entry.expires < self.today

    def _complaints(self, entry: ExceptionEntry, *, used: bool) -> Iterator[Finding]:
        where = f"exceptions[{entry.id}]"
        if self._expired(entry):
            message = f'{where}.expires: must not be past, got "{entry.expires}"'
            yield Finding(EXPIRED, ERROR, f"{where}.expires", message, _ref(entry), entry.source)
        if not used:
            message = f'{where}.rule: must let a finding pass, got none of "{entry.rule}" on {_named(entry)}'
            yield Finding(UNUSED, WARNING, f"{where}.rule", message, _ref(entry), entry.source)


NO_EXCEPTIONS: Final = Exceptions()


def _matches(entry: ExceptionEntry, finding: Finding) -> bool:
    wanted, found = entry.object, finding.object
    return (entry.rule, wanted.kind, wanted.namespace, wanted.name) == (
        finding.rule,
        found.kind,
        found.namespace,
        found.name,
    )


def _ref(entry: ExceptionEntry) -> ObjectRef:
    return ObjectRef(API_VERSION, KIND, "", entry.id)


def _named(entry: ExceptionEntry) -> str:
    name = f"{entry.object.namespace}/{entry.object.name}" if entry.object.namespace else entry.object.name
    return f'{entry.object.kind} "{name}"'
