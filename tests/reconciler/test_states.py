"""The state of a replica, from objects, gates and bindings, each with its reason."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.room import Shortage
from reconciler.states import (
    ENDING,
    GATED,
    IN_PART,
    NO_GROUP,
    NOT_OURS,
    PLACED,
    RUNNING,
    STAMP_DROPPED,
    UNSTAMPED,
    WAITS_FOR_CAPACITY,
    WAITS_FOR_MEMBERS,
    Finding,
    judge,
)
from tests.builders import JsonObject
from tests.reconciler.sights import (
    COSCHEDULING,
    EXCLUSIVE,
    LEADER_READY,
    VOLCANO,
    Plan,
    World,
    first,
    group,
    merged,
    replica,
    serve_nothing,
)

OBSERVED: Final = Path(__file__).parents[1] / "data" / "observed"
NANO: Final = 10**9
PLENTY: Final = {"cpu": 100 * NANO, "nvidia.com/gpu": 100 * NANO}
BOUND: Final[JsonObject] = {"spec": {"nodeName": "n1"}}
READY: Final[JsonObject] = {
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
FAILED: Final[JsonObject] = {"spec": {"nodeName": "n1"}, "status": {"phase": "Failed"}}
STILL_CALLED_READY: Final[JsonObject] = READY | {"status": READY["status"] | {"phase": "Failed"}}
GATE: Final[JsonObject] = {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}
DROP_SPEC: Final[JsonObject] = {"schedulingGroup": None}
UNSTAMP: Final[JsonObject] = {"spec": {"schedulingGroup": None}, "metadata": {"labels": {"lockstep.dev/group": None}}}
RUNS_UNSTAMPED: Final[JsonObject] = READY | {"metadata": UNSTAMP["metadata"], "spec": BOUND["spec"] | DROP_SPEC}
DROP: Final[JsonObject] = {"spec": DROP_SPEC}
TOPOLOGY: Final = "metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]"
TITLE: Final = f'podgroups.scheduling.k8s.io/v1beta1 "{Plan().group}"'
FITS: Final = "asks no more than is free in sum, but a sum is not a placement"
STALE: Final = {"ownerReferences": [{"kind": "Pod", "uid": "pod/vllm-0/0", "controller": True}]}


def found(
    plan: Plan, edit: JsonObject | None = None, *, grouped: bool = True, free: dict[str, int] | None = PLENTY
) -> Finding:
    """Judge a replica; `edit` changes its group, without `grouped` there is none."""
    world = World(*replica(**vars(plan)))
    if grouped:
        world.put(merged(group(Plan(**vars(plan) | {"changes": {}, "stamped": True})), edit or {}))
    return judge(world.sight(), world.configuration, first, free)


def changed(leader: JsonObject, worker: JsonObject | None = None, **difference: Any) -> Plan:
    """Plan a replica of two with its leader and its worker changed, the worker like the leader by default."""
    return Plan(changes={"vllm-0": leader, "vllm-0-1": leader if worker is None else worker}, **difference)


STATES: dict[str, tuple[Plan, JsonObject, str, str]] = {
    "all run": (changed(READY), {}, RUNNING, "all pods are ready"),
    "a node, not started (C12)": (changed(BOUND), {}, PLACED, "all pods have a node, 0 of 2 are ready"),
    "one still starts": (changed(READY, BOUND), {}, PLACED, "all pods have a node, 1 of 2 are ready"),
    "one has failed": (changed(READY, FAILED), {}, PLACED, "all pods have a node, 1 of 2 are ready"),
    "one has failed, and is still called ready": (
        changed(READY, STILL_CALLED_READY),
        {},
        PLACED,
        "all pods have a node, 1 of 2 are ready",
    ),
    "no node (C12)": (Plan(), {}, WAITS_FOR_CAPACITY, FITS),
    "half placed": (
        changed(BOUND, {}),
        {},
        IN_PART,
        f"1 of 2 pods have a node while others wait; {FITS}",
    ),
    "half placed behind a gate": (
        changed(BOUND, GATE),
        {},
        IN_PART,
        f'1 of 2 pods have a node while others wait; waits for gate "kueue.x-k8s.io/admission"; {FITS}',
    ),
    "half placed, for its workers come late": (
        changed(BOUND, {}, late=LEADER_READY),
        {},
        IN_PART,
        f"1 of 2 pods have a node while others wait; its workers come after its leader (spec.startupPolicy); {FITS}",
    ),
    "gated": (changed(GATE), {}, GATED, 'waits for gate "kueue.x-k8s.io/admission"'),
    "one gated": (changed({}, GATE), {}, GATED, 'waits for gate "kueue.x-k8s.io/admission"'),
    "group of a dead leader": (Plan(), {"metadata": STALE}, NO_GROUP, f"{TITLE} belongs to a leader that is gone"),
    "group of someone else": (
        Plan(),
        {"metadata": STALE | {"labels": None}},
        NO_GROUP,
        f"{TITLE} is someone else's",
    ),
    "group deleted": (Plan(), {"metadata": {"deletionTimestamp": "x"}}, NO_GROUP, f"{TITLE} is being deleted"),
    "a worker is not there yet": (
        Plan(workers=0),
        {},
        WAITS_FOR_MEMBERS,
        "1 of 2 pods exist, and 2 are placed together or not at all",
    ),
    "a worker has ended": (
        changed({}, {"status": {"phase": "Failed"}}),
        {},
        WAITS_FOR_MEMBERS,
        "1 of 2 pods exist, and 2 are placed together or not at all",
    ),
    "the leader goes first, and waits": (
        Plan(size=4, late=LEADER_READY, worker_set=False),
        {},
        WAITS_FOR_CAPACITY,
        FITS,
    ),
    "the leader goes first, and has a node": (
        Plan(size=4, late=EXCLUSIVE, worker_set=False, changes={"vllm-0": BOUND}),
        {},
        WAITS_FOR_MEMBERS,
        f"1 of 4 pods exist: its workers come after its leader ({TOPOLOGY})",
    ),
    "admitted while we were away": (
        Plan(stamped=False),
        {},
        UNSTAMPED,
        "pod vllm-0 was admitted without its group and is placed alone by kube-scheduler (2 pods)",
    ),
    "and runs all the same": (
        changed(READY, RUNS_UNSTAMPED),
        {},
        UNSTAMPED,
        "pod vllm-0-1 was admitted without its group and is placed alone by kube-scheduler",
    ),
    "admitted while we were away, and can be mended": (
        Plan(stamped=False, provider=COSCHEDULING),
        {},
        UNSTAMPED,
        "pod vllm-0 was admitted without its group and is to be stamped (2 pods)",
    ),
    "the gate is off": (
        changed(DROP),
        {},
        STAMP_DROPPED,
        "the API server drops spec.schedulingGroup (gate GenericWorkload is off): pod vllm-0 is in no group (2 pods)",
    ),
    "its leader goes": (
        changed({"metadata": {"deletionTimestamp": "x"}}, {}),
        {},
        ENDING,
        "its leader is being deleted",
    ),
    "a scheduler that nobody configured": (
        changed({"spec": {"schedulerName": "bespoke"}}),
        {},
        NOT_OURS,
        'scheduler "bespoke" is not configured',
    ),
    "opted out": (
        changed({"metadata": {"labels": {"lockstep.dev/gang": "off"}}}),
        {},
        NOT_OURS,
        "its pod template keeps Lockstep away",
    ),
    "someone else's group": (
        changed({"spec": {"schedulingGroup": {"podGroupName": "theirs"}}}),
        {},
        NOT_OURS,
        'its leader is in group "theirs" of someone else (spec.schedulingGroup.podGroupName)',
    ),
}


@pytest.mark.parametrize(("plan", "edit", "state", "reason"), STATES.values(), ids=STATES.keys())
def test_a_replica_is_in_one_state_for_one_reason(plan: Plan, edit: JsonObject, state: str, reason: str) -> None:
    """Word for word."""
    finding = found(plan, edit)
    assert (finding.state, finding.reason) == (state, reason)


def test_without_its_object_a_group_is_missing() -> None:
    """Members wait for it; what has a node waits for nothing."""
    assert found(Plan(), grouped=False) == Finding(NO_GROUP, f"2 members wait, and there is no {TITLE} yet")
    assert found(changed(READY), grouped=False).state == RUNNING


def test_without_a_served_kind_there_is_no_group() -> None:
    """Until its CRD is there."""
    world = World(*replica(provider=VOLCANO))
    finding = judge(world.sight(), world.configuration, serve_nothing, PLENTY)
    assert finding == Finding(NO_GROUP, "the cluster serves none of podgroups.scheduling.volcano.sh/v1beta1")


ROOM: dict[str, tuple[dict[str, int] | None, str, tuple[Shortage, ...]]] = {
    "one resource is short (C09)": (
        PLENTY | {"nvidia.com/gpu": 8 * NANO},
        "asks nvidia.com/gpu 16, 8 free in sum (a sum is not a placement)",
        (Shortage("nvidia.com/gpu", "16", "8"),),
    ),
    "two are short": (
        {"cpu": NANO // 2},
        "asks cpu 2, 500m free in sum, nvidia.com/gpu 16, 0 free in sum (a sum is not a placement)",
        (Shortage("cpu", "2", "500m"), Shortage("nvidia.com/gpu", "16", "0")),
    ),
    "none is short, and still it waits": (PLENTY, FITS, ()),
    "nobody knows what is free": (
        None,
        "asks cpu 2, nvidia.com/gpu 16; what is free is not known: nodes or pods can't be listed",
        (),
    ),
}


@pytest.mark.parametrize(("free", "reason", "short"), ROOM.values(), ids=ROOM.keys())
def test_the_blocking_amount_is_named(free: dict[str, int] | None, reason: str, short: tuple[Shortage, ...]) -> None:
    """Per resource what is asked and what is free, with what the sum is worth."""
    assert found(Plan(), free=free) == Finding(WAITS_FOR_CAPACITY, reason, short)


def test_a_late_leader_is_told_what_its_whole_replica_asks() -> None:
    """Though it is the only pod."""
    plan = Plan(size=4, late=LEADER_READY, worker_set=False, provider=COSCHEDULING)
    assert found(plan, free=PLENTY | {"nvidia.com/gpu": 8 * NANO}).short == (Shortage("nvidia.com/gpu", "32", "8"),)


def test_of_a_half_placed_replica_only_the_rest_is_asked_for() -> None:
    """What is bound has its room."""
    assert found(changed(BOUND, {}), free={"cpu": NANO}).short == (Shortage("nvidia.com/gpu", "8", "0"),)


def test_what_can_not_be_summed_is_said() -> None:
    """A template with no quantity, or none at all."""
    bad: JsonObject = {"spec": {"containers": [{"name": "x", "resources": {"requests": {"cpu": "8x"}}}]}}
    path = "leader.spec.containers[0].resources.requests[cpu]"
    assert found(changed(bad, {})).reason == f'what it asks is not known: {path}: must be a quantity, got "8x"'
    plan = Plan(size=3, late=LEADER_READY, worker_set=False)
    world = World(*replica(**vars(plan)), group(plan))
    world.remove(*world.of_kind("ControllerRevision"))
    finding = judge(world.sight(), world.configuration, first, PLENTY)
    assert finding.reason == "what it asks is not known: the template of its workers is not there"


def condition(message: str, when: str, status: str = "False") -> JsonObject:
    """What a scheduler says on a pod."""
    told = {"type": "PodScheduled", "status": status, "message": message, "lastTransitionTime": when}
    return {"status": {"conditions": [told]}}


def test_the_scheduler_has_the_newest_word() -> None:
    """Of pods that wait; what it said before it placed a pod counts for nothing, nor does it make a state."""
    old, new = condition("old", "2026-11-29T22:00:00Z"), condition("new", "2026-11-29T22:00:01Z")
    assert found(changed(old, new)).words == "new"
    assert found(changed(new, old)).words == "new"
    assert found(changed(merged(new, BOUND), old)).words == "old"
    placed = found(changed(merged(new, BOUND)))
    assert (placed.state, placed.words) == (PLACED, "")


def test_the_schedulers_words_are_those_it_writes() -> None:
    """As the coscheduling plugin says that there is no room."""
    pod = json.loads((OBSERVED / "scheduler-plugins" / "pod-pending-gang-full.json").read_text())
    plan = changed({"status": {"conditions": pod["status"]["conditions"]}}, provider=COSCHEDULING)
    words = found(plan).words
    assert words.startswith("0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")


def test_a_stale_condition_does_not_hide_a_gate() -> None:
    """`SchedulingGated` outlives its gate: the gates are looked at themselves."""
    gated = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}
    assert found(changed(gated)).state == WAITS_FOR_CAPACITY
    assert found(changed(merged(gated, GATE))).state == GATED
