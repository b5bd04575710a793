"""The image, made once by the commands of the Dockerfile."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.building import ROOT, Built, build
from tests.image.dockerfile import Dockerfile, read
from tests.image.sandbox import Sandbox

MEMORY = Path("/dev/shm")  # noqa: S108
NEEDED = 4 << 30


@pytest.fixture(scope="session")
def dockerfile() -> Dockerfile:
    """The Dockerfile."""
    return read(ROOT / "Dockerfile")


@pytest.fixture(scope="session")
def built(dockerfile: Dockerfile) -> Iterator[Built]:
    """What the build stage makes."""
    # Not pytest's own folder: that one is closed to the user who is to run the image.
    folder = Path(tempfile.mkdtemp(prefix="lockstep-image-", dir=_fast_folder()))
    folder.chmod(0o755)
    yield build(dockerfile, folder)
    shutil.rmtree(folder)


def _fast_folder() -> str | None:
    """Memory where there is enough of it and programs may run there: the build writes some ten thousand small files."""
    if not MEMORY.exists() or shutil.disk_usage(MEMORY).free < NEEDED:
        return None
    return None if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC else str(MEMORY)


@pytest.fixture
def sandbox(dockerfile: Dockerfile, built: Built) -> Sandbox:
    """The image, to run commands in."""
    return Sandbox(built.image, dockerfile.stages[-1])
