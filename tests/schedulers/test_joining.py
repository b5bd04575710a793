"""A new scheduler takes one file and one table: RBAC, configuration, documents and the conformance table follow.

The tree is copied, the file of a scheduler that is made up is put into the copy's `schedulers/`, and nothing else is
done. Its table stands here as any other provider's does.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
PROVIDER: Final = Path(__file__).parent / "made_up.py"
MOST_LINES: Final = 100
NOT_COPIED: Final = shutil.ignore_patterns(".*", "__pycache__", "*.pyc", "node_modules")

LWS: Final = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: team-a, annotations: {lockstep.dev/queue: gold}}
spec:
  replicas: 1
  startupPolicy: LeaderReady
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec: {schedulerName: made-up-scheduler, containers: [{name: vllm, image: "registry.example/vllm:1"}]}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with one more file."""
    tree = tmp_path_factory.mktemp("joining") / "tree"
    shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
    shutil.copy(PROVIDER, tree / "schedulers" / "made_up.py")
    return tree


def run(tree: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a Python module in the copy."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=tree, env=environment, input=text, capture_output=True, text=True, check=False, timeout=300
    )


def test_the_file_is_small() -> None:
    """At most a hundred lines, the document on top included."""
    assert len(PROVIDER.read_text().splitlines()) <= MOST_LINES


def test_every_promise_is_kept(tree: Path) -> None:
    """The conformance table has a column more, and each of its cells passes."""
    done = run(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/schedulers/test_conformance.py", "-k", "made_up")
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_what_is_rendered_has_it(tree: Path) -> None:
    """`make render` writes its row into the README, its rights, its name into the schema and the tables."""
    done = run(tree, "tests.rendering")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| `made_up` | Made up | `made-up-scheduler` |" in (tree / "README.md").read_text()
    assert "| `made_up` |" in (tree / "README.md").read_text().partition("<!-- conformance")[2]
    assert "| Made up | `Unschedulable` |" in (tree / "docs" / "autoscalers.md").read_text()
    assert (
        "| Made up | `spec.queue` of its group | annotation `gangs.example.com/queue` |"
        in (tree / "docs" / "words.md").read_text()
    )
    schema = json.loads((tree / "docs" / "configuration.schema.json").read_text())
    assert "made_up" in schema["properties"]["schedulers"]["additionalProperties"]["enum"]
    rights = list(yaml.safe_load_all((tree / "manifests" / "components" / "made_up" / "rbac.yaml").read_text()))
    rules = [rule for role in rights for rule in role.get("rules", ())]
    written = [rule for rule in rules if "create" in rule["verbs"]]
    assert [(rule["apiGroups"], rule["resources"]) for rule in written] == [(["gangs.example.com"], ["crews"])]


def test_the_commands_know_it(tree: Path) -> None:
    """`explain` shows stamp, group and promise; `review` knows its words and its kind."""
    done = run(tree, "lockstep", "explain", "-", "--output", "json", text=LWS)
    assert done.returncode == 0, done.stderr
    (explained,) = json.loads(done.stdout)["leaderWorkerSets"]
    assert explained["provider"]["name"] == "made_up"
    assert explained["lateWorkers"] == {"because": "spec.startupPolicy", "promise": "nothing is promised"}
    (group,) = explained["groups"]
    assert (group["object"]["kind"], group["object"]["spec"]) == ("Crew", {"atLeast": 1, "queue": "gold"})
    assert group["raised"]["spec"] == {"atLeast": 3}
    reviewed = run(tree, "lockstep", "review", "-", "--output", "json", text=LWS)
    findings = json.loads(reviewed.stdout)["findings"]
    assert [found["rule"] for found in findings if "words" in found["rule"]] == []
    assert "late-workers-have-room" in [found["rule"] for found in findings]
