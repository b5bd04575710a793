"""One policy service for the tests of a module, as a real process over TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.policies.service.processes import running_service
from tests.webhook.serving import Served, make_pair, write_pair


@pytest.fixture(scope="session")
def pair_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for loopback; not to be written to."""
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder, *make_pair())
    return folder


@pytest.fixture(scope="module")
def service(pair_folder: Path) -> Iterator[Served]:
    """The real `lockstep policy`."""
    with running_service(pair_folder) as served:
        yield served
