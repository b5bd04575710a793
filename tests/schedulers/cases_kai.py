"""KAI."""

from typing import Final

from gangs.intents import Intent, Topology
from schedulers.contract import Spec, Stamp
from schedulers.kai import V2ALPHA2
from tests.schedulers.cases import GROUP, Case, Cases, late_replica, replica

_SAFE: Final = {"preemptibility": "non-preemptible"}


def _spec(minimum: int, **more: object) -> Spec:
    return Spec({"queue": "default-queue", "minMember": minimum, **more})


def _with_staleness(period: str, minimum: int) -> Spec:
    fields = {"minMember": minimum, "queue": "default-queue", **_SAFE, "stalenessGracePeriod": period}
    return Spec(fields, fixed=("stalenessGracePeriod",))


def _rack(topology: str, level: str) -> dict[str, object]:
    return {"topologyConstraint": {"topology": topology, f"{level}TopologyLevel": "rack"}}


_STAMP: Final = Stamp(annotations={"pod-group-name": GROUP, "kai.scheduler/skip-podgrouper": "true"})
_NEAR: Final = Intent(topology=Topology("rack", required=False))
_WITHIN: Final = Intent(topology=Topology("rack", required=True))

CASES: Final = Cases(
    leader=_STAMP,
    worker=_STAMP,
    specs=(
        Case("C22: a replica of four is a gang of four", replica(), V2ALPHA2, _spec(4, **_SAFE)),
        Case("C02: late workers don't make a group stale", late_replica(), V2ALPHA2, _with_staleness("-1s", 1)),
        Case("a queue", replica(intent=Intent(queue="team-a")), V2ALPHA2, _spec(4, queue="team-a", **_SAFE)),
        Case(
            "with a priority class KAI decides who may be preempted",
            replica(priority_class="serving-high"),
            V2ALPHA2,
            _spec(4, priorityClassName="serving-high"),
        ),
        Case(
            "the word before the pods' class",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V2ALPHA2,
            _spec(4, priorityClassName="batch"),
        ),
        Case(
            "KAI's own word for who may be preempted",
            replica(own={"kai.scheduler/preemptibility": "preemptible"}),
            V2ALPHA2,
            _spec(4, preemptibility="preemptible"),
        ),
        Case(
            "within a rack",
            replica(intent=_WITHIN),
            V2ALPHA2,
            _spec(4, **_SAFE, **_rack("cluster-topology", "required")),
        ),
        Case(
            "near a rack of a topology of another name",
            replica(intent=_NEAR, own={"kai.scheduler/topology": "gpu-hall"}),
            V2ALPHA2,
            _spec(4, **_SAFE, **_rack("gpu-hall", "preferred")),
        ),
        Case(
            "KAI's own word for staleness",
            replica(own={"kai.scheduler/staleness-grace-period": "300s"}),
            V2ALPHA2,
            _with_staleness("300s", 4),
        ),
    ),
    observed=("kai/pod-bound", "kai/podgroup-waiting"),
    waiting={
        "capacity": "kai/pod-pending-gang-full",
        "members": "kai/pod-pending-too-few",
        "group": "kai/pod-pending-group-missing",
    },
)
