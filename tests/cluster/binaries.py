"""Build the real control plane's binaries where they are missing, each component once per machine.

A component is cached by a hash of everything that decides what comes out, so a changed pin builds anew and an old clone
keeps finding its own. Several processes may ask at once: one builds, the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import toolchain
from tests.cluster.catalogue import COMPONENTS, Component

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECIPE = "1"
"""Raise when this module builds something else out of the same inputs."""

_FILES = ("go.*", "*.go")


def cache_root() -> Path:
    """Where binaries are kept: $LOCKSTEP_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("LOCKSTEP_CACHE"):
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lockstep"


def ensure(components: tuple[Component, ...] = COMPONENTS, cache: Path | None = None) -> Path:
    """Build what is missing and return the folder that holds all binaries, CRDs and stages.

    Raises:
        toolchain.BuildError: Go is missing or too old, or a component does not build.
    """
    root = cache or cache_root()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"cluster-{_digest(*(_key(component) for component in components))}"
    if _intact(folder):
        return folder
    with _locked(root):
        built = [_ensure_one(component, root, f"[{i}/{len(components)}]") for i, component in enumerate(components, 1)]
        if not _intact(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _link(built, folder)
    return folder


def _intact(folder: Path) -> bool:
    # Links that lead nowhere: somebody tidied a component away.
    return folder.is_dir() and all(path.exists() for path in folder.rglob("*"))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _key(component: Component) -> str:
    files = (path.read_text() for pattern in _FILES for path in sorted(component.folder.glob(pattern)))
    tags = [component.tags] if component.tags else []
    return f"{component.name}-{_digest(_RECIPE, platform.system(), platform.machine(), repr(component), *tags, *files)}"


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    with (root / "build.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            toolchain.say("another process is building; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ensure_one(component: Component, root: Path, place: str) -> Path:
    done = root / _key(component)
    title = f"{place} {component.name}"
    if done.is_dir():
        toolchain.say(f"{title}: there")
        return done
    started = time.monotonic()
    toolchain.say(f"{title}: building")
    half_done = done.with_name(f"{done.name}.partial")
    shutil.rmtree(half_done, ignore_errors=True)
    half_done.mkdir()
    _build(component, half_done, title)
    half_done.rename(done)
    toolchain.say(f"{title}: built in {time.monotonic() - started:.0f} s")
    return done


def _build(component: Component, folder: Path, title: str) -> None:
    packages = [command.package for command in component.commands]
    flags = ["-v", "-trimpath", "-p", str(toolchain.cores()), "-tags", component.tags, "-ldflags", component.ldflags]
    toolchain.run(["build", *flags, "-o", f"{folder}/", *packages], component.folder, folder / "build.log", title)
    for command in component.commands:
        (folder / command.built_as).rename(folder / command.name)
    for asset in component.assets:
        source = toolchain.module_folder(component.folder, asset.module)
        target = folder / asset.name
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n---\n".join((source / name).read_text() for name in asset.documents))


def _link(built: list[Path], folder: Path) -> None:
    half_done = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(half_done, ignore_errors=True)
    for component in built:
        for path in component.rglob("*"):
            if path.is_file() and path.name != "build.log":
                link = half_done / path.relative_to(component)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
    half_done.rename(folder)
