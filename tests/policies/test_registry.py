"""The registry: what every rule says of itself, and files that hold none."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from policies import relations
from policies.declared import BadRule
from policies.registry import Rule, all_rules, coded_rules, gather
from policies.shapes import shape_of
from schedulers.registry import all_providers
from tests.policies.rules import MADE_UP, gather_made_up, no_relations

RULES = list(all_rules().values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rules_can_be_reviewed(rule: Rule) -> None:
    """Every rule says what must hold, why, and what it can't see, in a sentence without a full stop."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.id)
    assert rule.file in (f"relations/{rule.id.replace('-', '_')}.py", f"{rule.id.replace('-', '_')}.yaml")
    for text in (rule.title, rule.why, rule.blind):
        assert text.strip() == text
        assert text[0].isupper() or text.startswith("kube-scheduler ")
        assert not text.endswith(".")
        assert "\n" not in text
    assert rule.when_down.endswith(".")
    assert rule.kinds
    assert all(shape_of(kind) for kind in rule.kinds)
    assert bool(rule.text) == (rule.enforced_by == "both")


def test_rules_know_every_scheduler() -> None:
    """The rules about group objects are for those of every scheduler, and its stamps are marks that never change."""
    immutable, alone = all_rules()["group-marks-immutable"].text, all_rules()["pod-in-groups-of-one-scheduler"].text
    for provider in all_providers().values():
        for kind in provider.kinds:
            rules = ("podgroup-minimum-positive", "workload-templates-well-formed")
            assert any(f"{kind.kind}.{kind.api_group}" in all_rules()[name].kinds for name in rules)
        stamp = provider.stamp("group", leader=True)
        claims = [*stamp.labels, *stamp.annotations][:1]
        for key in claims:
            assert f"'{key}'" in immutable
            assert f"'{key}'" in alone


@pytest.mark.parametrize(
    ("what", "by", "problem"),
    [
        (
            "name: pods-are-blue",
            "name: pods-are-red",
            r'must hold the one policy "pods-are-blue\.lockstep\.dev", got "pods-are-red',
        ),
        (
            "lockstep.dev/why: Red ones clash",
            "x: y",
            r"metadata\.annotations\[lockstep\.dev/why\]: must be set, got nothing",
        ),
        ("severity: error", "severity: fatal", r'must be one of error, warning, note, got "fatal"'),
        ("resources: [pods]", "resources: [nodes]", r'spec\.matchConstraints: must match known resources, got "nodes"'),
    ],
    ids=["name", "why", "severity", "resource"],
)
def test_files_without_a_rule(tmp_path: Path, what: str, by: str, problem: str) -> None:
    """A policy that reviewers could not read, or that is not named after its file, is refused with the file's name."""
    text = MADE_UP.replace(f"policyName: {what.removeprefix('name: ')}", f"policyName: {by.removeprefix('name: ')}")
    with pytest.raises(BadRule, match=rf"^pods_are_blue\.yaml: .*{problem}"):
        gather_made_up(tmp_path, text.replace(what, by))


def test_modules_without_a_rule(tmp_path: Path) -> None:
    """A module of relations without a RULE is refused."""
    (tmp_path / "policies_made_up_module.py").write_text("", encoding="utf-8")
    package = ModuleType("relations")
    package.__path__ = [str(tmp_path)]
    with pytest.raises(ImportError):
        list(coded_rules(package))


def test_ids_are_single(tmp_path: Path) -> None:
    """Two rules of one id are refused."""
    rule = next(iter(coded_rules(relations)))
    (tmp_path / f"{rule.id.replace('-', '_')}.yaml").write_text(
        MADE_UP.replace("pods-are-blue", rule.id), encoding="utf-8"
    )
    with pytest.raises(ValueError, match="must have an id of its own"):
        gather(tmp_path, relations)
    assert no_relations().__path__ == []
