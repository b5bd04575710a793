"""Commands run against an API server over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.main import main
from tests.lockstep.stored import GROUPS, NODE, Command, put
from tests.reconciler.fake_api import FakeApi, kubeconfig


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    """An API server that serves the group kinds of two schedulers, with one node of 24 GPUs."""
    fake = FakeApi()
    fake.objects |= {root: {} for root in GROUPS.values()}
    put(fake, NODE)
    yield fake.start()
    fake.stop()


@pytest.fixture
def run_command(fake: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """A function that runs a command; gives exit code, output and error output."""
    file = str(kubeconfig(tmp_path, fake))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--kubeconfig", file])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run
