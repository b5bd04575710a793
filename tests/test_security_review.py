"""SECURITY-REVIEW.md speaks of what is there: its tests exist, and its table has every right that is shipped."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from manifests.shipped import install_objects

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = (ROOT / "SECURITY-REVIEW.md").read_text()
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
THREAT: Final = re.compile(r"^### T(\d+) .*$", re.MULTILINE)
BINDINGS: Final = {"ClusterRoleBinding": "ClusterRole", "RoleBinding": "Role"}

Right = tuple[str, str, str]
"""Account, resource, verb."""


def answers() -> dict[int, str]:
    """The text below each threat's heading, by its number."""
    parts = THREAT.split(re.split(r"^## Supply chain$", PAGE, flags=re.MULTILINE)[0])[1:]
    return {int(number): text for number, text in zip(parts[::2], parts[1::2], strict=True)}


def in_table() -> set[Right]:
    """What the page says."""
    table = PAGE.partition("<!-- rights -->")[2].partition("<!-- /rights -->")[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    assert all(len(row) == 4 and row[3] for row in cells)
    return {(account, resource, verb) for account, resource, verbs, _ in cells for verb in verbs.split(", ")}


def in_manifests() -> set[Right]:
    """What is shipped: each account with the rules of the roles that are bound to it."""
    objects = install_objects()
    rules = {(each["kind"], each["metadata"]["name"]): each.get("rules") or () for each in objects}
    return {
        (subject["name"], resource, verb)
        for binding in objects
        if binding["kind"] in BINDINGS
        for subject in binding["subjects"]
        for rule in _rules(rules, binding)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _rules(rules: dict[tuple[str, str], Any], binding: dict[str, Any]) -> Any:
    return rules[binding["roleRef"]["kind"], binding["roleRef"]["name"]]


def test_every_threat_has_an_answer() -> None:
    """T1 to T18, each with a test or a paragraph that says why not."""
    assert sorted(answers()) == list(range(1, 19))
    assert [number for number, text in answers().items() if not NAMED.search(text) and "Paragraph" not in text] == []


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE))))
def test_a_named_test_is_there(file: str, name: str) -> None:
    """No answer leans on a test that was renamed away."""
    text = (ROOT / file).read_text()
    assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE)


def test_every_right_has_a_reason() -> None:
    """A right that is added to the manifests has to be explained."""
    assert sorted(in_manifests() - in_table()) == []


def test_no_right_is_explained_that_is_not_shipped() -> None:
    """Nobody signs off more than there is."""
    assert sorted(in_table() - in_manifests()) == []
