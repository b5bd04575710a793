"""Gödel."""

from typing import Final

from gangs.intents import Intent, Topology
from schedulers.contract import Spec, Stamp
from schedulers.godel import V1ALPHA1
from tests.schedulers.cases import GROUP, Case, Cases, late_replica, replica

YEAR: Final = 31_536_000


def _spec(minimum: int, timeout: int = YEAR, **more: object) -> Spec:
    return Spec({"minMember": minimum, "scheduleTimeoutSeconds": timeout, **more})


def _within(how: str) -> dict[str, object]:
    return {"podGroupAffinity": {how: [{"topologyKey": "rack"}]}}


_NAMED: Final = {"godel.bytedance.com/pod-group-name": GROUP}

CASES: Final = Cases(
    leader=Stamp(labels=_NAMED, annotations=_NAMED),
    worker=Stamp(labels=_NAMED, annotations=_NAMED),
    specs=(
        Case("a replica of four", replica(), V1ALPHA1, _spec(4)),
        Case("late workers", late_replica(), V1ALPHA1, _spec(1)),
        Case("a timeout", replica(intent=Intent(schedule_timeout=300)), V1ALPHA1, _spec(4, 300)),
        Case(
            "the pods' own priority class",
            replica(priority_class="serving-high"),
            V1ALPHA1,
            _spec(4, priorityClassName="serving-high"),
        ),
        Case(
            "the word before the pods' class",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V1ALPHA1,
            _spec(4, priorityClassName="batch"),
        ),
        Case(
            "within one rack",
            replica(intent=Intent(topology=Topology("rack", required=True))),
            V1ALPHA1,
            _spec(4, affinity=_within("required")),
        ),
        Case(
            "within one rack if possible",
            replica(intent=Intent(topology=Topology("rack", required=False))),
            V1ALPHA1,
            _spec(4, affinity=_within("preferred")),
        ),
    ),
)
