"""The command `lockstep` as a whole: which command, which exit code, and what is imported for it."""

import argparse
import subprocess
import sys
from types import ModuleType

import pytest

from lockstep import main as entry


def _command(monkeypatch: pytest.MonkeyPatch, run: object) -> None:
    """Put a command of this test in the place of `serve`."""
    module = ModuleType("lockstep.serve")
    module.__dict__.update(add_arguments=lambda parser: parser.add_argument("--n", type=int, default=0), run=run)
    monkeypatch.setitem(sys.modules, "lockstep.serve", module)


def test_a_command_gives_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command returns is the exit code, and it gets its own options."""
    _command(monkeypatch, lambda args: args.n)
    assert entry.main(["serve", "--n", "3"]) == 3


def test_a_bug_is_5(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An exception that nobody expected is shown whole and gives 5."""

    def fail(_: argparse.Namespace) -> int:
        raise KeyError("surprise")

    _command(monkeypatch, fail)
    assert entry.main(["serve"]) == 5
    assert "KeyError: 'surprise'" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends without a traceback."""

    def interrupt(_: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    _command(monkeypatch, interrupt)
    assert entry.main(["serve"]) == 130


@pytest.mark.parametrize(
    "words", [[], ["dance"], ["--nonsense"]], ids=["no command", "an unknown one", "an unknown option"]
)
def test_wrong_usage_is_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Words that make no sense give the usage and 2."""
    with pytest.raises(SystemExit) as stopped:
        entry.main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: lockstep ")


def test_help_names_every_command() -> None:
    """`python -m lockstep --help` lists the commands without importing one."""
    command = [sys.executable, "-X", "importtime", "-m", "lockstep", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    for name, summary in entry.COMMANDS.items():
        assert f"\n    {name}" in done.stdout
        assert summary.split()[0] in done.stdout
        assert f"lockstep.{name}\n" not in done.stderr
