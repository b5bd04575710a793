"""A sound installation, what the doctor says of it, and the means to change it for a while."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep.main import main
from manifests.shipped import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.install import Installation
    from tests.cluster.resources import Json, Resource


@dataclass(frozen=True)
class Place:
    """A sound installation and the means to spoil it."""

    plane: ControlPlane
    installation: Installation
    manifests: Path
    folder: Path

    def examine(self, *arguments: str, user: str = "admin") -> tuple[int, dict[str, Any]]:
        """Run the doctor; give its exit code and report."""
        report = self.folder / "report.json"
        words = ["doctor", "--kubeconfig", str(self.plane.kubeconfig(user)), "--manifests", str(self.manifests)]
        with report.open("w") as output, contextlib.redirect_stdout(output):
            code = main([*words, *arguments, "--output", "json"])
        found: dict[str, Any] = json.loads(report.read_text())
        return code, found

    def is_sound(self) -> bool:
        """Tell whether the doctor finds nothing."""
        code, report = self.examine()
        assert (code, report["findings"]) == (0, [])
        return True

    @contextlib.contextmanager
    def without(self, resource: Resource, name: str) -> Iterator[None]:
        """Delete an object, and put it back."""
        whole = self.plane.api.get(resource, name, NAMESPACE)
        self.plane.api.delete(resource, name, NAMESPACE)
        try:
            yield
        finally:
            self.plane.api.create(resource, _anew(whole), NAMESPACE)

    @contextlib.contextmanager
    def patched(self, resource: Resource, name: str, *operations: Json) -> Iterator[None]:
        """Change an object, and put back what was there."""
        whole = self.plane.api.get(resource, name, NAMESPACE)
        self.plane.api.patch(resource, name, list(operations), NAMESPACE)
        try:
            yield
        finally:
            self.plane.wait("it is as it was", lambda: self._put_back(resource, whole), 20)

    def _put_back(self, resource: Resource, whole: Json) -> Json:
        """Write an object over whatever is there now."""
        now = self.plane.api.get(resource, whole["metadata"]["name"], NAMESPACE)
        metadata = whole["metadata"] | {"resourceVersion": now["metadata"]["resourceVersion"]}
        return self.plane.api.replace(resource, whole | {"metadata": metadata})

    @contextlib.contextmanager
    def added(self, resource: Resource, body: Json, namespace: str = NAMESPACE) -> Iterator[None]:
        """Create an object, and delete it."""
        self.plane.api.create(resource, body, namespace)
        try:
            yield
        finally:
            self.plane.api.delete(resource, body["metadata"]["name"], namespace)

    @contextlib.contextmanager
    def stopped(self, container: str) -> Iterator[None]:
        """Stop a container, and start it again."""
        self.installation.processes[container].stop(60)
        try:
            yield
        finally:
            self.installation.start(container)
            self.installation.wait_ready()


def _anew(whole: Json) -> Json:
    metadata = {key: value for key, value in whole["metadata"].items() if key not in ("resourceVersion", "uid")}
    return whole | {"metadata": metadata}
