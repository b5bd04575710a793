"""`lockstep certs status`: what it shows of an installation, and its exit codes."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep.certs_status import report_on, write_text
from lockstep.main import main
from reconciler.certificate_objects import read_cluster
from tests.reconciler.fake_api import Answer, InProcess, kubeconfig, status
from tests.reconciler.installed import NAMES, Installation


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation of a moment ago, on a port."""
    made = Installation()
    made.now = dt.datetime.now(dt.UTC)
    made.keeper().look()
    made.fake.start()
    yield made
    made.fake.stop()


def _status(installation: Installation, folder: Path, *options: str) -> int:
    return main(["certs", "status", "--kubeconfig", str(kubeconfig(folder, installation.fake)), *options])


def test_all_is_well(installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0; both chains with their ages, who signed whom, both configurations, the next step with its time and reason."""
    assert _status(installation, tmp_path, "--output", "json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    stored = installation.sight.stored
    assert [(one["role"], one["serial"], one["signedBy"]) for one in told["certificates"]] == [
        ("leaf", f"{stored.leaf.held.certificate.serial_number:x}", "current"),
        ("current", f"{stored.current.held.certificate.serial_number:x}", "current"),
        ("next", f"{stored.next.held.certificate.serial_number:x}", "next"),
    ]
    assert all(0 <= one["ageSeconds"] < 600 and not one["problem"] for one in told["certificates"])
    assert told["configurations"] == [
        {
            "resource": "mutatingwebhookconfigurations",
            "name": "lockstep-mutating",
            "exists": True,
            "entries": 2,
            "inStep": 2,
        },
        {
            "resource": "validatingwebhookconfigurations",
            "name": "lockstep-policies",
            "exists": True,
            "entries": 2,
            "inStep": 2,
        },
    ]
    due = stored.leaf.held.certificate.not_valid_before_utc + dt.timedelta(days=20)
    assert abs(dt.datetime.fromisoformat(told["next"]["at"]) - due) < dt.timedelta(minutes=10)
    assert (told["next"]["step"], told["next"]["reason"]) == ("LeafRenewed", "the leaf is young enough")
    assert told["last"]["lockstep-tls"].endswith(" LeafRenewed: leaf is missing")
    assert told["findings"] == []


def test_as_text() -> None:
    """For people: one line a certificate, one a configuration, then what was last done and what comes next."""
    installation = Installation()
    installation.keeper().look()
    installation.live(240)
    installation.advance(days=5)
    installation.keeper().look()
    installation.advance(minutes=90)
    cluster = read_cluster(InProcess(installation.fake), NAMES)
    lines = write_text(report_on(cluster, NAMES, installation.now), installation.now).splitlines()
    stored = installation.sight.stored
    leaf, gone = stored.leaf.held.certificate, stored.retired[0].certificate
    assert lines[0].split() == ["ROLE", "SERIAL", "SIGNED", "BY", "AGE", "ENDS", "IN", "DUE", "STATE"]
    serial = f"{leaf.serial_number:x}"[:16]
    assert lines[1].split() == [
        "leaf",
        serial,
        "current",
        "1",
        "h",
        "30",
        "min",
        "30",
        "d",
        lines[1].split()[-2],
        "fine",
    ]
    assert [line.split()[0] for line in lines[1:5]] == ["leaf", "current", "next", "previous"]
    assert lines[4].split()[1] == f"{gone.serial_number:x}"[:16]
    assert lines[5:7] == [
        "mutatingwebhookconfigurations lockstep-mutating: 2 of 2 entries have the bundle",
        "validatingwebhookconfigurations lockstep-policies: 2 of 2 entries have the bundle",
    ]
    last = [line.split(": ", 2) for line in lines[7:9]]
    assert [(word, name, rest.split(" ")[1]) for word, name, rest in last] == [
        ("last", "lockstep-tls", "LeafRenewed:"),
        ("last", "lockstep-ca", "NextAuthorityPublished:"),
    ]
    assert lines[9].startswith("next: LeafRenewed at 2027-08-")
    assert len(lines) == 10


def test_findings(installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1, and a line for each thing that is amiss: a damaged key, and an entry without the bundle."""
    installation.put(NAMES.leaf, tls_key=b"cut off")
    installation.set_bundles(b"")
    assert _status(installation, tmp_path) == 1
    why = "must be an unencrypted PEM key, got something that can't be parsed"
    lines = capsys.readouterr().out.splitlines()
    assert "mutatingwebhookconfigurations lockstep-mutating: 0 of 2 entries have the bundle" in lines
    assert [line for line in lines if line.startswith("finding: ")] == [
        f"finding: leaf: key: {why}",
        "finding: BundlePublished: must be done, 2 of 4 webhook entries have another bundle",
    ]
    assert any(line.startswith("next: BundlePublished now: ") for line in lines)


def test_before_the_first_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty Secrets: 1, what is missing, and what would be done."""
    installation = Installation()
    installation.fake.start()
    assert _status(installation, tmp_path) == 1
    installation.fake.stop()
    out = capsys.readouterr().out
    assert "leaf     -       -          -    -        -    is missing" in out
    assert "next: AuthorityMade now: current is missing, next is missing\n" in out


def test_someone_elses_secret(installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1: who else keeps it is said."""
    installation.put(NAMES.leaf, {"cert-manager.io/certificate-name": "lockstep"})
    assert _status(installation, tmp_path) == 1
    text = (
        "finding: secret lockstep-system/lockstep-tls: must be empty or written by lockstep, got one that cert-manager"
    )
    assert text in capsys.readouterr().out


def test_without_the_right(installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4, and what must be allowed."""
    answer = Answer(403, json.dumps(status(403, "Forbidden", "no")).encode())
    installation.fake.fault(lambda seen: "lockstep-ca" in seen.path, answer)
    assert _status(installation, tmp_path) == 4
    assert capsys.readouterr().err == (
        "api server: must let us get both secrets and both configurations, got 403 Forbidden: no\n"
    )


def test_not_reachable(installation: Installation, tmp_path: Path) -> None:
    """3."""
    installation.fake.stop()
    assert _status(installation, tmp_path) == 3


def test_a_bad_host(installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2: the host is named."""
    assert _status(installation, tmp_path, "--certificate-host", "not a host") == 2
    assert capsys.readouterr().err == 'host: must be a DNS name in lower case or an IP address, got "not a host"\n'


def test_it_only_looks(installation: Installation, tmp_path: Path) -> None:
    """It gets four objects and nothing else."""
    before = len(installation.fake.requests)
    _status(installation, tmp_path)
    assert [seen.method for seen in installation.fake.requests[before:]] == ["GET"] * 4
