"""YuniKorn."""

import json
from typing import Any, Final

from gangs.intents import Intent
from schedulers.contract import Declaration, Role, Stamp
from tests.schedulers.cases import GROUP, Cases, Declared, late_replica, replica

ASKS: Final = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}
LEADER: Final = Role("leader", 1, ASKS)
WORKERS: Final = Role("worker", 3, ASKS)
BOTH: Final = (LEADER, WORKERS)
POOL: Final[dict[str, Any]] = {
    "nodeSelector": {"pool": "h100"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
}
KEY: Final = {"leaderworkerset.sigs.k8s.io/group-key": "3026934fa959105a39223221cf76941a46fb01bb"}


def _stamp(role: str) -> Stamp:
    return Stamp({"yunikorn.apache.org/app-id": GROUP}, {"yunikorn.apache.org/task-group-name": role}, gated=True)


def _declaration(*groups: dict[str, Any], timeout: int | None = None, **labels: str) -> Declaration:
    parameters = "gangSchedulingStyle=Hard"
    if timeout is not None:
        parameters = f"placeholderTimeoutInSeconds={timeout} {parameters}"
    annotations = {
        "yunikorn.apache.org/task-groups": json.dumps(groups, separators=(",", ":")),
        "yunikorn.apache.org/schedulingPolicyParameters": parameters,
    }
    return Declaration({f"yunikorn.apache.org/{key}": value for key, value in labels.items()}, annotations)


def _group(name: str, number: int, asks: object = ASKS, **more: object) -> dict[str, Any]:
    return {"name": name, "minMember": number, "minResource": asks, **more}


_TWO: Final = (_group("leader", 1), _group("worker", 3))

CASES: Final = Cases(
    leader=_stamp("leader"),
    worker=_stamp("worker"),
    specs=(),
    declarations=(
        Declared("a replica of four", replica(), BOTH, 2.0, _declaration(*_TWO)),
        Declared("late workers have their group from the beginning", late_replica(), BOTH, 2.0, _declaration(*_TWO)),
        Declared(
            "one pod has no group of workers: YuniKorn ignores a list with a minimum of 0",
            replica(size=1),
            (LEADER,),
            2.0,
            _declaration(_group("leader", 1)),
        ),
        Declared(
            "leader and workers ask for their own",
            replica(),
            (Role("leader", 1, {"cpu": "2500m"}), Role("worker", 3, ASKS)),
            2.0,
            _declaration(_group("leader", 1, {"cpu": "2500m"}), _group("worker", 3)),
        ),
        Declared(
            "pods that ask for nothing have an empty list, for a missing one is an error",
            replica(),
            (Role("leader", 1, {}), Role("worker", 3, {})),
            2.0,
            _declaration(_group("leader", 1, {}), _group("worker", 3, {})),
        ),
        Declared(
            "placeholders go where their pods may go",
            replica(),
            (LEADER, Role("worker", 3, ASKS, POOL)),
            2.0,
            _declaration(_group("leader", 1), _group("worker", 3, **POOL)),
        ),
        Declared(
            "placeholders bear what affinity looks for",
            late_replica(),
            (Role("leader", 1, ASKS, POOL, KEY), Role("worker", 3, ASKS, POOL, KEY)),
            2.0,
            _declaration(_group("leader", 1, labels=KEY, **POOL), _group("worker", 3, labels=KEY, **POOL)),
        ),
        Declared(
            "a timeout begins when the gate is opened, though YuniKorn counts from the pods' creation",
            replica(intent=Intent(schedule_timeout=300)),
            BOTH,
            26.2,
            _declaration(*_TWO, timeout=327),
        ),
        Declared(
            "a queue",
            replica(intent=Intent(queue="root.team-a")),
            BOTH,
            2.0,
            _declaration(*_TWO, queue="root.team-a"),
        ),
        Declared("priority is the pods' own", replica(priority_class="high"), BOTH, 2.0, _declaration(*_TWO)),
    ),
    observed=("yunikorn/bound-leader",),
    waiting={
        "capacity": "yunikorn/waiting-pod",
        "group": "yunikorn/gated-pod",
        "stand_ins": "yunikorn/placeholder-pending",
    },
)
