"""The shipped ValidatingAdmissionPolicies on the real API server: accepted, and of one mind with the fixtures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from policies.fixtures import read_fixture
from policies.reading import read_objects
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.replaying import Replayer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.objects import Subject
    from tests.cluster.control_plane import PlaneFactory

ROOT: Final = Path(__file__).parents[2]
POLICIES: Final = sorted((ROOT / "policies").glob("*.yaml"))
FIXTURES: Final = [
    file for policy in POLICIES for file in sorted((ROOT / "tests/policies" / policy.stem).glob("*.yaml"))
]
NATIVE: Final = {"scheduling.k8s.io/v1beta1": "true", "scheduling.k8s.io/v1alpha3": "true"}

REFUSED_BEFORE: Final = frozenset(
    {
        "workload_templates_well_formed/denied.yaml",
        "workload_templates_well_formed/denied_names.yaml",
        "workload_templates_well_formed/denied_both.yaml",
        "workload_templates_well_formed/denied_minimum.yaml",
        "workload_templates_well_formed/denied_neither.yaml",
        "workload_templates_well_formed/allowed_1_35.yaml",
    }
)
"""Fixtures that this API server refuses by itself, before any policy is asked."""


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """An API server with every kind that the policies are about, and the policies."""
    options = Options(runtime_config=NATIVE, scheduler=False, kwok=False, lws=False, coscheduling=False, volcano=True)
    plane = start_plane(options)
    folder = plane.layout.binaries / "crds"
    plane.register_kinds(
        folder / "leaderworkerset.x-k8s.io_leaderworkersets.yaml", folder / "scheduling.x-k8s.io_podgroups.yaml"
    )
    for name in ("team-a", "team-b"):
        plane.create_namespace(name)
    for policy in POLICIES:
        plane.apply_yaml(policy.read_text(encoding="utf-8"))
    return plane


@pytest.fixture(scope="module")
def replayer(plane: ControlPlane) -> Iterator[Replayer]:
    """A client for which every policy is in force."""
    replayer = Replayer(plane)
    for policy in POLICIES:
        name, denied = f"{policy.stem.replace('_', '-')}.lockstep.dev", _telling(policy.stem)
        if denied is not None:
            plane.wait(f"{name} is in force", lambda d=denied, n=name: n in replayer.play(d).messages)  # type: ignore[misc]
    yield replayer
    replayer.close()


def _telling(stem: str) -> Subject | None:
    """Give a subject of a fixture about which the policy says something."""
    for file in FIXTURES:
        name = f"{stem}/{file.name}"
        if file.parent.name == stem and file.name.startswith("denied") and name not in REFUSED_BEFORE:
            return read_fixture(file.read_text(encoding="utf-8"), name).subjects[-1]
    return None


def test_policies_type_check(plane: ControlPlane, replayer: Replayer) -> None:  # noqa: ARG001 - has waited
    """The API server accepts every policy and finds nothing wrong with the types of its expressions."""

    def checked() -> dict[str, object]:
        items = json.loads(plane.kubectl("get", "validatingadmissionpolicies", "-o", "json"))["items"]
        assert all(item["status"]["observedGeneration"] for item in items)
        return {item["metadata"]["name"]: item["status"].get("typeChecking") for item in items}

    found = plane.wait("all types are checked", checked)
    assert found == {f"{policy.stem.replace('_', '-')}.lockstep.dev": {} for policy in POLICIES}


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_fixture_on_the_api_server(replayer: Replayer, file: Path) -> None:
    """The API server says what the fixture expects, word for word, and nothing else."""
    name = f"{file.parent.name}/{file.name}"
    fixture = read_fixture(file.read_text(encoding="utf-8"), name)
    answers = [replayer.play(subject) for subject in fixture.subjects]
    if name in REFUSED_BEFORE:
        assert not any(answer.accepted for answer in answers)
        return
    assert [answer.body for answer in answers if not answer.accepted] == []
    policy = f"{file.parent.name.replace('_', '-')}.lockstep.dev"
    assert [message for answer in answers for message in answer.messages.get(policy, [])] == list(fixture.expect)


def test_policies_are_few_files() -> None:
    """Every policy is one file with a policy and its binding, which warns and audits."""
    for policy in POLICIES:
        declared, binding = read_objects(policy.read_text(encoding="utf-8"), policy.name)
        assert declared.ref.name == binding.ref.name == f"{policy.stem.replace('_', '-')}.lockstep.dev"
        assert binding.content["spec"]["validationActions"] == ["Warn", "Audit"]
