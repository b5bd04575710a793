"""The image, made once by the commands of the Dockerfile."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.building import ROOT, Built, build
from tests.image.dockerfile import Dockerfile, read
from tests.image.sandbox import Sandbox


@pytest.fixture(scope="session")
def dockerfile() -> Dockerfile:
    """The Dockerfile."""
    return read(ROOT / "Dockerfile")


@pytest.fixture(scope="session")
def built(dockerfile: Dockerfile) -> Iterator[Built]:
    """What the build stage makes."""
    # Not pytest's own folder: that one is closed to the user who is to run the image.
    folder = Path(tempfile.mkdtemp(prefix="lockstep-image-"))
    folder.chmod(0o755)
    yield build(dockerfile, folder)
    shutil.rmtree(folder)


@pytest.fixture
def sandbox(dockerfile: Dockerfile, built: Built) -> Sandbox:
    """The image, to run commands in."""
    return Sandbox(built.image, dockerfile.stages[-1])
