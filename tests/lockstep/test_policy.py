"""`lockstep policy`: what is printed of rules, and what its commands exit with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from lockstep.main import main
from policies.registry import all_rules
from tests.policies.rules import MADE_UP
from tests.policies.test_fixtures import MADE_UP as FIXTURES

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = sorted(rule.file for rule in all_rules().values() if rule.text)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs a command of `lockstep policy` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["policy", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def write(files: dict[str, str]) -> None:
    """Write files below the working folder."""
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_list(run: Run) -> None:
    """Every rule is listed, in text and in JSON."""
    code, out, _ = run("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(all_rules())
    listed = json.loads(run("list", "--output", "json")[1])["policies"]
    assert [rule["id"] for rule in listed] == list(all_rules())
    assert all(rule["why"] and rule["blind"] and rule["kinds"] for rule in listed)


def test_sheet(run: Run) -> None:
    """The sheet is what `docs/policies.md` holds."""
    assert run("sheet") == (0, (ROOT / "docs" / "policies.md").read_text(encoding="utf-8"), "")


@pytest.mark.parametrize("target", ["1.35", "1.36", "1.37"])
def test_shipped_policies_are_clean(run: Run, target: str) -> None:
    """Lint finds nothing in the policies we ship, for any Kubernetes we know."""
    code, out, err = run("lint", "--target", target)
    assert (code, out, err) == (0, f"{len(SHIPPED)} files, 0 problems for Kubernetes {target}\n", "")


def test_lint_names_file_and_line(run: Run) -> None:
    """A policy that can't be loaded is a finding with its line; a file that is not there is wrong usage."""
    write({"broken.yaml": MADE_UP.replace("variables.colour == 'blue'", "variables.color == 'blue'")})
    code, out, _ = run("lint", "broken.yaml")
    assert code == 1
    assert out.startswith("broken.yaml:19: error: spec.validations[0].expression: ")
    assert "variables.color" in out
    assert run("lint", "nowhere.yaml")[0] == 2
    assert run("lint", "--target", "2.0")[0] == 2


def test_shipped_fixtures_pass(run: Run) -> None:
    """Every fixture of every rule passes."""
    code, out, _ = run("test", str(ROOT / "tests" / "policies"))
    assert code == 0
    assert out.splitlines()[-1].endswith(" fixtures, 0 failed")


def test_own_rules_are_tested(run: Run) -> None:
    """A site tests its own policies with fixtures of its own; a broken promise is 1."""
    write({f"fixtures/{name}": text for name, text in FIXTURES.items()} | {"rules/pods_are_blue.yaml": MADE_UP})
    code, out, _ = run("test", "fixtures", "--rules", "rules")
    assert code == 0
    assert out == (
        "ok      pods_are_blue/allowed.yaml: a blue pod passes\n"
        "ok      pods_are_blue/denied.yaml: a red pod is found\n"
        "2 fixtures, 0 failed\n"
    )
    write({"fixtures/pods_are_blue/denied.yaml": FIXTURES["pods_are_blue/denied.yaml"].replace('got "red"', "got red")})
    code, out, _ = run("test", "fixtures", "--rules", "rules", "--output", "json")
    assert code == 1
    problems = [fixture["problem"] for fixture in json.loads(out)["fixtures"]]
    assert [bool(problem) for problem in problems] == [False, True]


def test_tests_that_can_not_run(run: Run) -> None:
    """No fixtures is wrong usage, a file that holds no rule a bad configuration."""
    assert run("test", "nowhere") == (2, "", "nowhere: must hold folders of fixtures, got none\n")
    write(
        {
            "fixtures/a/allowed.yaml": "a: b",
            "rules/pods_are_blue.yaml": MADE_UP.replace("severity: error", "severity: x"),
        }
    )
    code, _, err = run("test", "fixtures", "--rules", "rules")
    assert code == 4
    assert 'must be one of error, warning, note, got "x"' in err


def test_export_as_they_stand(run: Run) -> None:
    """The policies come out as they stand in their files."""
    code, out, _ = run("export", "policies")
    assert code == 0
    for rule in all_rules().values():
        assert rule.text in out


@pytest.mark.parametrize("actions", [["Deny"], ["Deny", "Audit"], ["Warn"], ["Audit"]], ids=",".join)
def test_export_bindings(run: Run, actions: list[str]) -> None:
    """One binding for each policy, with the actions asked for."""
    code, out, _ = run("export", "bindings", "--actions", ",".join(actions))
    documents = list(yaml.safe_load_all(out))
    assert code == 0
    assert {document["kind"] for document in documents} == {"ValidatingAdmissionPolicyBinding"}
    assert len(documents) == len(SHIPPED)
    assert all(sorted(document["spec"]["validationActions"]) == sorted(actions) for document in documents)


def test_export_static(run: Run) -> None:
    """Static manifests are policies and bindings under names that an API server takes from files."""
    code, out, _ = run("export", "static")
    documents = list(yaml.safe_load_all(out))
    assert code == 0
    assert len(documents) == 2 * len(SHIPPED)
    assert all(document["metadata"]["name"].endswith(".static.k8s.io") for document in documents)


@pytest.mark.parametrize("actions", ["Deny,Warn", "Refuse", "", "Deny,Deny"])
def test_wrong_actions(run: Run, actions: str) -> None:
    """Actions that the API server would not take are wrong usage."""
    code, _, err = run("export", "bindings", "--actions", actions)
    assert (code, err) == (
        2,
        f'--actions: must be some of Deny, Warn, Audit, and not Deny with Warn, got "{actions}"\n',
    )
