"""Every rule on its fixtures, and what holds of rules and fixtures as a whole."""

from pathlib import Path
from typing import Final

import pytest

from policies.fixtures import problem_of, problem_of_name, read_fixture
from policies.reading import Unreadable
from policies.registry import all_rules
from policies.testing import fixture_files, folder_of, run_fixtures
from tests.policies.rules import gather_made_up

FOLDER: Final = Path(__file__).parent
FILES: Final = {str(file.relative_to(FOLDER)): file for file in fixture_files(FOLDER)}
RULES: Final = {folder_of(rule): rule for rule in all_rules().values()}

MADE_UP: Final = {
    "pods_are_blue/allowed.yaml": """\
kind: Fixture
apiVersion: lockstep.dev/v1alpha1
promise: a blue pod passes
---
{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {colour: blue}}}
""",
    "pods_are_blue/denied.yaml": """\
kind: Fixture
apiVersion: lockstep.dev/v1alpha1
promise: a red pod is found
expect: ['metadata.labels[colour]: must be "blue", got "red"']
---
{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {colour: red}}}
""",
}


@pytest.mark.parametrize("name", FILES)
def test_fixture(name: str) -> None:
    """The rule finds in its fixture what the fixture expects, word for word, and nothing else."""
    fixture = read_fixture(FILES[name].read_text(encoding="utf-8"), name)
    assert problem_of(fixture, RULES[name.rpartition("/")[0]]) is None
    assert problem_of_name(fixture) is None


def test_every_rule_has_fixtures() -> None:
    """A rule without an allowed or a denied fixture, and a folder without a rule, are told."""
    files = {name: file.read_text(encoding="utf-8") for name, file in FILES.items()}
    outcomes = list(run_fixtures(all_rules(), files))
    assert [outcome.problem for outcome in outcomes if outcome.problem] == []
    assert {outcome.rule for outcome in outcomes} == set(all_rules())


def test_messages_have_one_shape() -> None:
    """Every expected message is `<field path>: must <rule>, got <value>`, in one line without a full stop."""
    for name, file in FILES.items():
        for message in read_fixture(file.read_text(encoding="utf-8"), name).expect:
            path, _, rest = message.removeprefix("note: ").partition(": must ")
            assert path, name
            assert " " not in path.replace(": ", ""), name
            assert ", got " in rest, name
            assert not message.endswith("."), name
            assert message.isprintable(), name


def test_a_rule_is_one_file_and_one_folder(tmp_path: Path) -> None:
    """A made-up rule needs one file to be found and one folder to be tested."""
    rules = gather_made_up(tmp_path)
    assert set(rules) == {"pods-are-blue"}
    assert [outcome.problem for outcome in run_fixtures(rules, MADE_UP)] == [None, None]


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("allowed", 'pods_are_blue: must hold a fixture "allowed...", got none'),
        ("denied", 'pods_are_blue: must hold a fixture "denied...", got none'),
    ],
)
def test_missing_fixtures_are_told(tmp_path: Path, missing: str, problem: str) -> None:
    """A rule without an allowed or a denied fixture fails."""
    files = {name: text for name, text in MADE_UP.items() if missing not in name}
    problems = [outcome.problem for outcome in run_fixtures(gather_made_up(tmp_path), files) if outcome.problem]
    assert problems == [problem]


def test_broken_fixtures_are_told(tmp_path: Path) -> None:
    """A fixture that is none, one that expects another message, and a folder of no rule fail."""
    denied = MADE_UP["pods_are_blue/denied.yaml"]
    files = MADE_UP | {
        "pods_are_blue/denied_other.yaml": denied.replace('got "red"', 'got "pink"'),
        "pods_are_blue/allowed_not.yaml": denied,
        "pods_are_blue/allowed_none.yaml": "{apiVersion: v1, kind: Pod}",
        "pods_are_blue/allowed_field.yaml": denied.replace("promise:", "promises:"),
        "pods_are_green/allowed.yaml": MADE_UP["pods_are_blue/allowed.yaml"],
    }
    problems = [outcome.problem for outcome in run_fixtures(gather_made_up(tmp_path), files) if outcome.problem]
    begin = "must begin with a lockstep.dev/v1alpha1/Fixture"
    red = """'metadata.labels[colour]: must be "blue", got "red"'"""
    assert problems == [
        f"pods_are_blue/allowed_field.yaml:1: {begin}, got one with Object contains unknown field `promises`",
        f'pods_are_blue/allowed_none.yaml:1: {begin}, got "v1/Pod"',
        f"pods_are_blue/allowed_not.yaml: must expect nothing, as its name says, got {red}",
        f"pods_are_blue/denied_other.yaml: must find {red.replace('red', 'pink')}, got {red}",
        'pods_are_green: must be the folder of a rule, got none "pods-are-green"',
    ]


def test_changes_need_both_sides() -> None:
    """A change without the object before or after it is refused with its line."""
    text = MADE_UP["pods_are_blue/allowed.yaml"] + "---\n{apiVersion: lockstep.dev/v1alpha1, kind: Change, to: {}}\n"
    with pytest.raises(Unreadable, match=r"^a\.yaml:7: must have objects from and to, got none$"):
        read_fixture(text, "a.yaml")
