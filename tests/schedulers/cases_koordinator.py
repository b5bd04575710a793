"""Koordinator."""

from typing import Final

from gangs.intents import Intent
from schedulers.contract import Spec, Stamp
from schedulers.koordinator import V1ALPHA1
from tests.schedulers.cases import GROUP, REQUESTS, Case, Cases, late_replica, replica


def _spec(minimum: int, timeout: int = 60, policy: str = "waiting-and-running") -> Spec:
    fields = {"minMember": minimum, "minResources": REQUESTS, "scheduleTimeoutSeconds": timeout}
    annotations = {"gang.scheduling.koordinator.sh/match-policy": policy}
    return Spec(fields, quantities=("minResources",), annotations=annotations)


_STAMP: Final = Stamp(labels={"pod-group.scheduling.sigs.k8s.io": GROUP})

CASES: Final = Cases(
    leader=_STAMP,
    worker=_STAMP,
    specs=(
        Case("a replica of four", replica(), V1ALPHA1, _spec(4)),
        Case("C02: late workers", late_replica(), V1ALPHA1, _spec(1)),
        Case(
            "once a pod has a node, those that are replaced are placed as they fit",
            replica(bound=1),
            V1ALPHA1,
            _spec(4, policy="once-satisfied"),
        ),
        Case("a timeout", replica(intent=Intent(schedule_timeout=300)), V1ALPHA1, _spec(4, 300)),
        Case("priority is the pods' own", replica(priority_class="serving-high"), V1ALPHA1, _spec(4)),
    ),
    observed=("koordinator/pod-bound", "koordinator/podgroup-waiting"),
    waiting={
        "capacity": "koordinator/pod-pending-gang-full",
        "members": "koordinator/pod-pending-too-few",
        "group": "koordinator/pod-pending-group-missing",
    },
)
