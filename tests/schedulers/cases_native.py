"""kube-scheduler, in the words of Kubernetes 1.37, 1.36 and 1.35."""

from typing import Any, Final

from gangs.intents import Intent, Topology
from schedulers.contract import Right, Spec, Stamp
from schedulers.native import PROVIDER
from schedulers.native_objects import (
    CLAIMS,
    CLASS_OF_1_36,
    MODE_OF_1_36,
    PREEMPTION,
    TOPOLOGY,
    V1ALPHA1,
    V1ALPHA2,
    V1ALPHA3,
    V1BETA1,
)
from tests.schedulers.cases import GROUP, Case, Cases, late_replica, replica

RACK: Final = Intent(topology=Topology("rack", required=True))
NEAR: Final = Intent(topology=Topology("rack", required=False))
RACK_TERM: Final = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
MIN_COUNT: Final = "schedulingPolicy.gang.minCount"


def _gang(minimum: int, **more: object) -> dict[str, object]:
    return {"schedulingPolicy": {"gang": {"minCount": minimum}}, "disruptionMode": {"all": {}}, **more}


def _v1_37(minimum: int, *gated: Any, **more: object) -> Spec:
    order = ("schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "preemptionPolicy")
    fixed = tuple(name for name in order if name in more or name == "disruptionMode")
    return Spec(_gang(minimum, **more), fixed=fixed, gated=gated)


def _v1_36(minimum: int, *gated: Any, **more: object) -> Spec:
    fields = {**_gang(minimum, **more), "disruptionMode": "PodGroup"}
    order = ("schedulingConstraints", "disruptionMode", "priorityClassName")
    fixed = (*(name for name in order if name in fields), MIN_COUNT)
    return Spec(fields, fixed=fixed, gated=gated)


def _v1_35(minimum: int) -> Spec:
    about = {"apiGroup": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "name": "vllm"}
    groups = [{"name": "replica", "policy": {"gang": {"minCount": minimum}}}]
    return Spec({"controllerRef": about, "podGroups": groups}, fixed=("controllerRef", "podGroups"))


CASES: Final = Cases(
    leader=Stamp(scheduling_group=GROUP),
    worker=Stamp(scheduling_group=GROUP),
    specs=(
        Case("a replica of four, preempted whole", replica(), V1BETA1, _v1_37(4)),
        Case("the same where only alpha versions are served", replica(), V1ALPHA3, _v1_37(4)),
        Case("late workers", late_replica(), V1BETA1, _v1_37(1)),
        Case("1.36 can't raise the minimum", late_replica(), V1ALPHA2, _v1_36(1, MODE_OF_1_36)),
        Case("1.35 has a Workload for each replica", replica(), V1ALPHA1, _v1_35(4)),
        Case("1.35 can change nothing", late_replica(), V1ALPHA1, _v1_35(1)),
        Case(
            "the pods' own priority class",
            replica(priority_class="serving-high"),
            V1BETA1,
            _v1_37(4, priorityClassName="serving-high"),
        ),
        Case(
            "the pods' class before the word, since 1.37 places no group of another priority than its pods'",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V1BETA1,
            _v1_37(4, priorityClassName="serving-high"),
        ),
        Case(
            "the word before the pods' class in 1.36",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V1ALPHA2,
            _v1_36(4, MODE_OF_1_36, CLASS_OF_1_36, priorityClassName="batch"),
        ),
        Case(
            "the pods' own preemption policy",
            replica(preemption_policy="Never"),
            V1BETA1,
            _v1_37(4, PREEMPTION, preemptionPolicy="Never"),
        ),
        Case("a required topology", replica(intent=RACK), V1BETA1, _v1_37(4, TOPOLOGY, **RACK_TERM)),
        Case(
            "a required topology in 1.36",
            replica(intent=RACK),
            V1ALPHA2,
            _v1_36(4, TOPOLOGY, MODE_OF_1_36, **RACK_TERM),
        ),
        Case("a preferred topology, which it does not know", replica(intent=NEAR), V1BETA1, _v1_37(4)),
        Case(
            "claims that all pods share",
            replica(claims={"fabric": "vllm-0-fabric"}),
            V1BETA1,
            _v1_37(4, CLAIMS, resourceClaims=[{"name": "fabric", "resourceClaimName": "vllm-0-fabric"}]),
        ),
    ),
    extra_rights=tuple(
        right for right in PROVIDER.rights if right != Right("scheduling.k8s.io", ("podgroups",), right.verbs)
    ),
)
