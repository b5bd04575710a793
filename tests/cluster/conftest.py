"""Real control planes for tests: binaries once per machine, one control plane per test module."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.before_tests import build, built_folder
from tests.cluster.catalogue import COMPONENTS
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.lockstep import Lockstep
from tests.cluster.scenarios import EVERY_SCHEDULER
from tests.cluster.waiting import WaitError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything that asks for binaries."""
    for item in items:
        if "binaries" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test."""
    if any("binaries" in getattr(item, "fixturenames", ()) for item in session.items):
        build(session, COMPONENTS)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Below a failure, print the last log lines of the control planes that the test used."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    used = {id(value): value for value in getattr(item, "funcargs", {}).values()}
    # A failed wait has its control plane's lines in its message.
    told = call.excinfo is not None and call.excinfo.errisinstance(WaitError)
    for value in used.values():
        if isinstance(value, ControlPlane) and not told:
            report.sections.append((f"control plane in {value.folder.name}", value.report()))
        if isinstance(value, Lockstep):
            report.sections.append(("Lockstep's processes", value.report()))


@pytest.fixture(scope="session")
def binaries(pytestconfig: pytest.Config) -> Path:
    """Folder of the binaries; fails where one can't be built."""
    return built_folder(pytestconfig)


@pytest.fixture(scope="module")
def start_plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaneFactory]:
    """A function that starts a control plane with the options given; all are stopped at the module's end."""
    started: list[ControlPlane] = []

    def start(options: Options) -> ControlPlane:
        plane = ControlPlane(binaries, tmp_path_factory.mktemp("plane"), options)
        started.append(plane)
        plane.up()
        return plane

    yield start
    for plane in reversed(started):
        plane.down()


@pytest.fixture(scope="module")
def control_plane(start_plane: PlaneFactory) -> ControlPlane:
    """Native gang scheduling, LWS, kwok, kube-scheduler."""
    return start_plane(Options())


@pytest.fixture(scope="module")
def coscheduling_plane(start_plane: PlaneFactory) -> ControlPlane:
    """The same with the kinds and the scheduler of scheduler-plugins."""
    return start_plane(Options(coscheduling=True))


@pytest.fixture(scope="module")
def lockstep(coscheduling_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lockstep]:
    """Lockstep beside `coscheduling_plane` for all tests of a module."""
    with Lockstep(coscheduling_plane, tmp_path_factory.mktemp("lockstep")) as running:
        yield running


@pytest.fixture(scope="module")
def crowded_plane(start_plane: PlaneFactory) -> ControlPlane:
    """Every scheduler side by side."""
    return start_plane(EVERY_SCHEDULER)


@pytest.fixture(scope="module")
def crowded_lockstep(crowded_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lockstep]:
    """Lockstep beside `crowded_plane` for all tests of a module."""
    with Lockstep(crowded_plane, tmp_path_factory.mktemp("lockstep")) as running:
        yield running


@pytest.fixture
def run_lockstep(tmp_path: Path) -> Iterator[LockstepFactory]:
    """A function that runs Lockstep beside a control plane until the test's end."""
    with contextlib.ExitStack() as running:

        def run(plane: ControlPlane, *, configuration: dict[str, object] | None = None) -> Lockstep:
            folder = tmp_path / f"lockstep-{len(list(tmp_path.iterdir()))}"
            return running.enter_context(Lockstep(plane, folder, configuration=configuration))

        yield run
