"""What a scenario needs beside the control plane: which scheduler, which group objects, how a group's numbers read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.resources import COSCHEDULING_GROUPS, NATIVE_GROUPS, Resource


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that runs beside the control plane.

    Attributes:
        provider: name of its provider.
        name: `spec.schedulerName`, `None` for none.
        groups: its group objects.
        minimum: where a group's minimum stands in its spec.
    """

    provider: str
    name: str | None
    groups: Resource
    minimum: tuple[str, ...]

    def minimum_of(self, group: dict[str, Any]) -> int:
        """Read a group's minimum."""
        value: Any = group["spec"]
        for step in self.minimum:
            value = value[step]
        return int(value)

    def patch_of(self, minimum: int) -> dict[str, Any]:
        """Build the merge patch that sets a group's minimum."""
        patch: Any = minimum
        for step in reversed(self.minimum):
            patch = {step: patch}
        return {"spec": patch}


NATIVE = Scheduler("native", None, NATIVE_GROUPS, ("schedulingPolicy", "gang", "minCount"))
COSCHEDULING = Scheduler("coscheduling", "scheduler-plugins-scheduler", COSCHEDULING_GROUPS, ("minMember",))

ON_BOTH = pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])
"""Runs a test with kube-scheduler and with coscheduling."""
