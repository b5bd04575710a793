"""Coscheduling."""

from typing import Final

from gangs.intents import Intent
from schedulers.contract import Spec, Stamp
from schedulers.coscheduling import V1ALPHA1
from tests.schedulers.cases import GROUP, REQUESTS, Case, Cases, late_replica, replica


def _spec(minimum: int, timeout: int = 60) -> Spec:
    fields = {"minMember": minimum, "minResources": REQUESTS, "scheduleTimeoutSeconds": timeout}
    return Spec(fields, quantities=("minResources",))


_STAMP: Final = Stamp(labels={"scheduling.x-k8s.io/pod-group": GROUP})

CASES: Final = Cases(
    leader=_STAMP,
    worker=_STAMP,
    specs=(
        Case("a replica of four", replica(), V1ALPHA1, _spec(4)),
        Case("C02: late workers, and yet the whole replica's resources", late_replica(), V1ALPHA1, _spec(1)),
        Case("a timeout", replica(intent=Intent(schedule_timeout=300)), V1ALPHA1, _spec(4, 300)),
        Case("priority is the pods' own", replica(priority_class="serving-high"), V1ALPHA1, _spec(4)),
    ),
    observed=("scheduler-plugins/pod-bound", "scheduler-plugins/podgroup-waiting"),
    folder="scheduler-plugins",
    waiting={
        "capacity": "scheduler-plugins/pod-pending-gang-full",
        "members": "scheduler-plugins/pod-pending-too-few",
        "group": "scheduler-plugins/pod-pending-group-missing",
    },
)
