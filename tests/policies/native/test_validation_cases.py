"""Every recorded case gets the recorded verdict, at the recorded field."""

from collections import Counter
from typing import Final

import pytest

from policies.native import validate
from policies.native.problems import Problem
from tests.policies.native.cases import Case, all_cases

CASES: Final = all_cases()
REFUSED: Final = [case for case in CASES if case.field]
ALL_FIELDS_KNOWN: Final = [case for case in CASES if case.fields]

UNCHECKED_TYPES: Final = {"136-pod-group-empty", "137-pod-group-empty"}
"""Cases whose notes say that the kind was not checked; the real server says Invalid (tests/cluster)."""


def _judged(case: Case) -> list[Problem]:
    return validate(case.object, case.old, case.target, case.others, case.subresource)


def test_the_table_is_whole() -> None:
    """All versions are there, in the numbers that were recorded."""
    assert Counter(case.k8s_version for case in CASES) == {"1.35": 32, "1.36": 60, "1.37": 206, "1.38-alpha": 4}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_verdict_is_the_recorded_one(case: Case) -> None:
    """Allowed as the API server allows, refused as it refuses."""
    assert (not _judged(case)) == case.allowed


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_the_field_and_the_kind_of_error_are_the_recorded_ones(case: Case) -> None:
    """The recorded error is found, and called what the API server calls it."""
    found = {problem.path: problem.type for problem in _judged(case)}
    assert case.field in found
    assert found[case.field] == case.error_type or case.id in UNCHECKED_TYPES


@pytest.mark.parametrize("case", ALL_FIELDS_KNOWN, ids=lambda case: case.id)
def test_no_other_field_is_named(case: Case) -> None:
    """Where all errors were recorded, exactly those are found."""
    assert {problem.path for problem in _judged(case)} == set(case.fields)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_messages_have_one_form(case: Case) -> None:
    """`<field>: must <rule>, got <value>`, in one line."""
    for problem in _judged(case):
        assert problem.message.startswith(f"{problem.path}: must ")
        assert ", got " in problem.message
        assert "\n" not in problem.message
