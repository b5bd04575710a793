"""Exceptions: findings that may pass, each with an owner, a reason and a last day.

The file, reviewed like code:

    apiVersion: lockstep.dev/v1alpha1
    kind: Exceptions
    exceptions:
    - id: podgroup-minimum-positive           # the rule: "exempt from ..."
      object: {kind: PodGroup, namespace: team-a, name: vllm-0}
      owner: team-a@example.com
      reason: measured without a gang until the spring
      expiry: 2027-03-31
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from policies.findings import ERROR, WARNING, Exemption, Finding, ObjectRef, Source
from policies.objects import Subject
from policies.reading import Unreadable, read_objects

IN_FORCE: Final = "exceptions-in-force"
IN_USE: Final = "exceptions-in-use"

API_VERSION: Final = "lockstep.dev/v1alpha1"
KIND: Final = "Exceptions"
DEFAULT_NAMESPACE: Final = "default"


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

    def __str__(self) -> str:
        """Render as `Kind "namespace/name"`."""
        return f'{self.kind} "{self.namespace}/{self.name}"' if self.namespace else f'{self.kind} "{self.name}"'


class _Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    object: Excepted
    owner: str
    reason: str
    expiry: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    exceptions: list[_Item]


class ExceptionEntry(msgspec.Struct, frozen=True):
    """One exception.

    Attributes:
        id: of the rule that the object is exempt from.
        object: which.
        exemption: who answers for it, why, and until when.
        path: field path in its file.
        source: where it stands.
    """

    id: str
    object: Excepted
    exemption: Exemption
    path: str
    source: Source | None = None


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
            if entry is not None:
                used.add(entry.path)
            if entry is None or self._expired(entry):
                yield finding
            else:
                yield msgspec.structs.replace(finding, exception=entry.exemption)
        for entry in self.entries:
            yield from self._complaints(entry, used=entry.path in used)

    def _expired(self, entry: ExceptionEntry) -> bool:
        return entry.exemption.expiry < self.today

    def _complaints(self, entry: ExceptionEntry, *, used: bool) -> Iterator[Finding]:
        if self._expired(entry):
            path = f"{entry.path}.expiry"
            message = f'{path}: must not be past, got "{entry.exemption.expiry}"'
            yield Finding(IN_FORCE, ERROR, path, message, _ref(entry), entry.source)
        if not used:
            message = f'{entry.path}: must let a finding pass, got none of "{entry.id}" on {entry.object}'
            yield Finding(IN_USE, WARNING, entry.path, message, _ref(entry), entry.source)


NO_EXCEPTIONS: Final = Exceptions()


def read_exceptions(text: str, file: str, today: str, known: Iterable[str]) -> Exceptions:
    """Read a file of exceptions.

    Args:
        text: its content.
        file: its name.
        today: the day that counts, `YYYY-MM-DD`.
        known: ids of the rules there are.

    Raises:
        Unreadable: with the line.
    """
    subjects = read_objects(text, file)
    entries = [entry for subject in subjects for entry in _entries(subject, file, frozenset(known))]
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        key = entry.id, str(entry.object)
        if key in seen:
            raise _refused(file, entry, "have one exception for a rule and an object", f"a second of {key[0]}")
        seen.add(key)
    return Exceptions(tuple(entries), today)


def _entries(subject: Subject, file: str, known: frozenset[str]) -> Iterator[ExceptionEntry]:
    line = 1 if subject.source is None else subject.source.line
    try:
        content = msgspec.convert(subject.content, _File)
    except msgspec.ValidationError as error:
        raise Unreadable(file, line, f"must be {API_VERSION} {KIND}, got one with: {error}") from error
    if (content.api_version, content.kind) != (API_VERSION, KIND):
        got = f"{content.api_version} {content.kind}"
        raise Unreadable(file, line, f'must be {API_VERSION} {KIND}, got "{got}"')
    for number, item in enumerate(content.exceptions):
        path = f"exceptions[{number}]"
        exemption = Exemption(item.owner, item.reason, item.expiry)
        entry = ExceptionEntry(item.id, item.object, exemption, path, subject.source_of(path))
        _check(file, entry, known)
        yield entry


def _check(file: str, entry: ExceptionEntry, known: frozenset[str]) -> None:
    exemption = entry.exemption
    if entry.id not in known:
        raise _refused(file, entry, "name a rule", f'"{entry.id}"')
    for field, value in (("owner", exemption.owner), ("reason", exemption.reason)):
        if not value.strip():
            raise _refused(file, entry, f"have an {field}" if field == "owner" else f"have a {field}", "nothing")
    if not _is_day(exemption.expiry):
        raise _refused(file, entry, "have an expiry YYYY-MM-DD", f'"{exemption.expiry}"')


def _is_day(text: str) -> bool:
    try:
        return str(dt.date.fromisoformat(text)) == text
    except ValueError:
        return False


def _refused(file: str, entry: ExceptionEntry, rule: str, got: str) -> Unreadable:
    line = 1 if entry.source is None else entry.source.line
    return Unreadable(file, line, f"{entry.path}: must {rule}, got {got}")


def _matches(entry: ExceptionEntry, finding: Finding) -> bool:
    return entry.id == finding.rule and _key(entry.object) == _key(finding.object)


def _key(named: Excepted | ObjectRef) -> tuple[str, str, str]:
    """A manifest may leave the namespace out, which means `default`; what has none has none on both sides."""
    return named.kind, named.namespace or DEFAULT_NAMESPACE, named.name


def _ref(entry: ExceptionEntry) -> ObjectRef:
    return ObjectRef(API_VERSION, KIND, "", entry.id)
