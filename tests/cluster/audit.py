"""The API server's audit log: who wrote what, and how often."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from tests.cluster.resources import Json

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

_GROUPS = (
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "scheduling.volcano.sh",
    "scheduling.sigs.k8s.io",
    "scheduling.run.ai",
)


def policy() -> str:
    """The audit policy: both bodies of group objects, the sent body of pods, of all else who, what and when."""
    groups = [{"group": group} for group in _GROUPS]
    rules: list[Json] = [
        {"level": "RequestResponse", "verbs": sorted(WRITES), "resources": groups},
        {"level": "Request", "verbs": sorted(WRITES), "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "Metadata"},
    ]
    return json.dumps(
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    )


@dataclass(frozen=True)
class AuditLog:
    """Reads the log while the API server writes it."""

    path: Path

    def offset(self) -> int:
        """Where the log ends now, for `since`."""
        return self.path.stat().st_size if self.path.exists() else 0

    def events(
        self,
        *,
        user: str | None = None,
        verbs: Collection[str] = WRITES,
        resource: str | None = None,
        since: int = 0,
        dry_runs: bool = False,
    ) -> list[Json]:
        """Requests that were answered, oldest first.

        Args:
            user: as the API server names it (`lockstep-reconciler`), or None for all.
            verbs: writes unless said otherwise.
            resource: plural (`podgroups`), or None for all.
            since: an `offset()` taken before.
            dry_runs: also those that were to change nothing.
        """
        return [
            event
            for event in self._lines(since)
            if event["stage"] == "ResponseComplete"
            and event["verb"] in verbs
            and user in (None, event["user"]["username"])
            and resource in (None, event.get("objectRef", {}).get("resource"))
            and (dry_runs or "dryRun=All" not in event["requestURI"])
        ]

    def _lines(self, since: int) -> list[Json]:
        with self.path.open("rb") as log:
            log.seek(since)
            whole, _, _half_written = log.read().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]
