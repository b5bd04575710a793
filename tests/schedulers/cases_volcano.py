"""Volcano."""

from typing import Final

from gangs.intents import Intent, Topology
from schedulers.contract import Spec, Stamp
from schedulers.volcano import V1BETA1
from tests.schedulers.cases import GROUP, REQUESTS, Case, Cases, late_replica, replica


def _spec(minimum: int, queue: str = "default", **more: object) -> Spec:
    fields = {"minMember": minimum, "minResources": REQUESTS, "queue": queue, **more}
    fixed = ("queue", "networkTopology") if "networkTopology" in more else ("queue",)
    return Spec(fields, fixed=fixed, quantities=("minResources",))


def _stamp(role: str) -> Stamp:
    return Stamp(annotations={"scheduling.k8s.io/group-name": GROUP, "volcano.sh/task-spec": role})


CASES: Final = Cases(
    leader=_stamp("leader"),
    worker=_stamp("worker"),
    specs=(
        Case("a replica of four", replica(), V1BETA1, _spec(4)),
        Case("C02: late workers, and yet the whole replica's resources", late_replica(), V1BETA1, _spec(1)),
        Case("a queue", replica(intent=Intent(queue="team-a")), V1BETA1, _spec(4, "team-a")),
        Case(
            "within one rack, which is a tier of HyperNodes",
            replica(intent=Intent(topology=Topology("rack", required=True))),
            V1BETA1,
            _spec(4, networkTopology={"mode": "hard", "highestTierName": "rack"}),
        ),
        Case(
            "within one rack if possible",
            replica(intent=Intent(topology=Topology("rack", required=False))),
            V1BETA1,
            _spec(4, networkTopology={"mode": "soft", "highestTierName": "rack"}),
        ),
        Case(
            "the pods' own priority class",
            replica(priority_class="serving-high"),
            V1BETA1,
            _spec(4, priorityClassName="serving-high"),
        ),
        Case(
            "the word before the pods' class",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V1BETA1,
            _spec(4, priorityClassName="batch"),
        ),
    ),
    observed=("volcano/stamped-bound-pod", "volcano/podgroup-waiting"),
    waiting={
        "capacity": "volcano/stamped-pending-with-podgroup",
        "members": "volcano/lws-provider-exclusive-topology-leader",
        "group": "volcano/stamped-pending-no-podgroup",
    },
)
