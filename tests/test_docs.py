"""The pages in `docs/` and SECURITY-REVIEW.md speak of what is there."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from lockstep.main import COMMANDS

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = [ROOT / "SECURITY-REVIEW.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK: Final = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]+)?\)")
PATH: Final = re.compile(
    r"`((?:certs|docs|gangs|image|lockstep|manifests|policies|schedulers|tests|webhook)/[\w./-]*\w)"
)
COMMAND: Final = re.compile(r"\blockstep ([a-z]+)\b(?! (?:breakglass|is|and|in))")
IN_CODE: Final = re.compile(r"`([^`\n]+)`|^ {4}(.*)$", re.MULTILINE)
COMPONENT: Final = re.compile(r"component `([a-z-]+)`")
RUNBOOK: Final = ROOT / "docs" / "runbook.md"


def headings(text: str) -> set[str]:
    """The anchors of a page, as they are made of its headings."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def alerts() -> set[str]:
    """The names of all alerts that are shipped."""
    files = (ROOT / "manifests" / "components").rglob("*.yaml")
    documents: list[Any] = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    rules = [each for each in documents if isinstance(each, dict) and each.get("kind") == "PrometheusRule"]
    groups = [group for rule in rules for group in rule["spec"]["groups"]]
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """File and section are there."""
    broken = []
    for file, anchor in LINK.findall(page.read_text()):
        target = (page.parent / file) if file else page
        if not target.exists() or (anchor and anchor not in headings(target.read_text())):
            broken.append(file + anchor)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_and_components_are_there(page: Path) -> None:
    """What is named can be looked at, and applied."""
    text = page.read_text()
    named = [ROOT / path for path in PATH.findall(text)]
    named += [ROOT / "manifests" / "components" / name for name in COMPONENT.findall(text)]
    assert [str(path.relative_to(ROOT)) for path in named if not path.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_there(page: Path) -> None:
    """Nobody is told to type what does not exist."""
    code = " \n".join(one or two for one, two in IN_CODE.findall(page.read_text()))
    assert sorted(set(COMMAND.findall(code)) - set(COMMANDS)) == []


def test_every_alert_has_a_section() -> None:
    """The link in an alert leads to what to do."""
    assert sorted(alert for alert in alerts() if f"#{alert.lower()}" not in headings(RUNBOOK.read_text())) == []
