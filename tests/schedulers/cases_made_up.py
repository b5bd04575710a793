"""The scheduler that is made up."""

from typing import Final

from schedulers.contract import Spec, Stamp
from tests.schedulers.cases import GROUP, Case, Cases, late_replica, replica
from tests.schedulers.made_up import V1

CASES: Final = Cases(
    leader=Stamp({"gangs.example.com/crew": GROUP}, {"gangs.example.com/rank": "captain"}),
    worker=Stamp({"gangs.example.com/crew": GROUP}, {"gangs.example.com/rank": "sailor"}),
    specs=(
        Case("a replica of four", replica(), V1, Spec({"atLeast": 4})),
        Case("late workers", late_replica(), V1, Spec({"atLeast": 1})),
    ),
)
