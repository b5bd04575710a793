"""What kustomize makes of the manifests, and the files that are kept of it: `install.yaml` and the chart."""

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cluster import binaries
from tests.cluster.catalogue import COMPONENTS
from tests.manifests.documents import Json, read
from tests.manifests.rendered import MANIFESTS

HEAD: Final = """\
# Lockstep with every scheduler: kubectl apply -f install.yaml
# Made of manifests/install by `make render`.
"""


@functools.cache
def tool(name: str, component: str) -> Path:
    """Find a tool of one component that tests build, built first where it is missing."""
    return binaries.ensure(tuple(each for each in COMPONENTS if each.name == component)) / name


@functools.cache
def kustomized(folder: Path) -> str:
    """Build a kustomization.

    Raises:
        RuntimeError: kustomize refused it; the message is its own.
    """
    command = [str(tool("kubectl", "kubernetes")), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise RuntimeError(f"kubectl kustomize {folder}: {done.stderr.strip()}")
    return done.stdout


def objects_of(*components: str, root: str = "base", **more: object) -> list[Json]:
    """Give the objects of an overlay: a root with components, and `more` of a kustomization."""
    with tempfile.TemporaryDirectory() as folder:
        relative = os.path.relpath(MANIFESTS, Path(folder).resolve())
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{relative}/{root}"],
            "components": [f"{relative}/components/{name}" for name in components],
            **more,
        }
        (Path(folder) / "kustomization.yaml").write_text(json.dumps(kustomization))
        return read(kustomized(Path(folder)))


def built() -> Iterator[tuple[Path, str]]:
    """Give each file that is made by kustomize with what it should hold."""
    from tests.manifests.chart import chart  # noqa: PLC0415 - it builds with what is above

    yield MANIFESTS / "install.yaml", HEAD + kustomized(MANIFESTS / "install")
    for name, text in chart():
        yield MANIFESTS / "chart" / name, text
