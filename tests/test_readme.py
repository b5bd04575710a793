"""The README speaks of what is there."""

import re
from pathlib import Path
from typing import Final

import pytest

from lockstep.main import COMMANDS

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = ("README.md", "CONTRIBUTING.md", "DECISIONS.md", "CHANGELOG.md")


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_of_ours_lead_somewhere(page: str) -> None:
    """A claim names the test that shows it, and the test is there."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_code_marks_lead_somewhere(page: str) -> None:
    """A path that is named exists, but for those with a part to fill in."""
    named = re.findall(
        r"`((?:gangs|schedulers|webhook|reconciler|certs|lockstep|tests|docs)/[\w./-]+)`", (ROOT / page).read_text()
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_open_question_is_answered_by_a_test_or_by_a_no() -> None:
    """Each row names tests that are there; what does not hold is said in so many words."""
    rows = section("open questions")[2:]
    assert len(rows) == 11
    for row in rows:
        links = re.findall(r"\]\((tests/[\w./]+)\)", row)
        assert links or " No: " in row, row
        assert [link for link in links if not (ROOT / link).is_file()] == []


def section(name: str) -> list[str]:
    """Give the lines of a section of the README."""
    return (ROOT / "README.md").read_text().partition(f"<!-- {name} -->\n")[2].partition("<!-- /")[0].splitlines()


def test_every_command_is_in_the_readme() -> None:
    """A command nobody hears of is no command."""
    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"lockstep {name}" not in text] == []
