"""Whatever is given: an answer, in bounded time, and the same one again."""

import copy
import time
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from policies.native import find_dropped, validate
from policies.targets import GATES, Target
from tests.policies.native.cases import all_cases

CASES = all_cases()

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
ANYTHING = st.recursive(
    SCALARS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
)
TARGETS = st.sampled_from(sorted(GATES)).flatmap(
    lambda version: st.builds(Target, st.just(version), st.frozensets(st.sampled_from(sorted(GATES[version]))))
)


def _paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in _paths(child, (*path, key)))]


@st.composite
def spoilt_objects(draw: st.DrawFn) -> dict[str, Any]:
    """An object of a case with one value of it replaced by anything."""
    content = copy.deepcopy(draw(st.sampled_from(CASES)).object)
    path = draw(st.sampled_from([path for path in _paths(content) if path]))
    place: Any = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = draw(ANYTHING)
    return content


@given(ANYTHING, ANYTHING, TARGETS, st.sampled_from(["", "status"]))
def test_anything_gets_an_answer(content: object, old: object, target: Target, subresource: str) -> None:
    """No JSON value raises."""
    assert isinstance(validate(content, old, target, [], subresource), list)


@given(spoilt_objects(), st.none() | spoilt_objects(), TARGETS, st.sampled_from(["", "status"]))
@settings(max_examples=400)
def test_a_spoilt_object_gets_an_answer(content: Any, old: Any, target: Target, subresource: str) -> None:
    """No object that is nearly right raises, and the answer depends on nothing else."""
    before = copy.deepcopy((content, old))
    others = [old] if isinstance(old, dict) else []
    first = validate(content, old, target, others, subresource)
    assert first == validate(content, old, target, others, subresource)
    assert len(first) <= 100
    assert all(problem.path for problem in [*first, *find_dropped(content, old, target)])
    assert repr((content, old)) == repr(before)


@given(st.sampled_from([case for case in CASES if case.allowed and case.old is None]), TARGETS)
def test_what_may_be_created_may_be_written_again(case: Any, target: Target) -> None:
    """An update that changes nothing is fine, whatever gates have changed since."""
    if target.version == case.k8s_version:
        assert validate(case.object, case.object, target) == []


NESTED: Any = {}
for _ in range(5000):
    NESTED = {"compositePodGroupTemplates": [NESTED]}


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        pytest.param(NESTED, "be at most 64 levels deep", id="deep"),
        pytest.param({"podGroupTemplates": [{}] * 100_000}, "hold at most 20000 values", id="wide"),
        pytest.param({"podGroupTemplates": [{}] * 19_000}, "have at most 8 items", id="as wide as may be"),
        pytest.param(
            {"podGroupTemplates": [{"resourceClaims": [{}] * 2400}] * 8}, "have at most 4 items", id="wide inside"
        ),
        pytest.param({"podGroupTemplates": [{"name": "a" * 3_000_000}]}, "be a DNS label", id="a long name"),
        pytest.param({"controllerRef": {"kind": "/" * 3_000_000}}, "be a name without", id="a long kind"),
    ],
)
def test_size_costs_no_more_than_a_second_or_two(spec: Any, rule: str) -> None:
    """Hostile sizes end early."""
    workload = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": {}, "spec": spec}
    target = Target("1.37", GATES["1.37"])
    started = time.process_time()
    found = validate(workload, None, target)
    assert any(rule in problem.message for problem in found)
    assert len([*found, *validate(workload, workload, target)]) <= 200
    assert time.process_time() - started < 5


def test_many_conditions_end_in_time() -> None:
    """The one list without a limit is bounded by the size of the whole."""
    conditions = [{"type": f"T{number}", "status": "True", "reason": "R"} for number in range(4_000)]
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {}, "spec": {}}
    started = time.process_time()
    found = validate({**group, "status": {"conditions": conditions}}, group, Target("1.37"), subresource="status")
    assert len(found) == 100
    assert time.process_time() - started < 5
