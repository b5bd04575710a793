"""A control plane with Kueue. Run by `make test-kueue` alone: building Kueue takes as long as half of all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.before_tests import build, built_folder
from tests.cluster.catalogue import KUEUE
from tests.cluster.control_plane import ControlPlane
from tests.kueue.installation import Kueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test."""
    build(session, KUEUE)


@pytest.fixture(scope="session")
def binaries(pytestconfig: pytest.Config) -> Path:
    """Folder of the binaries; fails where one can't be built."""
    return built_folder(pytestconfig)


@pytest.fixture(scope="module")
def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Native gang scheduling, LWS, kwok, kube-scheduler."""
    with ControlPlane(binaries, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture(scope="module")
def kueue(plane: ControlPlane) -> Iterator[Kueue]:
    """Kueue beside it."""
    with Kueue(plane) as running:
        yield running
