"""kube-scheduler."""

from typing import Final

from gangs.intents import Intent
from schedulers.contract import Spec, Stamp
from schedulers.native import V1ALPHA2, V1BETA1
from tests.schedulers.cases import GROUP, Case, Cases, late_replica, replica


def _gang(minimum: int, priority_class: str | None = None) -> dict[str, object]:
    policy: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return policy if priority_class is None else {**policy, "priorityClassName": priority_class}


_FIXED: Final = ("priorityClassName",)
_ALL_FIXED: Final = ("priorityClassName", "schedulingPolicy.gang.minCount")

CASES: Final = Cases(
    leader=Stamp(scheduling_group=GROUP),
    worker=Stamp(scheduling_group=GROUP),
    specs=(
        Case("a replica of four", replica(), V1BETA1, Spec(_gang(4), fixed=_FIXED)),
        Case("late workers", late_replica(), V1BETA1, Spec(_gang(1), fixed=_FIXED)),
        Case("1.36 can't raise the minimum", replica(), V1ALPHA2, Spec(_gang(4), fixed=_ALL_FIXED)),
        Case(
            "the pods' own priority class",
            replica(priority_class="serving-high"),
            V1BETA1,
            Spec(_gang(4, "serving-high"), fixed=_FIXED),
        ),
        Case(
            "the word before the pods' class",
            replica(priority_class="serving-high", intent=Intent(priority_class="batch")),
            V1BETA1,
            Spec(_gang(4, "batch"), fixed=_FIXED),
        ),
    ),
)
