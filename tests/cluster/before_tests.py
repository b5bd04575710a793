"""Builds what a test run needs before its first test: a cold build takes longer than any test may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster import binaries as cache
from tests.cluster import toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.catalogue import Component

_BINARIES = pytest.StashKey["Path | toolchain.BuildError"]()


def build(session: pytest.Session, components: tuple[Component, ...]) -> None:
    """Build what is missing and keep its folder, or what went wrong, for `built_folder`."""
    if session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            session.config.stash[_BINARIES] = cache.ensure(components)
        except toolchain.BuildError as error:
            session.config.stash[_BINARIES] = error


def built_folder(config: pytest.Config) -> Path:
    """Give the folder of the binaries; fails the test where one can't be built."""
    built = config.stash[_BINARIES]
    if isinstance(built, toolchain.BuildError):
        pytest.fail(str(built), pytrace=False)
    return built
