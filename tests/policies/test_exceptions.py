"""The file of exceptions: what it lets pass, until when, and what is wrong with it."""

from typing import Any, Final

import pytest

from policies.exceptions import Exceptions, read_exceptions
from policies.findings import Exemption
from policies.reading import Unreadable
from policies.registry import all_rules
from tests.policies.rules import judged

RULE: Final = "podgroup-minimum-positive"
NOT_ONE: Final = "exceptions.yaml:1: must be lockstep.dev/v1alpha1 Exceptions"
GROUP: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "team-a"},
    "spec": {"minMember": 0},
}
TEXT: Final = """\
apiVersion: lockstep.dev/v1alpha1
kind: Exceptions
exceptions:
- id: podgroup-minimum-positive
  object: {kind: PodGroup, namespace: team-a, name: g}
  owner: team-a@example.com
  reason: measured without a gang until the spring
  expiry: 2027-03-31
"""


def read(text: str = TEXT, today: str = "2027-03-31") -> Exceptions:
    """Read a file on a day."""
    return read_exceptions(text, "exceptions.yaml", today, all_rules())


def test_a_finding_may_pass() -> None:
    """Until its last day an exception lets the finding pass, and the verdict says who answers for it."""
    verdict = judged(GROUP, exceptions=read())
    assert (verdict.allowed, verdict.clean) == (True, True)
    assert [(found.rule, found.exception) for found in verdict.findings] == [
        (RULE, Exemption("team-a@example.com", "measured without a gang until the spring", "2027-03-31"))
    ]


def test_an_expired_exception_is_a_finding() -> None:
    """From the next day on the finding counts again, and the exception is one itself."""
    verdict = judged(GROUP, exceptions=read(today="2027-04-01"))
    assert not verdict.allowed
    assert [found.message for found in verdict.findings] == [
        "spec.minMember: must be at least 1, got 0",
        'exceptions[0].expiry: must not be past, got "2027-03-31"',
    ]


def test_an_unused_exception_is_a_finding() -> None:
    """An exception that lets nothing pass is a finding with its line."""
    verdict = judged({**GROUP, "spec": {"minMember": 1}}, exceptions=read())
    (found,) = verdict.findings
    assert (verdict.allowed, verdict.clean) == (True, False)
    assert found.message == (
        'exceptions[0]: must let a finding pass, got none of "podgroup-minimum-positive" on PodGroup "team-a/g"'
    )
    assert found.source is not None
    assert (found.source.file, found.source.line) == ("exceptions.yaml", 4)


@pytest.mark.parametrize(
    ("what", "by"),
    [
        ("name: g", "name: h"),
        ("team-a, name", "team-b, name"),
        ("kind: PodGroup,", "kind: Workload,"),
        (RULE, "single-pod-has-no-gang"),
    ],
    ids=["name", "namespace", "kind", "rule"],
)
def test_exceptions_are_for_one_object_and_rule(what: str, by: str) -> None:
    """An exception for another object or rule lets nothing pass."""
    assert not judged(GROUP, exceptions=read(TEXT.replace(what, by))).allowed


def test_a_namespace_left_out_is_the_default() -> None:
    """Manifest and exception may both leave the namespace `default` out."""
    group = {**GROUP, "metadata": {"name": "g"}}
    for text in (TEXT.replace("team-a, name", "default, name"), TEXT.replace("namespace: team-a, ", "")):
        assert judged(group, exceptions=read(text)).allowed


@pytest.mark.parametrize(
    ("what", "by", "problem"),
    [
        (RULE, "no-rule", 'exceptions.yaml:4: exceptions[0]: must name a rule, got "no-rule"'),
        (
            "owner: team-a@example.com",
            "owner: ' '",
            "exceptions.yaml:4: exceptions[0]: must have an owner, got nothing",
        ),
        (
            "measured without a gang until the spring",
            "''",
            "exceptions.yaml:4: exceptions[0]: must have a reason, got nothing",
        ),
        ("2027-03-31", "soon", 'exceptions.yaml:4: exceptions[0]: must have an expiry YYYY-MM-DD, got "soon"'),
        (
            "2027-03-31",
            "20270331x",
            'exceptions.yaml:4: exceptions[0]: must have an expiry YYYY-MM-DD, got "20270331x"',
        ),
        (
            "2027-03-31",
            "2027-02-30",
            'exceptions.yaml:4: exceptions[0]: must have an expiry YYYY-MM-DD, got "2027-02-30"',
        ),
        (
            "  reason: measured without a gang until the spring\n",
            "",
            f"{NOT_ONE}, got one with: Object missing required field `reason` - at `$.exceptions[0]`",
        ),
        (
            "kind: Exceptions",
            "kind: Exemptions",
            f'{NOT_ONE}, got "lockstep.dev/v1alpha1 Exemptions"',
        ),
    ],
    ids=["rule", "owner", "reason", "word", "digits", "day", "missing", "kind"],
)
def test_broken_files_are_refused(what: str, by: str, problem: str) -> None:
    """A file that leaves something out, or names what there is not, is refused with its line."""
    with pytest.raises(Unreadable) as refused:
        read(TEXT.replace(what, by))
    assert str(refused.value) == problem


def test_doubles_are_refused() -> None:
    """Two exceptions for one rule and object are refused: the laxer one would win."""
    entry = TEXT.partition("exceptions:\n")[2]
    with pytest.raises(
        Unreadable, match=r"must have one exception for a rule and an object, got a second of podgroup-min"
    ):
        read(TEXT + entry)
