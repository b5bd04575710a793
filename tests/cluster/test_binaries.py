"""Building: once per pin, atomically, with errors that say what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster import binaries as cache
from tests.cluster import toolchain
from tests.cluster.catalogue import COMPONENTS, Asset, Command, Component

_ROOT = Path(__file__).parents[2]
_MAIN = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def component(tmp_path: Path) -> Component:
    """A component that builds in no time."""
    folder = tmp_path / "modules" / "hello"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module example.test/hello\n\ngo 1.24.0\n")
    (folder / "go.sum").write_text("")
    (folder / "tools.go").write_text("//go:build tools\n\npackage tools\n")
    (folder / "cmd").mkdir()
    (folder / "cmd" / "main.go").write_text(_MAIN)
    command = Command("example.test/hello/cmd", "cmd", "hello")
    asset = Asset("crds/both.yaml", "example.test/hello", ("go.mod", "go.sum"))
    return Component("hello", (command,), (asset,), modules=tmp_path / "modules")


def test_built_once_and_found_again(component: Component, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two at once: one builds, both get the same folder, which holds the binary under our name and the assets."""
    root = tmp_path / "cache"
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: cache.ensure((component,), root), range(2))
    assert first == second
    assert capsys.readouterr().err.count("[1/1] hello: building") == 1
    assert sorted(str(path.relative_to(first)) for path in first.rglob("*")) == ["crds", "crds/both.yaml", "hello"]
    assert subprocess.run([first / "hello"], capture_output=True, check=True).stderr == b"hello\n"
    assert (first / "crds" / "both.yaml").read_text() == "module example.test/hello\n\ngo 1.24.0\n\n---\n"
    assert not list(root.glob("*.partial"))


def test_changed_pin_builds_anew(component: Component, tmp_path: Path) -> None:
    """Another go.sum is another folder; the first one stays."""
    first = cache.ensure((component,), tmp_path)
    (component.folder / "tools.go").write_text("//go:build tools\n\n// Package tools.\npackage tools\n")
    second = cache.ensure((component,), tmp_path)
    assert first != second
    assert (first / "hello").exists()


def test_same_pin_in_another_clone_is_found(component: Component, tmp_path: Path) -> None:
    """Where the clone lies does not matter."""
    first = cache.ensure((component,), tmp_path)
    moved = component.modules.rename(tmp_path / "moved")
    elsewhere = Component(component.name, component.commands, component.assets, modules=moved)
    assert cache.ensure((elsewhere,), tmp_path) == first


def test_tags_choose_files_and_build_anew(component: Component, tmp_path: Path) -> None:
    """Go build tags decide what comes out, so they are part of what a build is found by."""
    first = cache.ensure((component,), tmp_path)
    odd = '//go:build odd\n\npackage main\n\nfunc init() { println("odd") }\n'
    (component.folder / "cmd" / "odd.go").write_text(odd)
    tagged = cache.ensure((replace(component, tags="odd"),), tmp_path)
    assert tagged != first
    assert subprocess.run([tagged / "hello"], capture_output=True, check=True).stderr == b"odd\nhello\n"


def test_component_that_was_tidied_away_is_built_again(component: Component, tmp_path: Path) -> None:
    """A cache that somebody cleaned in part is made whole."""
    folder = cache.ensure((component,), tmp_path)
    shutil.rmtree((folder / "hello").resolve().parent)
    assert cache.ensure((component,), tmp_path) == folder
    assert (folder / "hello").exists()


def test_failure_shows_what_go_said(component: Component, tmp_path: Path) -> None:
    """A component that does not compile: the compiler's line in the message, nothing in the cache."""
    (component.folder / "cmd" / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(toolchain.BuildError, match=r"(?s)hello: go build failed with code 1:.*undefined: nonsense"):
        cache.ensure((component,), tmp_path)
    assert [path.name for path in tmp_path.glob("hello-*") if not path.name.endswith(".partial")] == []


def test_settings_of_the_user_do_not_break_the_build(
    component: Component, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GOFLAGS, GOTOOLCHAIN, GOOS, GOWORK and CGO_ENABLED of the environment change nothing."""
    odd = {"GOFLAGS": "-mod=vendor", "GOTOOLCHAIN": "go1.1", "GOOS": "plan9", "GOWORK": "none", "CGO_ENABLED": "1"}
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    built = cache.ensure((component,), tmp_path) / "hello"
    assert subprocess.run([built], capture_output=True, check=True).stderr == b"hello\n"


def test_missing_go_is_said(tmp_path: Path) -> None:
    """Without Go the message names the version that is needed and that Debian's is too old."""
    with pytest.raises(toolchain.BuildError, match=r"^go: must be on PATH, got nothing; install Go 1\.26 .*Debian"):
        toolchain.find(str(tmp_path), ())


def test_old_go_is_said(tmp_path: Path) -> None:
    """A Go that can't fetch itself a newer toolchain is refused with its version."""
    fake = tmp_path / "go"
    fake.write_text("#!/bin/sh\necho go1.19.8\n")
    fake.chmod(0o755)
    with pytest.raises(toolchain.BuildError, match=r'^go: must be 1\.26 or newer, got "1\.19" at '):
        toolchain.find(str(tmp_path), ())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"LOCKSTEP_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a", id="ours first"),
        pytest.param({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/lockstep", id="then the desktop's"),
        pytest.param({"HOME": "/c"}, "/c/.cache/lockstep", id="then the home folder"),
    ],
)
def test_cache_root(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str) -> None:
    """Where the cache is, by the environment."""
    for name in ("LOCKSTEP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.cache_root() == Path(expected)


def test_command_prints_the_folder_last(binaries: Path) -> None:
    """`python -m tests.cluster.build` prints the folder as the last line, with everything that is needed in it."""
    command = [sys.executable, "-m", "tests.cluster.build"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    folder = Path(done.stdout.splitlines()[-1])
    assert folder == binaries
    names = [command.name for component in COMPONENTS for command in component.commands]
    assert [name for name in names if not os.access(folder / name, os.X_OK)] == []
    stages = (folder / "kwok-stages.yaml").read_text()
    wanted = ["node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-complete", "pod-delete"]
    assert [name for name in wanted if f"name: {name}" not in stages] == []
    assets = [asset.name for component in COMPONENTS for asset in component.assets]
    assert [name for name in assets if not (folder / name).stat().st_size] == []
