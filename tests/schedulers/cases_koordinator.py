"""Koordinator."""

from typing import Final

from gangs.intents import Intent
from schedulers.contract import Spec, Stamp
from schedulers.koordinator import V1ALPHA1
from tests.schedulers.cases import GROUP, REQUESTS, Case, Cases, late_replica, replica


def _spec(minimum: int, timeout: int = 60) -> Spec:
    fields = {"minMember": minimum, "minResources": REQUESTS, "scheduleTimeoutSeconds": timeout}
    policy = {"gang.scheduling.koordinator.sh/match-policy": "waiting-and-running"}
    return Spec(fields, quantities=("minResources",), annotations=policy)


_STAMP: Final = Stamp(labels={"pod-group.scheduling.sigs.k8s.io": GROUP})

CASES: Final = Cases(
    leader=_STAMP,
    worker=_STAMP,
    specs=(
        Case("a replica of four", replica(), V1ALPHA1, _spec(4)),
        Case("C02: late workers", late_replica(), V1ALPHA1, _spec(1)),
        Case("a timeout", replica(intent=Intent(schedule_timeout=300)), V1ALPHA1, _spec(4, 300)),
        Case("priority is the pods' own", replica(priority_class="serving-high"), V1ALPHA1, _spec(4)),
    ),
    observed=("koordinator/pod-bound", "koordinator/podgroup-waiting"),
)
