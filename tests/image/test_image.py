"""The image, without a registry: its build stage as it stands in the Dockerfile, and what comes of it at work."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.image.building import ROOT, Built, StepFailed, run
from tests.image.dockerfile import Dockerfile
from tests.image.sandbox import Sandbox
from tests.webhook.serving import Served, await_line, make_pair, write_pair

# The build downloads, compiles and copies some thousand files; the first test waits for it.
pytestmark = pytest.mark.timeout(1500)

LOCK = ROOT / "requirements.lock"
PINNED = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", re.MULTILINE)
BUILT_FROM_SOURCE = "gunicorn-h1c"
SHELLS = ("sh", "ash", "bash", "dash", "busybox", "pip", "pip3", "apt", "apt-get", "dpkg", "curl", "wget")
REVIEW = ROOT / "tests/data/reviews/mutate-create-vllm-leader.json"

WRITES = """
import os
for folder, _, _ in os.walk("/"):
    if folder.split("/")[1] in ("proc", "dev", "sys"):
        continue
    try:
        with open(os.path.join(folder, "written"), "w"):
            print(folder)
    except OSError:
        pass
"""
STATUS = "print(open('/proc/self/status').read())"
IMPORTS = """
import importlib, pkgutil, sys
for name in {packages}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
"""


def packages() -> list[str]:
    """What the wheel consists of."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found


def bill_of(built: Built) -> dict[str, Any]:
    """The bill of materials that is in the image."""
    bill: dict[str, Any] = json.loads((built.image / "opt/lockstep/sbom.cdx.json").read_text())
    return bill


@contextmanager
def serving(sandbox: Sandbox, folder: Path) -> Iterator[Served]:
    """`lockstep serve` in the image, on loopback."""
    write_pair(folder, *make_pair())
    for path in folder.iterdir():
        path.chmod(0o644)  # as the kubelet's fsGroup lets the user read
    log = folder / "log"
    mounted = dataclasses.replace(sandbox, mounts={"/run/tls": folder})
    words = mounted.command(
        *sandbox.stage.words("ENTRYPOINT"),
        *("serve", "--addr", "127.0.0.1:0", "--drain-seconds", "0"),
        *("--cert", "/run/tls/tls.crt", "--key", "/run/tls/tls.key"),
    )
    with log.open("wb") as output, subprocess.Popen(words, stdout=output, stderr=output) as process:
        try:
            port = int(await_line(log, "serving", process)["addr"].rpartition(":")[2])
            yield Served(process, log, folder, "127.0.0.1", port, 0)
        finally:
            process.kill()


def test_every_package_of_the_wheel_is_copied(dockerfile: Dockerfile) -> None:
    """A new top-level folder is not forgotten in the image."""
    copied = {text.split()[0] for text in dockerfile.stages[0].all("COPY")}
    assert set(packages()) <= copied


def test_every_base_is_pinned_by_digest(dockerfile: Dockerfile) -> None:
    """What is built today is built tomorrow."""
    assert re.search(r"@sha256:[0-9a-f]{64}$", dockerfile.stages[0].base)
    assert dockerfile.stages[-1].base == "scratch"


def test_a_base_without_a_digest_is_refused(dockerfile: Dockerfile, tmp_path: Path) -> None:
    """Whoever takes another base has to pin it too."""
    stage = dockerfile.stages[0]
    for name in ("build", "opt", "image"):
        (tmp_path / name).mkdir()
    with pytest.raises(StepFailed, match='BASE: must be pinned by digest, got "python:3'):
        run(stage.all("RUN")[0], stage, {"BASE": "python:3.11"}, tmp_path)


def test_what_builds_wheels_is_pinned_by_hash() -> None:
    """Nothing without a hash gets near the image, and the lock holds what is asked for."""
    text = (ROOT / "image/build.lock").read_text()
    pinned = dict(PINNED.findall(text))
    asked = re.findall(r"^([a-z]+)", (ROOT / "image/build.in").read_text(), re.MULTILINE)
    assert set(asked) <= set(pinned)
    assert len(re.split(r"\n(?=\S)", text)) == len(pinned)
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=\S)", text))


def test_wheels_for_the_other_architecture_exist(tmp_path: Path) -> None:
    """All but the one that is compiled in the build stage can be had for arm64, under the locked hashes."""
    blocks = re.split(r"\n(?=\S)", LOCK.read_text())
    rest = [block for block in blocks if not block.startswith(f"{BUILT_FROM_SOURCE}==")]
    assert len(rest) == len(blocks) - 1
    lock = tmp_path / "arm64.lock"
    lock.write_text("\n".join(rest))
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 28, 34)] + [
        "--platform=manylinux2014_aarch64"
    ]
    command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--require-hashes"]
    command += [
        "--only-binary=:all:",
        "--python-version=3.11",
        *platforms,
        f"--target={tmp_path / 'there'}",
        "-r",
        str(lock),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_last_stage_has_no_shell_and_no_package_manager(built: Built) -> None:
    """Whoever gets in finds nothing to work with."""
    names = {path.name for path in built.image.rglob("*") if not path.is_dir()}
    assert sorted(names & set(SHELLS)) == []
    assert not list(built.image.rglob("site-packages/pip"))


def test_every_module_of_ours_is_there_and_can_be_imported(sandbox: Sandbox, built: Built) -> None:
    """No library is missing, not even one that only a rare command needs."""
    names = packages()
    found = set(sandbox.python(IMPORTS.format(packages=names)).split())
    wanted = {
        ".".join(path.relative_to(built.sources).with_suffix("").parts)
        for name in names
        for path in (built.sources / name).rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }
    assert sorted(wanted - found) == []


def test_every_module_is_compiled(built: Built) -> None:
    """With a read-only root there is no second chance, and each start would compile again."""
    sources = list(built.image.rglob("*.py"))
    missing = [path for path in sources if not list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))]
    assert len(sources) > 1000
    assert missing == []


def test_it_runs_without_any_right(sandbox: Sandbox) -> None:
    """Not root, no capability, none to gain."""
    status = dict(line.split(":", 1) for line in sandbox.python(STATUS).splitlines() if ":" in line)
    assert status["Uid"].split() == [str(sandbox.user)] * 4
    assert sandbox.user >= 10000
    assert {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"


def test_nothing_can_be_written(sandbox: Sandbox) -> None:
    """The root is read-only, and no process of ours minds."""
    assert sandbox.python(WRITES).split() == []


def test_it_serves_over_tls_and_answers_a_review(sandbox: Sandbox, built: Built) -> None:
    """The entry point, with nothing but a mounted pair, is the webhook."""
    with serving(sandbox, built.folder / "tls") as served:
        answer = json.loads(served.mutate(REVIEW.read_bytes()).body)
        ready = served.ask("GET", "/readyz")
    assert answer["response"]["allowed"] is True
    assert answer["response"]["patchType"] == "JSONPatch"
    assert (ready.status, ready.body.strip()) == (200, b"ok")


def test_it_judges_manifests(sandbox: Sandbox) -> None:
    """The policy engine with its native code works in the image."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "labels": {"lockstep.dev/group": "other"}},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}},
    }
    done = sandbox.lockstep("review", "-", "--output", "json", text=json.dumps(group))
    assert done.returncode == 1, done.stderr
    assert {"podgroup-minimum-positive", "podgroup-labelled-with-its-name"} <= {
        finding["rule"] for finding in json.loads(done.stdout)["findings"]
    }


def test_the_bill_names_every_wheel_with_a_locked_hash(built: Built) -> None:
    """What was installed is what was locked, but for the two that are built here."""
    bill = bill_of(built)
    parts = [bill["metadata"]["component"], *bill["components"]]
    wheels = {part["name"].lower(): part for part in parts if part["purl"].startswith("pkg:pypi/")}
    assert {path.name.split("-")[0].lower() for path in built.wheels.iterdir()} == {
        name.replace("-", "_").replace(".", "_") for name in wheels
    }
    locked = LOCK.read_text()
    unlocked = {name for name, part in wheels.items() if part["hashes"][0]["content"] not in locked}
    assert unlocked == {"lockstep", "gunicorn_h1c"}


def test_the_bill_is_cyclonedx(built: Built) -> None:
    """Scanners read it: format, serial number, and each part with a package URL of its own."""
    bill = bill_of(built)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    urls = [part["purl"] for part in bill["components"]]
    assert len(set(urls)) == len(urls)
    assert all(re.fullmatch(r"pkg:(pypi|deb/debian|generic)/[^@]+@\S+", url) for url in urls)
    assert {"libc6", "libssl3", "cpython"} <= {part["name"] for part in bill["components"]}


def test_every_file_has_the_same_time(built: Built) -> None:
    """The same input gives the same layers."""
    times = {path.lstat().st_mtime for path in built.image.rglob("*")}
    assert len(times) == 1
