"""Runs the fixtures of rules: one folder a rule, named like its file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from policies.fixtures import ALLOWED, DENIED, problem_of, problem_of_name, read_fixture
from policies.reading import Unreadable
from policies.registry import Rule

KINDS: Final = (ALLOWED, DENIED)


class Outcome(msgspec.Struct, frozen=True):
    """What became of one fixture, or of a rule without one.

    Attributes:
        rule: id of the rule.
        file: the fixture, or the folder where one is missing.
        promise: what the fixture shows.
        problem: what is wrong, `None` for nothing.
    """

    rule: str
    file: str
    promise: str
    problem: str | None


def folder_of(rule: Rule) -> str:
    """Name the folder of a rule's fixtures."""
    return rule.id.replace("-", "_")


def fixture_files(folder: Path) -> list[Path]:
    """List the fixtures below a folder, sorted; folders of Python tests are none of rules."""
    return [file for file in sorted(folder.glob("*/*.yaml")) if not (file.parent / "__init__.py").exists()]


def run_fixtures(rules: Mapping[str, Rule], files: Mapping[str, str]) -> Iterator[Outcome]:
    """Run the fixtures of some rules.

    Args:
        rules: by id.
        files: `<folder>/<name>.yaml` -> text, of all folders together.

    Yields:
        An outcome for every fixture, for every rule that lacks an allowed or a denied one, and for every folder
        without a rule.
    """
    folders = {folder_of(rule): rule for rule in rules.values()}
    for rule in rules.values():
        mine = {name: text for name, text in sorted(files.items()) if name.rpartition("/")[0] == folder_of(rule)}
        yield from (_run(rule, name, text) for name, text in mine.items())
        yield from _missing(rule, mine)
    for folder in sorted({name.rpartition("/")[0] for name in files} - set(folders)):
        yield Outcome("", folder, "", f'{folder}: must be the folder of a rule, got none "{folder.replace("_", "-")}"')


def _run(rule: Rule, name: str, text: str) -> Outcome:
    try:
        fixture = read_fixture(text, name)
    except Unreadable as error:
        return Outcome(rule.id, name, "", str(error))
    return Outcome(rule.id, name, fixture.promise, problem_of_name(fixture) or problem_of(fixture, rule))


def _missing(rule: Rule, names: Iterable[str]) -> Iterator[Outcome]:
    there = [name.rpartition("/")[2] for name in names]
    for kind in KINDS:
        if not any(name.startswith(kind) for name in there):
            folder = folder_of(rule)
            yield Outcome(rule.id, folder, "", f'{folder}: must hold a fixture "{kind}...", got none')
