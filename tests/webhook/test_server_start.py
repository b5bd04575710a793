"""What `lockstep serve` says when it cannot start, and with which exit code."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webhook.serving import make_pair, write_pair


def _serve(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "lockstep", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == ""
    return done.returncode, done.stderr


def _files(folder: Path) -> list[str]:
    return ["--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key")]


def test_a_missing_certificate(tmp_path: Path) -> None:
    """No certificate: 4, and which file."""
    code, said = _serve("--addr", "127.0.0.1:0", *_files(tmp_path))
    assert (code, said) == (4, f"{tmp_path}/tls.crt: must be readable, no such file or directory\n")


def test_a_missing_key(tmp_path: Path) -> None:
    """No key: 4, and which file."""
    write_pair(tmp_path, *make_pair())
    (tmp_path / "tls.key").unlink()
    code, said = _serve("--addr", "127.0.0.1:0", *_files(tmp_path))
    assert (code, said) == (4, f"{tmp_path}/tls.key: must be readable, no such file or directory\n")


def test_a_folder_for_a_certificate(tmp_path: Path) -> None:
    """Not a file: 4."""
    (tmp_path / "tls.crt").mkdir()
    code, said = _serve("--addr", "127.0.0.1:0", *_files(tmp_path))
    assert (code, said) == (4, f"{tmp_path}/tls.crt: must be readable, is a directory\n")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        pytest.param("tls.crt", b"", "one of them is not PEM", id="empty certificate"),
        pytest.param("tls.crt", b"not PEM at all\n", "one of them is not PEM", id="certificate that is no PEM"),
        pytest.param("tls.key", b"", "one of them is not PEM", id="empty key"),
        pytest.param("tls.crt", b"#" * 65537, "must be at most 65536 bytes, got 65537", id="a file too large"),
    ],
)
def test_files_that_are_no_pair(tmp_path: Path, file: str, content: bytes, said: str) -> None:
    """Files that hold no certificate or key: 4, and why."""
    write_pair(tmp_path, *make_pair())
    (tmp_path / file).write_bytes(content)
    code, words = _serve("--addr", "127.0.0.1:0", *_files(tmp_path))
    assert code == 4
    assert words.startswith(f"{tmp_path}/tls.crt: must be ")
    assert said in words
    assert words.count("\n") == 1


def test_the_key_of_another_certificate(tmp_path: Path) -> None:
    """Two files that are no pair: 4."""
    write_pair(tmp_path, *make_pair())
    (tmp_path / "tls.key").write_bytes(make_pair()[1].key_pem)
    code, said = _serve("--addr", "127.0.0.1:0", *_files(tmp_path))
    assert code == 4
    assert said == (
        f'{tmp_path}/tls.crt: must be a PEM certificate for the key "{tmp_path}/tls.key", key values mismatch\n'
    )


def test_an_encrypted_key_does_not_ask_the_terminal(tmp_path: Path) -> None:
    """A key with a password: 4, at once."""
    write_pair(tmp_path, *make_pair())
    plain, key = str(tmp_path / "tls.key"), str(tmp_path / "sealed.key")
    command = ["openssl", "ec", "-in", plain, "-aes128", "-passout", "pass:x", "-out", key]
    subprocess.run(command, check=True, capture_output=True)
    code, _ = _serve("--addr", "127.0.0.1:0", "--cert", str(tmp_path / "tls.crt"), "--key", key)
    assert code == 4


def test_a_port_in_use(pair_folder: Path) -> None:
    """An address that someone else has: 3, at once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addr = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = _serve("--addr", addr, *_files(pair_folder))
        assert (code, said) == (3, f"{addr}: must be free to listen on, address already in use\n")


def test_a_metrics_port_in_use(pair_folder: Path) -> None:
    """The same for the metrics' address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addr = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = _serve("--addr", "127.0.0.1:0", "--metrics-addr", addr, *_files(pair_folder))
        assert (code, said) == (3, f"{addr}: must be free to listen on, address already in use\n")


def test_an_address_of_another_machine(pair_folder: Path) -> None:
    """An address that is not ours: 3."""
    code, said = _serve("--addr", "192.0.2.1:8443", *_files(pair_folder))
    assert (code, said) == (3, "192.0.2.1:8443: must be free to listen on, cannot assign requested address\n")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--addr", "8443"], id="a port alone"),
        pytest.param(["--addr", "host:port"], id="a port that is no number"),
        pytest.param(["--addr", "127.0.0.1:65536"], id="a port too large"),
        pytest.param(["--addr", "::1:8443"], id="IPv6 without brackets"),
        pytest.param(["--drain-seconds", "-1"], id="a drain below zero"),
        pytest.param(["--workers", "0"], id="no worker"),
        pytest.param(["--nonsense"], id="an unknown option"),
    ],
)
def test_wrong_usage(pair_folder: Path, arguments: list[str]) -> None:
    """Words that make no sense: 2, with the usage."""
    code, said = _serve(*_files(pair_folder), *arguments)
    assert code == 2
    assert said.startswith("usage: lockstep")


def test_a_bad_configuration(pair_folder: Path, tmp_path: Path) -> None:
    """A configuration with mistakes: 4, and every mistake."""
    file = tmp_path / "lockstep.yaml"
    file.write_text("apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\nsurprise: 1\n")
    code, said = _serve("--addr", "127.0.0.1:0", "--config", str(file), *_files(pair_folder))
    assert code == 4
    assert "surprise" in said
    assert "Traceback" not in said
