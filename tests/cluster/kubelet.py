"""What a kubelet does for a mounted Secret: files behind a link that is swapped, some time after a change."""

from __future__ import annotations

import base64
import contextlib
import shutil
import threading
from typing import TYPE_CHECKING, Self

from tests.cluster.client import ApiError, UnreachableError
from tests.cluster.resources import SECRETS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.client import Client


class Mount:
    """A Secret in a folder.

    Attributes:
        folder: where its keys are files.
    """

    def __init__(self, api: Client, namespace: str, name: str, folder: Path) -> None:
        """Mount it; an empty Secret is an empty folder."""
        self._api, self._namespace, self._name, self.folder = api, namespace, name, folder
        self._version, self._count = "", 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        folder.mkdir(parents=True)
        self.refresh()

    def refresh(self) -> None:
        """Bring the newest version in."""
        secret = self._api.get(SECRETS, self._name, self._namespace)
        if secret["metadata"]["resourceVersion"] == self._version:
            return
        self._version, self._count = secret["metadata"]["resourceVersion"], self._count + 1
        data = secret.get("data") or {}
        fresh = self.folder / f"..{self._count}"
        fresh.mkdir()
        for key, value in data.items():
            (fresh / key).write_bytes(base64.b64decode(value))
        (self.folder / "..data_tmp").symlink_to(fresh.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        for key in data:
            with contextlib.suppress(FileExistsError):
                (self.folder / key).symlink_to(f"..data/{key}")
        shutil.rmtree(self.folder / f"..{self._count - 1}", ignore_errors=True)

    def __enter__(self) -> Self:
        """Refresh by itself from now on."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Refresh no more."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.5):
            with contextlib.suppress(ApiError, UnreachableError):
                self.refresh()
