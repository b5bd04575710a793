"""The review: objects in, verdict out. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from policies.exceptions import NO_EXCEPTIONS, Exceptions
from policies.findings import ERROR, NOTE, Finding, Verdict, verdict_of
from policies.objects import Subject
from policies.registry import Breach, Case, Rule, all_rules, breach
from policies.shapes import Thing, shape_of
from policies.snapshot import Snapshot, typed
from policies.targets import Target

MALFORMED: Final = "objects-well-formed"
"""Id of the findings about objects whose fields are of another type than their kind has."""


def review(
    subjects: Sequence[Subject],
    snapshot: Snapshot,
    target: Target,
    exceptions: Exceptions = NO_EXCEPTIONS,
    *,
    rules: Mapping[str, Rule] | None = None,
) -> Verdict:
    """Judge objects by every rule.

    Args:
        subjects: the objects.
        snapshot: what is known beside them; `snapshot_of(subjects)` when that is nothing.
        target: the API server that they are meant for.
        exceptions: findings that may pass, already read for a day.
        rules: other rules than all.
    """
    known = tuple((all_rules() if rules is None else rules).values())
    findings = [finding for subject in subjects for finding in _judge(subject, snapshot, target, known)]
    return verdict_of(exceptions.apply(findings))


def snapshot_of(subjects: Iterable[Subject]) -> Snapshot:
    """Index the reviewed objects alone."""
    return Snapshot(subject.content for subject in subjects)


def _judge(subject: Subject, snapshot: Snapshot, target: Target, rules: Sequence[Rule]) -> Iterator[Finding]:
    kind = subject.kind
    asked = [rule for rule in rules if kind in rule.kinds]
    if not asked:
        return
    thing = typed(subject.content)
    shaped = thing is not None
    case = Case(subject, thing or Thing(), snapshot, target)
    findings = [_finding(rule, subject, found) for rule in asked if shaped or rule.raw for found in rule.check(case)]
    yield from findings
    if not shaped and not findings:
        yield _malformed(subject)


def _finding(rule: Rule, subject: Subject, found: Breach) -> Finding:
    severity = rule.severity if found.certain else NOTE
    source = subject.source_of(found.path)
    return Finding(rule.id, severity, found.path, found.message, subject.ref, source)


def _malformed(subject: Subject) -> Finding:
    try:
        msgspec.convert(subject.content, shape_of(subject.kind))
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        path = where.strip("`").removeprefix("$").removeprefix(".") or "object"
        found = breach(path, "be what its kind has there", problem[:1].lower() + problem[1:])
        return Finding(MALFORMED, ERROR, found.path, found.message, subject.ref, subject.source_of(found.path))
    raise AssertionError("a shape was refused that now fits")
