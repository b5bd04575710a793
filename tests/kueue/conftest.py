"""A control plane with Kueue. Run by `make test-kueue` alone: building Kueue takes as long as half of all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster import binaries as cache
from tests.cluster import toolchain
from tests.cluster.catalogue import KUEUE
from tests.cluster.control_plane import ControlPlane
from tests.kueue.installation import Kueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BINARIES = pytest.StashKey["Path | toolchain.BuildError"]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: a cold build takes longer than any test may."""
    if session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            session.config.stash[_BINARIES] = cache.ensure(KUEUE)
        except toolchain.BuildError as error:
            session.config.stash[_BINARIES] = error


@pytest.fixture(scope="session")
def binaries(pytestconfig: pytest.Config) -> Path:
    """Folder of the binaries; fails where one can't be built."""
    built = pytestconfig.stash[_BINARIES]
    if isinstance(built, toolchain.BuildError):
        pytest.fail(str(built), pytrace=False)
    return built


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
