"""What a scenario needs beside the control plane: which scheduler, which group objects, how a group's numbers read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from schedulers.coscheduling import Coscheduling
from schedulers.koordinator import MATCH_POLICY, Koordinator
from tests.cluster.control_plane import Options
from tests.cluster.foreign_schedulers import QUEUE
from tests.cluster.resources import COSCHEDULING_GROUPS, KAI_GROUPS, KOORDINATOR_GROUPS, NATIVE_GROUPS, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that runs beside the control plane.

    Attributes:
        provider: name of its provider.
        name: `spec.schedulerName`, `None` for none.
        groups: its group objects.
        minimum: where a group's minimum stands in its spec.
        needs: fields without which its scheduler does not look at a group.
        touches: annotations that may be written on a group that waits, or on its pods, for its scheduler to look again.
    """

    provider: str
    name: str | None
    groups: Resource
    minimum: tuple[str, ...]
    needs: Mapping[str, Any] = field(default_factory=dict)
    touches: frozenset[str] = frozenset()

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
        return {"spec": {**self.needs, **patch}}


NATIVE = Scheduler("native", None, NATIVE_GROUPS, ("schedulingPolicy", "gang", "minCount"))
COSCHEDULING = Scheduler(
    "coscheduling",
    "scheduler-plugins-scheduler",
    COSCHEDULING_GROUPS,
    ("minMember",),
    touches=frozenset({Coscheduling.touch}),
)
KOORDINATOR = Scheduler(
    "koordinator",
    "koord-scheduler",
    KOORDINATOR_GROUPS,
    ("minMember",),
    touches=frozenset({Koordinator.touch, Koordinator.roll_call, Koordinator.regrouped, MATCH_POLICY}),
)
KAI = Scheduler("kai", "kai-scheduler", KAI_GROUPS, ("minMember",), {"queue": QUEUE})

ON_BOTH = pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])
"""Runs a test with kube-scheduler and with coscheduling."""

ALL = (NATIVE, COSCHEDULING, KOORDINATOR, KAI)
"""Every scheduler that runs in `EVERY_SCHEDULER`."""

EVERY_SCHEDULER = Options(coscheduling=True, koordinator=True, kai=True)
"""A control plane with all of them side by side."""

POD_BY_POD = (NATIVE, COSCHEDULING, KOORDINATOR)
"""Those that place pods without a group one by one. KAI leaves them alone: its podgrouper gives each a group."""

ON_ALL = pytest.mark.parametrize("scheduler", ALL, ids=[scheduler.provider for scheduler in ALL])
"""Runs a test with each of them."""
