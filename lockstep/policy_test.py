"""`lockstep policy test`: runs the fixtures of every rule, and of a site's own."""

import argparse
import sys
from pathlib import Path
from typing import Final

import msgspec

from lockstep.exit_codes import BAD_CONFIGURATION, FINDINGS, WRONG_USAGE, fail
from lockstep.files import WrongUsage, read_text
from policies.registry import Rule, all_rules, declared_rules
from policies.testing import Outcome, fixture_files, run_fixtures

FOLDER: Final = "tests/policies"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    words = f"folders of fixtures, one for each rule, in this folder ({FOLDER})"
    parser.add_argument("folder", nargs="?", default=FOLDER, metavar="FOLDER", help=words)
    parser.add_argument("--rules", metavar="FOLDER", help="test the policies of this folder, not Lockstep's own")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Run the fixtures; 1 when one fails or is missing."""
    try:
        files = fixtures_below(Path(args.folder))
    except WrongUsage as error:
        return fail(str(error), WRONG_USAGE)
    try:
        rules = all_rules() if args.rules is None else rules_below(Path(args.rules))
    except ValueError as error:
        return fail(str(error), BAD_CONFIGURATION)
    outcomes = list(run_fixtures(rules, files))
    sys.stdout.write(as_json(outcomes) if args.output == "json" else as_text(outcomes))
    return FINDINGS if any(outcome.problem for outcome in outcomes) else 0


def fixtures_below(folder: Path) -> dict[str, str]:
    """Read every fixture, by its path below a folder.

    Raises:
        WrongUsage: there is none, or one can't be read.
    """
    found = {str(file.relative_to(folder)): read_text(file) for file in fixture_files(folder)}
    if not found:
        raise WrongUsage(f"{folder}: must hold folders of fixtures, got none")
    return found


def rules_below(folder: Path) -> dict[str, Rule]:
    """Load the policies of a folder as rules.

    Raises:
        ValueError: one of them is no rule.
    """
    return {rule.id: rule for rule in declared_rules(folder)}


def as_text(outcomes: list[Outcome]) -> str:
    """Render one line a fixture, and one that sums up."""
    lines = [_line(outcome) for outcome in outcomes]
    failed = sum(outcome.problem is not None for outcome in outcomes)
    lines.append(f"{len(outcomes)} fixtures, {failed} failed")
    return "".join(f"{line}\n" for line in lines)


def as_json(outcomes: list[Outcome]) -> str:
    """Render a list with one record a fixture."""
    return msgspec.json.format(msgspec.json.encode({"fixtures": outcomes})).decode() + "\n"


def _line(outcome: Outcome) -> str:
    return f"ok      {outcome.file}: {outcome.promise}" if outcome.problem is None else f"FAILED  {outcome.problem}"
