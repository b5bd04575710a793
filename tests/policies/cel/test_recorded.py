"""The API server's own answers, again."""

from collections import Counter

import pytest

from tests.policies.cel.recorded import REFUSED, SAME, Case, Recording

RECORDING = Recording()

REFUSED_BY_CHOICE = {
    "ip/cidr/url/format/semver": 12,
    "k8s lists": 3,
    "macros": 2,
    "strings": 1,
    "time": 3,
    "numbers": 1,
    "context": 1,
}
"""How many expressions of each group are refused though the API server takes them: a list that shall not grow unseen."""


@pytest.mark.parametrize("case", RECORDING.cases, ids=lambda case: f"{case.group}: {case.expr}"[:90])
def test_an_expression_is_evaluated_as_recorded_or_refused(case: Case) -> None:
    """Each of the 255 gives the API server's value, error or refusal, or is refused at load: never another value."""
    assert RECORDING.compared(case) in (SAME, REFUSED)


def test_few_expressions_are_refused_that_the_server_takes() -> None:
    """What is refused beyond the API server is a known list."""
    refused = Counter(case.group for case in RECORDING.cases if RECORDING.compared(case) == REFUSED)
    assert refused == REFUSED_BY_CHOICE


def test_random_expressions_are_evaluated_as_recorded_or_refused() -> None:
    """Each of 3,360 random ones as well; no false allow among them, and few refusals."""
    bindings = RECORDING.bindings(Case("", ""))
    outcomes = Counter(RECORDING.compared(case, bindings) for case in RECORDING.random())
    print(f"{outcomes[SAME]} as recorded, {outcomes[REFUSED]} refused that the API server takes")  # noqa: T201 - the figure
    assert set(outcomes) == {SAME, REFUSED}
    assert outcomes.total() == 3360
    assert outcomes[REFUSED] < 100
