"""Fixtures of rules: manifests with the verdict they must get, the review surface of every rule.

A fixture is a YAML file. Its first document says what it shows, all others are the objects:

    kind: Fixture
    promise: one sentence
    expect: [the rule's messages, word for word; none in a file that is allowed]
    target: "1.37"            # optional, with `gates`
    cluster: true             # optional: there are no other objects than these
    served: [podgroups.scheduling.volcano.sh/v1beta1]      # optional: what the API server serves

An update is a document of `kind: Change` with the object `from` and `to`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from policies.findings import NOTE, Finding
from policies.objects import UPDATE, Subject
from policies.reading import Unreadable, read_objects
from policies.registry import Rule
from policies.reviewing import review
from policies.snapshot import Snapshot
from policies.targets import GENERIC_WORKLOAD, NEWEST, Target, parse_target

API_VERSION: Final = "lockstep.dev/v1alpha1"
FIXTURE: Final = f"{API_VERSION}/Fixture"
CHANGE: Final = f"{API_VERSION}/Change"
ALLOWED: Final = "allowed"
DENIED: Final = "denied"


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    promise: str
    expect: list[str] = []
    target: str = NEWEST
    gates: str = GENERIC_WORKLOAD
    cluster: bool = False
    served: list[str] | None = None


class Fixture(msgspec.Struct, frozen=True):
    """One file.

    Attributes:
        file: its name.
        promise: what it shows.
        expect: messages of the rule's findings, in their order; a note's begins with `note: `.
        subjects: the objects.
        target: the API server they are meant for.
        cluster: whether there are no other objects.
        served: kinds that the API server serves, `None` for not asked.
    """

    file: str
    promise: str
    expect: Sequence[str]
    subjects: Sequence[Subject]
    target: Target
    cluster: bool
    served: Sequence[str] | None

    @property
    def snapshot(self) -> Snapshot:
        """What is known."""
        kinds = _Every() if self.cluster else ()
        return Snapshot([subject.content for subject in self.subjects], complete=kinds, served=self.served)


class _Every(frozenset[str]):
    """All kinds there are."""

    def __contains__(self, kind: object) -> bool:
        return True


def read_fixture(text: str, file: str) -> Fixture:
    """Read a fixture.

    Raises:
        Unreadable: it is none.
    """
    header, *rest = read_objects(text, file)
    if _title(header.content) != FIXTURE:
        raise Unreadable(file, 1, f'must begin with a {FIXTURE}, got "{_title(header.content)}"')
    try:
        given = msgspec.convert(header.content, _Header)
        target = parse_target(given.target, given.gates)
    except ValueError as error:
        raise Unreadable(file, 1, f"must begin with a {FIXTURE}, got one with {error}") from error
    subjects = tuple(_changed(subject) for subject in rest)
    return Fixture(file, given.promise, tuple(given.expect), subjects, target, given.cluster, given.served)


def problem_of(fixture: Fixture, rule: Rule) -> str | None:
    """Say what is wrong with a rule on one of its fixtures; `None` when it finds exactly what it must."""
    found = review(fixture.subjects, fixture.snapshot, fixture.target, rules={rule.id: rule}).findings
    messages = tuple(_shown(finding) for finding in found)
    if messages == tuple(fixture.expect):
        return None
    return f"{fixture.file}: must find {_listed(fixture.expect)}, got {_listed(messages)}"


def problem_of_name(fixture: Fixture) -> str | None:
    """Say whether a fixture's name and content contradict."""
    name = fixture.file.rpartition("/")[2]
    if name.startswith(ALLOWED) and fixture.expect:
        return f"{fixture.file}: must expect nothing, as its name says, got {_listed(fixture.expect)}"
    if name.startswith(DENIED) and not fixture.expect:
        return f"{fixture.file}: must expect a message, as its name says, got none"
    if not name.startswith((ALLOWED, DENIED)):
        return f'{fixture.file}: must be named "{ALLOWED}..." or "{DENIED}...", got "{name}"'
    return None


def _changed(subject: Subject) -> Subject:
    if _title(subject.content) != CHANGE:
        return subject
    old, new = subject.content.get("from"), subject.content.get("to")
    line = 1 if subject.source is None else subject.source.line
    file = "" if subject.source is None else subject.source.file
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        raise Unreadable(file, line, "must have objects from and to, got none")
    lines = subject.lines.get("to", (line, {}))[1]
    return Subject(new, subject.source_of("to"), UPDATE, old, lines=lines)


def _title(content: Mapping[str, Any]) -> str:
    return f"{content.get('apiVersion')}/{content.get('kind')}"


def _shown(finding: Finding) -> str:
    return f"note: {finding.message}" if finding.severity == NOTE else finding.message


def _listed(messages: Sequence[str]) -> str:
    return " and ".join(f"'{message}'" for message in messages) or "nothing"
