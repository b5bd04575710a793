"""A server that is there before its certificate: a fresh installation (case C15)."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep.main import main
from tests.builders import leader_pod, review
from tests.webhook.serving import LOCAL, eventually, make_pair, readiness, running, write_pair

NAME = "lockstep-webhook.lockstep-system.svc"
AWAITING = ("--await-certificate", "--server-name", NAME, "--drain-seconds", "0")


def _swap(volume: Path, name: str) -> None:
    """Point a mounted Secret at a new folder, as the kubelet does."""
    (volume / "..fresh").symlink_to(name)
    (volume / "..fresh").rename(volume / "..data")


def test_c15_ready_without_a_restart_once_there_is_a_certificate(tmp_path: Path) -> None:
    """C15: an empty Secret is mounted: not ready, no crash; filled, it is ready within 5 s, in the same process."""
    (tmp_path / "..empty").mkdir()
    _swap(tmp_path, "..empty")
    with running(tmp_path, *AWAITING) as served:
        answer = readiness(served)
        assert answer.status == 503
        assert answer.body.decode() == f"{tmp_path}/tls.crt: must be readable, no such file or directory\n"
        write_pair(tmp_path / "..filled", *make_pair([*LOCAL, NAME]))
        for name in ("ca.crt", "tls.crt", "tls.key"):
            (tmp_path / name).symlink_to(f"..data/{name}")
        _swap(tmp_path, "..filled")
        assert eventually(lambda: readiness(served).status == 200)
        assert served.mutate(review(leader_pod())).status == 200
        assert served.process.poll() is None


def test_without_a_certificate_no_handshake_comes_about(tmp_path: Path) -> None:
    """Callers that come before the certificate are turned away at once and don't keep it from coming."""
    with running(tmp_path, *AWAITING) as served:
        context = ssl.create_default_context()
        with pytest.raises(ssl.SSLEOFError):
            context.wrap_socket(served.connect_plain(), server_hostname="localhost")
        write_pair(tmp_path, *make_pair([*LOCAL, NAME]))
        assert eventually(lambda: readiness(served).status == 200)


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        pytest.param(
            lambda folder: (folder / "tls.crt").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA"),
            '/tls.crt: must be a PEM certificate for the key "',
            id="the certificate is cut off",
        ),
        pytest.param(
            lambda folder: (folder / "tls.key").write_bytes(make_pair()[1].key_pem),
            "key values mismatch",
            id="the key is of another",
        ),
        pytest.param(
            lambda folder: (folder / "ca.crt").unlink(),
            "/ca.crt, no such file or directory",
            id="no authorities are published beside it",
        ),
        pytest.param(
            lambda folder: write_pair(folder, make_pair()[0], make_pair([*LOCAL, NAME])[1]),
            "unable to get local issuer certificate",
            id="the published authority signed nothing of it",
        ),
        pytest.param(
            lambda folder: write_pair(folder, *make_pair(LOCAL)),
            f"Hostname mismatch, certificate is not valid for '{NAME}'",
            id="the Service's name is not in it",
        ),
    ],
)
def test_what_it_finds_broken_it_waits_out(tmp_path: Path, break_it: Callable[[Path], object], reason: str) -> None:
    """Whatever is wrong at the start, the reason stands in /readyz, and whole files end it without a restart."""
    write_pair(tmp_path, *make_pair([*LOCAL, NAME]))
    break_it(tmp_path)
    with running(tmp_path, *AWAITING) as served:
        answer = readiness(served)
        assert (answer.status, reason in answer.body.decode()) == (503, True)
        write_pair(tmp_path, *make_pair([*LOCAL, NAME]))
        assert eventually(lambda: readiness(served).status == 200)


def test_without_the_option_a_missing_certificate_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who starts it by hand learns of a wrong path at once."""
    files = ["--cert", str(tmp_path / "tls.crt"), "--key", str(tmp_path / "tls.key")]
    for command in ("serve", "policy"):
        assert main([command, "--addr", "127.0.0.1:0", *files]) == 4
        assert capsys.readouterr().err == f"{tmp_path}/tls.crt: must be readable, no such file or directory\n"


def test_the_policy_service_waits_too(tmp_path: Path) -> None:
    """The policy service begins without a certificate and is ready when there is one."""
    options = ("--await-certificate", "--server-name", NAME, "--drain-seconds", "0")
    with running(tmp_path, *options, command=("-m", "lockstep", "policy")) as served:
        assert readiness(served).status == 503
        write_pair(tmp_path, *make_pair([*LOCAL, NAME]))
        assert eventually(lambda: readiness(served).status == 200, 10.0)
