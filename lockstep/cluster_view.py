"""What the policy service knows of its cluster: read anew every so often by a thread, with get and list alone."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lockstep.collecting import Collected
from policies.objects import NOTHING, Subject
from policies.shapes import NAMESPACE, Thing
from policies.snapshot import Snapshot
from policies.targets import Target
from reconciler.contract import CallFailed
from serving.health import Health
from serving.metrics import Metrics

NOT_YET: Final = "cluster: must have been read once, got no answer yet"


class ClusterView:
    """A `policies.service.desk.View` of a live cluster."""

    def __init__(self, read: Callable[[], Collected], every: float, health: Health, telemetry: Metrics) -> None:
        """Read with `read` every so many seconds, once `start` is called; not ready before the first time."""
        self._read = read
        self._every = every
        self._health = health
        self._telemetry = telemetry
        self._now: tuple[Collected, Snapshot] | None = None
        self._read_at = time.monotonic()
        health.missing = NOT_YET

    def start(self) -> None:
        """Begin to read."""
        age = "Seconds since the cluster was read."
        self._telemetry.watch("lockstep_policy_cluster_age_seconds", age, lambda: time.monotonic() - self._read_at)
        threading.Thread(target=self._run, name="cluster", daemon=True).start()

    def look(self) -> None:
        """Read once; what goes wrong is logged, and what was known stays."""
        begun = time.monotonic()
        try:
            collected = self._read()
        except CallFailed as error:
            self._telemetry.writer.write({"level": "error", "message": "cluster not read", "reason": str(error)})
            return
        self._now = collected, collected.snapshot
        self._read_at = begun
        self._health.missing = ""

    def around(self, subjects: Sequence[Subject], *, certain: bool) -> Snapshot:
        """Give what would be known with these objects; see `policies.service.desk.View`."""
        contents = [subject.content for subject in subjects]
        if self._now is None:
            return Snapshot(contents)
        collected, snapshot = self._now
        return snapshot.plus(contents, complete=collected.complete if certain else ())

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Give the labels of a namespace, none where it isn't known."""
        found = self._now[1].get(NAMESPACE, Thing, "", namespace) if self._now is not None else None
        return NOTHING if found is None else found.labels

    def target(self) -> Target | None:
        """Give what the API server is, nothing before it was read."""
        return None if self._now is None else self._now[0].target

    def _run(self) -> None:
        while True:
            self.look()
            time.sleep(self._every)
