"""Runs the build stage of the Dockerfile without a registry: the same commands, in an empty directory.

The commands see a file system of their own (bubblewrap): this machine's Python, compiler-free system and package index
settings to read, and nothing of the project but what COPY gives them.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.image.dockerfile import Dockerfile, Stage, expanded

ROOT: Final = Path(__file__).parent.parent.parent
SYSTEM: Final = ("/usr", "/etc", "/var/lib/dpkg", "/opt/wheels")
LINKS: Final = ("/bin", "/sbin", "/lib", "/lib64")
INHERITED: Final = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
LONGEST_STEP: Final = 400.0


class StepFailed(Exception):  # noqa: N818 - reads as what happened
    """A command of the build stage failed; str() holds it and its last words."""


@dataclass(frozen=True)
class Built:
    """What a build left.

    Attributes:
        folder: where it ran.
        image: the folder that the last stage copies.
    """

    folder: Path

    @property
    def image(self) -> Path:
        """The assembled file system."""
        return self.folder / "image"

    @property
    def sources(self) -> Path:
        """The working directory of the build stage, with what was copied into it."""
        return self.folder / "build"

    @property
    def wheels(self) -> Path:
        """The wheels that were downloaded and built."""
        return self.sources / "wheels"


def build(dockerfile: Dockerfile, folder: Path, *, base: str | None = None) -> Built:
    """Run every step of the build stage in `folder`.

    Raises:
        StepFailed: a command failed.
    """
    stage = next(stage for stage in dockerfile.stages if stage.name == "build")
    arguments = dockerfile.arguments | ({} if base is None else {"BASE": base})
    # An ARG without a value takes the one from before the first stage.
    values = {name: value or arguments[name] for name, value in stage.settings("ARG").items()}
    for name in ("build", "opt", "image"):
        (folder / name).mkdir(parents=True)
    for word, text in stage.steps:
        if word == "COPY":
            _copy(text, folder / stage.one("WORKDIR").lstrip("/"))
        if word == "RUN":
            run(text, stage, values, folder)
    return Built(folder)


def run(command: str, stage: Stage, values: dict[str, str], folder: Path) -> None:
    """Run one command as `docker build` does: by a shell, in the working directory, as root."""
    environment = {name: expanded(value, values) for name, value in stage.settings().items()} | values
    words = [*_sandbox(folder, environment), "--chdir", stage.one("WORKDIR"), "/bin/sh", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST_STEP)
    if done.returncode:
        raise StepFailed(f"{command}\n{(done.stdout + done.stderr)[-3000:]}")


def _copy(text: str, folder: Path) -> None:
    source, target = text.split(" ")
    if (ROOT / source).is_dir():
        shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(ROOT / source, folder / target)


def _sandbox(folder: Path, environment: dict[str, str]) -> list[str]:
    python = Path(sys.base_prefix)
    words = [
        "bwrap",
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-user",
        "--uid",
        "0",
        "--gid",
        "0",
        "--tmpfs",
        "/",
    ]
    for path in SYSTEM:
        words += ["--ro-bind-try", path, path]
    for path in LINKS:
        link = Path(path)
        words += ["--symlink", str(link.readlink()), path] if link.is_symlink() else ["--ro-bind-try", path, path]
    if not python.is_relative_to("/usr"):
        words += ["--ro-bind", str(python), str(python)]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - its own
    for name, where in (("build", "/build"), ("opt", "/opt"), ("image", "/image")):
        words += ["--bind", str(folder / name), where]
    inherited = {
        name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()
    }
    settings = {"PATH": f"{python / 'bin'}:/usr/bin:/bin", "HOME": "/tmp"} | inherited | environment  # noqa: S108
    words.append("--clearenv")
    for name, value in settings.items():
        words += ["--setenv", name, value]
    return words
