"""The API server's own answers, again."""

from collections import Counter

import pytest

from tests.policies.cel.recorded import FAILED, REFUSED, SAME, Case, Edges, Recording

RECORDING = Recording()
EDGES = Edges()

REFUSED_BY_CHOICE = {
    "ip/cidr/url/format/semver": 12,
    "k8s lists": 3,
    "macros": 2,
    "strings": 1,
    "time": 3,
    "numbers": 1,
}
"""How many of each group are refused though the API server takes them: a list that shall not grow unseen."""


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


def test_borders_of_functions_are_those_of_the_api_server() -> None:
    """Offsets, empty texts, overflow, rounding, letters beyond ASCII: as Kubernetes 1.37.2 has them, or refused."""
    outcomes = Counter(map(EDGES.compared, EDGES.cases))
    # string(1e300 * 1e300) is "+Inf" there.
    assert (outcomes[FAILED], set(outcomes)) == (1, {SAME, REFUSED, FAILED})
    assert outcomes[SAME] > 600


def test_random_expressions_on_a_hostile_object_have_no_other_value() -> None:
    """2,000 more, recorded with 1.37.2: never another value, nor one for what the server refuses."""
    outcomes = Counter(map(EDGES.compared, EDGES.random))
    assert set(outcomes) <= {SAME, REFUSED, FAILED}
    assert outcomes.total() == 2000
    assert outcomes[FAILED] <= 5
    assert outcomes[REFUSED] < 50
