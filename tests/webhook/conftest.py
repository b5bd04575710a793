"""One server for the tests of a module; what changes a server starts its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webhook.serving import Served, make_pair, running, write_pair


@pytest.fixture(scope="session")
def pair_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for loopback; not to be written to."""
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder, *make_pair())
    return folder


@pytest.fixture(scope="module")
def server(pair_folder: Path) -> Iterator[Served]:
    """The real `lockstep serve`."""
    with running(pair_folder, "--drain-seconds", "0") as served:
        yield served
