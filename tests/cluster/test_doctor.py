"""`lockstep doctor` on a real API server: nothing on a sound installation, and each planted fault."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from lockstep.doctoring.rights import doctor_rights
from lockstep.main import main
from reconciler.rights import policy_rules
from schedulers.registry import all_providers
from tests.cluster.control_plane import Options
from tests.cluster.faults import FAULTS, Fault
from tests.cluster.install import Installation
from tests.cluster.sound import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import PlaneFactory


@pytest.fixture(scope="module")
def place(start_plane: PlaneFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A sound installation: the shipped manifests, three nodes, everything ready."""
    plane, folder = start_plane(Options()), tmp_path_factory.mktemp("doctor")
    plane.nodes.add(["n1", "n2", "n3"])
    with Installation(plane, folder) as installation:
        rendering = folder / "rendering.yaml"
        rendering.write_text(plane.kubectl("kustomize", str(installation.overlay())))
        sound = Place(plane, installation, rendering, folder)
        plane.wait("the installation is sound", sound.is_sound, 120, 1)
        yield sound


def exceptions_file(folder: Path, word: str) -> str:
    """Write a file of one exception that ends soon, or has ended."""
    last = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=3 if word == "soon" else -3)
    what = {"kind": "PodGroup", "namespace": "team-a", "name": "vllm-0"}
    one = {
        "id": "podgroup-minimum-positive",
        "object": what,
        "owner": "a@example.com",
        "reason": "a test",
        "expiry": str(last),
    }
    path = folder / f"{word}.json"
    head = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Exceptions"}
    path.write_text(json.dumps(head | {"exceptions": [one | {"expiry": str(last)}]}))
    return str(path)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.title for fault in FAULTS])
def test_a_planted_fault_is_found(place: Place, fault: Fault) -> None:
    """Each fault is found by its check, with why it matters and what to do; when it is mended, nothing is found."""
    arguments = [exceptions_file(place.folder, word) if word in ("soon", "past") else word for word in fault.arguments]

    def is_found() -> dict[str, Any]:
        code, report = place.examine(*arguments)
        matching = [each for each in report["findings"] if each["check"] == fault.check and fault.what in each["what"]]
        assert (code, bool(matching)) == (1, True), report["findings"]
        found: dict[str, Any] = matching[0]
        return found

    with fault.plant(place):
        found = place.plane.wait("it is found", is_found, 60, 0.5)
    assert found["why"]
    assert found["mend"]
    place.plane.wait("the installation is sound again", place.is_sound, 120, 0.5)


def test_it_only_looks(place: Place) -> None:
    """With the rights that are documented it sees everything, and its only writes are dry runs."""
    place.plane.access.grant("reader", policy_rules(doctor_rights(all_providers().values())))
    since = place.plane.audit.offset()
    code, report = place.examine(user="reader")
    assert (code, report["findings"]) == (0, [])
    assert "not looked at" not in report["facts"]
    writes = place.plane.audit.events(user="lockstep-reader", since=since, dry_runs=True)
    assert writes
    assert [event["requestURI"] for event in writes if not event["requestURI"].endswith("?dryRun=All")] == []
    place.plane.access.revoke("reader")


def test_a_user_without_rights_is_told_so(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a bug of ours, and no half report."""
    words = ["doctor", "--kubeconfig", str(place.plane.kubeconfig("stranger")), "--manifests", str(place.manifests)]
    assert main(words) == 4
    assert "must let us get and list" in capsys.readouterr().err
