"""The Go toolchain: find it, run it, show that it is alive, explain its failures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

NEEDED = (1, 26)
"""What the pinned modules ask for in their `go` line."""

_FETCHES_TOOLCHAINS = (1, 21)
_HEARTBEAT = 10.0
_TAIL = 40
_USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")


class BuildError(Exception):
    """A component can't be built; the message says what to do or shows what Go said."""


def say(line: str) -> None:
    """Show progress. On stderr, because stdout carries the folder."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the command's output


def environment(go: str) -> dict[str, str]:
    """The environment for every Go command: the user's, less what could change what is built.

    GOPROXY and the caches stay the user's own.
    """
    kept = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH", "GOEXPERIMENT"}}
    toolchain = "local" if _version(go) >= NEEDED else "auto"
    flags = "-buildvcs=false -mod=readonly"
    return kept | {"CGO_ENABLED": "0", "GOFLAGS": flags, "GOTOOLCHAIN": toolchain, "GOWORK": "off", "GO111MODULE": "on"}


def find(path: str | None = None, usual: tuple[str, ...] = _USUAL_PLACES) -> str:
    """Path of a Go command that can build the components.

    Args:
        path: searched instead of $PATH.
        usual: where else to look; login shells alone have the official archive's folder on their PATH.

    Raises:
        BuildError: there is none, or it is too old to get itself a newer toolchain.
    """
    needed = ".".join(map(str, NEEDED))
    hint = f"install Go {needed} or newer (the golang package of Debian is too old for the pinned modules)"
    go = shutil.which("go", path=path) or next((place for place in usual if Path(place).exists()), None)
    if go is None:
        raise BuildError(f"go: must be on PATH, got nothing; {hint}")
    found = _version(go)
    if found < _FETCHES_TOOLCHAINS:
        raise BuildError(f'go: must be {needed} or newer, got "{".".join(map(str, found))}" at "{go}"; {hint}')
    return go


def _version(go: str) -> tuple[int, int]:
    asked = subprocess.run(
        [go, "env", "GOVERSION"],
        env=os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    match = re.search(r"go(\d+)\.(\d+)", asked.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def cores() -> int:
    """How many compilations may run at once: the cores this process may use."""
    return len(os.sched_getaffinity(0))


def run(arguments: list[str], folder: Path, log: Path, title: str) -> None:
    """Run one Go command in `folder`, its output to `log`, a line on stderr every ten seconds.

    Raises:
        BuildError: it failed; the message carries the last lines of its output.
    """
    go = find()
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen([go, *arguments], cwd=folder, env=environment(go), stdout=output, stderr=output)
        try:
            _watch(process, log, title, started)
        finally:
            _end(process)
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL:])
        raise BuildError(f"{title}: go {arguments[0]} failed with code {process.returncode}:\n{tail}")


def _watch(process: subprocess.Popen[bytes], log: Path, title: str, started: float) -> None:
    while True:
        try:
            process.wait(_HEARTBEAT)
        except subprocess.TimeoutExpired:
            # `go build -v` prints one line a package, once that package is compiled.
            packages = log.read_bytes().count(b"\n")
            say(f"{title}: {time.monotonic() - started:.0f} s, {packages} packages compiled")
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait()


def module_folder(component: Path, module: str) -> Path:
    """Where the module cache keeps the sources of `module` at the version that `component` pins.

    Raises:
        BuildError: Go could not fetch it.
    """
    if folder := _listed(component, module):
        return folder
    run(["mod", "download", module], component, Path(os.devnull), f"{component.name}: {module}")
    if folder := _listed(component, module):
        return folder
    raise BuildError(f'{component.name}: module "{module}" must be in the module cache, got nothing')


def _listed(component: Path, module: str) -> Path | None:
    go = find()
    command = [go, "list", "-m", "-f", "{{.Dir}}", module]
    asked = subprocess.run(command, cwd=component, env=environment(go), capture_output=True, text=True, check=False)
    return Path(asked.stdout.strip()) if asked.returncode == 0 and asked.stdout.strip() else None
