"""`lockstep certs init`: the files it writes, and those it leaves alone."""

import stat
from pathlib import Path

import pytest
from cryptography import x509

from lockstep.main import main


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_writes_three_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Authority, certificate and key, the key for its owner alone; each is named on standard output."""
    folder = tmp_path / "new" / "certs"
    assert main(["certs", "init", str(folder)]) == 0
    assert sorted(_files(folder)) == ["ca.crt", "tls.crt", "tls.key"]
    assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o600
    assert capsys.readouterr().out.split() == [f"{folder}/{name}" for name in ("ca.crt", "tls.crt", "tls.key")]


def test_the_authoritys_key_is_kept_only_when_asked(tmp_path: Path) -> None:
    """Without its key nobody can sign with the authority again; with it, it is as private as the leaf's."""
    assert main(["certs", "init", str(tmp_path), "--keep-ca-key"]) == 0
    assert sorted(_files(tmp_path)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600


def test_hosts(tmp_path: Path) -> None:
    """Loopback is always in the certificate, further hosts come after it."""
    assert main(["certs", "init", str(tmp_path), "--host", "lockstep.lockstep-system.svc", "--host", "10.0.0.1"]) == 0
    certificate = x509.load_pem_x509_certificate((tmp_path / "tls.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = ["localhost", "127.0.0.1", "::1", "lockstep.lockstep-system.svc", "10.0.0.1"]
    assert [str(name.value) for name in names] == hosts


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file in the way stops it before it writes any; --force replaces all."""
    (tmp_path / "tls.crt").write_text("mine")
    assert main(["certs", "init", str(tmp_path)]) == 4
    assert _files(tmp_path) == {"tls.crt": b"mine"}
    assert capsys.readouterr().err == f"{tmp_path}/tls.crt: must not exist without --force\n"
    assert main(["certs", "init", str(tmp_path), "--force"]) == 0
    assert b"BEGIN CERTIFICATE" in (tmp_path / "tls.crt").read_bytes()
    assert sorted(_files(tmp_path)) == ["ca.crt", "tls.crt", "tls.key"]


def test_a_bad_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A host that is none: 4, no files."""
    assert main(["certs", "init", str(tmp_path), "--host", "not a host"]) == 4
    assert capsys.readouterr().err == 'host: must be a DNS name in lower case or an IP address, got "not a host"\n'
    assert _files(tmp_path) == {}


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder should be: 4 and the reason."""
    (tmp_path / "file").write_text("")
    assert main(["certs", "init", str(tmp_path / "file" / "x")]) == 4
    assert "Not a directory" in capsys.readouterr().err


def test_an_unknown_action() -> None:
    """Wrong usage: 2."""
    with pytest.raises(SystemExit) as stopped:
        main(["certs", "burn"])
    assert stopped.value.code == 2
