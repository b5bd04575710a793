"""Verdicts as text, JSON, SARIF and JUnit, each by its own standard."""

import importlib
import json
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.findings import Exemption, Finding, ObjectRef, Source, verdict_of
from policies.registry import all_rules
from policies.reports import FORMATS, Reviewed

SARIF: Final = json.loads((Path(__file__).parent.parent / "data" / "sarif" / "results.schema.json").read_text())
REF: Final = ObjectRef("scheduling.volcano.sh/v1beta1", "PodGroup", "team-a", "g")
RULE: Final = "podgroup-minimum-positive"
FINDINGS: Final = (
    Finding(RULE, "error", "spec.minMember", "spec.minMember: must be at least 1, got 0", REF, Source("a b.yaml", 4)),
    Finding("queue-exists", "note", "spec.queue", 'spec.queue: must name a queue, got "x"', REF, Source("a b.yaml", 5)),
    Finding("templates-name-no-group", "warning", "spec", "spec: must be unset, got one", REF),
    Finding(
        RULE, "error", "spec", "spec: must be, got nothing", REF, exception=Exemption("me", "for now", "2027-01-01")
    ),
)


def rendered(form: str, *findings: Finding, objects: int = 3) -> str:
    """Render a report in a form."""
    reviewed = Reviewed(verdict_of(findings), objects, all_rules(), "1.2.3")
    text: str = importlib.import_module(f"policies.reports.{form}").render(reviewed)
    return text


def test_text() -> None:
    """Text has one line a finding, with file and line where there are any, and one that sums up."""
    assert rendered("text", *FINDINGS).splitlines() == [
        "excepted: spec: must be, got nothing (PodGroup team-a/g) [podgroup-minimum-positive]",
        "warning: spec: must be unset, got one (PodGroup team-a/g) [templates-name-no-group]",
        "a b.yaml:4: error: spec.minMember: must be at least 1, got 0 (PodGroup team-a/g) [podgroup-minimum-positive]",
        'a b.yaml:5: note: spec.queue: must name a queue, got "x" (PodGroup team-a/g) [queue-exists]',
        "3 objects: 1 error, 1 warning, 1 note, 1 excepted",
    ]
    assert rendered("text", objects=1) == "1 object: nothing found\n"


def test_text_moves_no_cursor() -> None:
    """A culprit can't play with the reader's terminal."""
    finding = Finding(RULE, "error", "spec", 'spec: must be, got "\x1b[2J\n"', REF)
    assert "\x1b" not in rendered("text", finding)
    assert len(rendered("text", finding).splitlines()) == 2


def test_json() -> None:
    """JSON is the verdict's own shape."""
    verdict = json.loads(rendered("json", *FINDINGS))
    assert verdict["allowed"] is False
    assert verdict["findings"][2]["source"] == {"file": "a b.yaml", "line": 4}
    assert verdict["findings"][0]["exception"] == {"owner": "me", "reason": "for now", "expiry": "2027-01-01"}


def test_sarif() -> None:
    """SARIF holds to its schema, names rules and lines, and suppresses what is excepted."""
    log = json.loads(rendered("sarif", *FINDINGS))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in rules}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    place = run["results"][2]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b.yaml"}, "region": {"startLine": 4}}
    assert "physicalLocation" not in run["results"][1]["locations"][0]
    assert [result.get("suppressions") for result in run["results"]] == [
        [{"kind": "external", "status": "accepted", "justification": "for now (me, until 2027-01-01)"}],
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), "2.0.0"),
        (("runs", 0, "tool", "driver", "name"), 3),
        (("runs", 0, "results", 0, "level"), "fatal"),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "results", 0, "ruleIndex"), -2),
        (("runs", 0, "results", 2, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "suppressions", 0, "kind"), "mine"),
    ],
    ids=str,
)
def test_the_schema_is_strict(path: tuple[Any, ...], value: object) -> None:
    """The schema refuses what the standard does."""
    log = json.loads(rendered("sarif", *FINDINGS))
    place = log
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert not jsonschema.Draft202012Validator(SARIF).is_valid(log)


def test_junit() -> None:
    """JUnit has a suite for each file; errors and warnings fail, exceptions are skipped, notes pass."""
    root = ET.fromstring(rendered("junit", *FINDINGS))  # noqa: S314 - our own
    assert root.attrib == {"name": "lockstep", "tests": "4", "failures": "2", "errors": "0", "skipped": "1"}
    suites = {suite.attrib["name"]: [child.tag for case in suite for child in case] for suite in root}
    assert suites == {"a b.yaml": ["failure", "system-out"], "cluster": ["skipped", "failure"]}
    case = root[0][0]
    assert case.attrib == {
        "name": "PodGroup team-a/g: spec.minMember",
        "classname": RULE,
        "file": "a b.yaml",
        "line": "4",
    }
    assert case[0].attrib == {"type": "error", "message": "spec.minMember: must be at least 1, got 0"}


def test_junit_of_nothing() -> None:
    """A review that finds nothing is one case that passes: no case at all counts as broken on build servers."""
    root = ET.fromstring(rendered("junit"))  # noqa: S314 - our own
    assert [case.attrib["name"] for case in root.iter("testcase")] == ["3 objects"]


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=20))
@settings(max_examples=150, deadline=None)
def test_any_text_is_rendered(message: str, name: str, file: str) -> None:
    """Whatever stands in an object, every form is well-formed."""
    texts = [text.encode("utf-8", "replace").decode() for text in (message, name, file)]
    finding = Finding(RULE, "error", "spec", texts[0], ObjectRef("v1", "Pod", "a", texts[1]), Source(texts[2], 1))
    for form in FORMATS:
        text = rendered(form, finding)
        if form in ("json", "sarif"):
            json.loads(text)
        if form == "junit":
            ET.fromstring(text)  # noqa: S314 - our own
