"""What the service answers, without HTTP: reviews of texts and of admissions, and the rules."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from policies.exceptions import IN_USE, Exceptions
from policies.findings import Verdict, verdict_of
from policies.objects import NOTHING, Subject
from policies.reading import Limits, Unreadable, read_objects
from policies.registry import Rule
from policies.reviewing import review, snapshot_of
from policies.service.admissions import Admission
from policies.snapshot import Snapshot
from policies.targets import Target

BODY: Final = "body"
"""What a request's text is called in findings and messages."""

LIMITS: Final = Limits(characters=8 << 20, objects=2000, depth=100)

NOTHING_FOUND: Final = Verdict(allowed=True)


class View(Protocol):
    """What is known of the cluster."""

    def around(self, subjects: Sequence[Subject], *, certain: bool) -> Snapshot:
        """Give what would be known with these objects.

        Args:
            subjects: they replace others of the same name.
            certain: whether an object that isn't known counts as missing.
        """

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Give the labels of a namespace, none where it isn't known."""

    def target(self) -> Target | None:
        """Give what the API server is, nothing where nobody asked it."""


class NoView:
    """Nothing is known of any cluster."""

    def around(self, subjects: Sequence[Subject], *, certain: bool) -> Snapshot:  # noqa: ARG002 - nothing is certain
        """Give the objects alone."""
        return snapshot_of(subjects)

    def namespace_labels(self, _: str) -> Mapping[str, str]:
        """Give no labels."""
        return NOTHING

    def target(self) -> None:
        """Give nothing."""


class Example(msgspec.Struct, frozen=True, rename="camel"):
    """A test of a rule.

    Attributes:
        file: the fixture.
        promise: what it shows.
        expect: messages that must be found in it.
        text: the file.
    """

    file: str
    promise: str
    expect: Sequence[str]
    text: str


class Desk:
    """Rules, exceptions and what is known of the cluster.

    Attributes:
        rules: by id.
        examples: tests of rules, by their ids.
        target: the API server that manifests are meant for when a request does not say.
    """

    def __init__(  # noqa: PLR0913 - all of them are what a review depends on
        self,
        rules: Mapping[str, Rule],
        *,
        target: Target,
        exceptions: Exceptions,
        today: Callable[[], dt.date],
        view: View | None = None,
        examples: Mapping[str, Sequence[Example]] = NOTHING,
    ) -> None:
        """Answer by `rules`; `today` decides which exceptions have expired."""
        self.rules = rules
        self.examples = examples
        self.target = target
        self._exceptions = exceptions
        self._today = today
        self._view: View = view or NoView()

    def review_text(self, text: str, target: Target | None, *, with_cluster: bool = False) -> tuple[Verdict, int]:
        """Judge the objects of a text and count them.

        Args:
            text: YAML or JSON.
            target: for which API server; nothing for the usual one.
            with_cluster: whether what is known of the cluster counts.

        Raises:
            policies.reading.Unreadable: it holds no objects.
        """
        subjects = read_objects(text, BODY, limits=LIMITS)
        if not subjects:
            raise Unreadable(BODY, 1, "must hold objects, got none")
        snapshot = self._view.around(subjects, certain=True) if with_cluster else snapshot_of(subjects)
        asked = target or (self._view.target() if with_cluster else None) or self.target
        return self._judge(subjects, snapshot, asked), len(subjects)

    def admit(self, admission: Admission) -> Verdict:
        """Judge what the API server asks about."""
        subject = admission.subject(self._view.namespace_labels(admission.namespace))
        if subject is None:
            return NOTHING_FOUND
        # What is known is a moment old, and things are created in any order: a missing one is not held against it.
        return self._judge([subject], self._view.around([subject], certain=False), self._view.target() or self.target)

    def _judge(self, subjects: Sequence[Subject], snapshot: Snapshot, target: Target) -> Verdict:
        exceptions = msgspec.structs.replace(self._exceptions, today=self._today().isoformat())
        verdict = review(subjects, snapshot, target, exceptions, rules=self.rules)
        # One request shows a few objects: what is not in them says nothing about an exception's use.
        return verdict_of(finding for finding in verdict.findings if finding.rule != IN_USE)

    def entries(self) -> list[dict[str, Any]]:
        """List the rules in short."""
        return [short_entry(rule) for rule in self.rules.values()]

    def entry(self, rule_id: str) -> dict[str, Any] | None:
        """Describe one rule whole, nothing where there is none."""
        rule = self.rules.get(rule_id)
        return None if rule is None else full_entry(rule, self.examples.get(rule_id, ()))


def short_entry(rule: Rule) -> dict[str, Any]:
    """Describe a rule as in the list."""
    return {
        "id": rule.id,
        "title": rule.title,
        "severity": rule.severity,
        "enforcedBy": rule.enforced_by,
        "kinds": list(rule.kinds),
        "href": f"/v1/policies/{rule.id}",
    }


def full_entry(rule: Rule, examples: Sequence[Example]) -> dict[str, Any]:
    """Describe a rule whole."""
    return {
        **short_entry(rule),
        "why": rule.why,
        "blind": rule.blind,
        "whenDown": rule.when_down,
        "file": rule.file,
        "yaml": rule.text,
        "tests": [msgspec.to_builtins(example) for example in examples],
    }
