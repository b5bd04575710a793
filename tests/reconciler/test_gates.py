"""Where a replica stands with its gates, what is written when they are opened, and what is taken back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.actions import Action, LookAgain, OpenGate, PatchPod
from reconciler.decisions import decide
from reconciler.gates import Standing, open_gates, read_whole, standing_of
from reconciler.replicas import NotYet, Sight
from reconciler.turns import line_up, take_turns
from schedulers.configuration import RECREATE, Configuration, configuration_of, default_configuration
from schedulers.contract import Replica
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import (
    EXCLUSIVE,
    LEADER,
    LEADER_READY,
    YUNIKORN,
    Plan,
    World,
    first,
    merged,
    replica,
    said,
    writes_of,
)

CREATED = datetime(2026, 11, 29, 22, 5, 32, tzinfo=UTC).timestamp()
"""When the pods of `replica` were created."""
TASK_GROUPS = "yunikorn.apache.org/task-groups"
PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
DECLARED = {TASK_GROUPS: "[]", PARAMETERS: "gangSchedulingStyle=Hard"}
OPEN: JsonObject = {"spec": {"schedulingGates": None}, "metadata": {"annotations": DECLARED}}
BOUND: JsonObject = merged(OPEN, {"spec": {"nodeName": "n1"}})
STRIPPED: JsonObject = {"spec": {"schedulingGates": None, "nodeName": "n1"}}


def see(world: World, now: float = CREATED + 10) -> Sight:
    """See the replica at a moment."""
    cache = world.cache()
    found = cache.sight(LEADER, None, age=10.0, recreations=0, now=now)
    assert isinstance(found, Sight)
    return found


def world_of(*changes: JsonObject, configuration: Configuration | None = None, **difference: Any) -> World:
    """Build a replica of YuniKorn's; each change is of one pod, the leader's first."""
    plan = Plan(provider=YUNIKORN, **difference)
    names = [plan.leader_name, *(f"{plan.leader_name}-{number}" for number in range(1, plan.size))]
    difference["changes"] = {**plan.changes, **dict(zip(names, changes, strict=False))}
    return World(*replica(provider=YUNIKORN, **difference), configuration=configuration)


def stand(world: World, now: float = CREATED + 10) -> Standing:
    """See where the replica stands."""
    found = standing_of(see(world, now), world.configuration)
    assert found is not None
    return found


def tend(world: World, now: float = CREATED + 10) -> tuple[Action, ...]:
    """Decide about the replica."""
    return decide(see(world, now), world.configuration, first).actions


def opening(world: World, now: float = CREATED + 10) -> list[OpenGate]:
    """Open the gates that may be opened."""
    standing = stand(world, now)
    found = read_whole(standing, world.configuration)
    assert isinstance(found, Replica)
    return list(open_gates(standing, found))


def annotations(action: OpenGate) -> dict[str, str]:
    """Give the annotations that are written with an opening."""
    body: Any = action.body
    found: dict[str, str] = body["metadata"].get("annotations", {})
    return found


def groups_of(action: OpenGate) -> list[dict[str, Any]]:
    """Give the task groups that are written with an opening."""
    found: list[dict[str, Any]] = json.loads(annotations(action)[TASK_GROUPS])
    return found


STANDINGS: dict[str, tuple[tuple[JsonObject, ...], str]] = {
    "gated": (({}, {}), "waits"),
    "the first pod is opened": ((OPEN, {}), "holds"),
    "all are opened": ((OPEN, OPEN), "holds"),
    "one is placed": ((BOUND, OPEN), "holds"),
    "all are placed": ((BOUND, BOUND), "whole"),
    "half stripped": ((STRIPPED, BOUND), "whole"),
    "stripped": ((STRIPPED, STRIPPED), "whole"),
    "a worker made anew before all were placed": ((BOUND, {}), "holds"),
    "a worker made anew after all were placed": ((STRIPPED, {}), "waits"),
    "a worker made anew is opened": ((STRIPPED, {"spec": {"schedulingGates": None}}), "holds"),
    "someone has opened the leader by hand": (({"spec": {"schedulingGates": None}}, {}), "holds"),
    "a pod has failed": ((merged(OPEN, {"status": {"phase": "Failed"}}), {}), "waits"),
}


@pytest.mark.parametrize(("changes", "state"), STANDINGS.values(), ids=STANDINGS)
def test_where_a_replica_stands_follows_from_its_pods(changes: tuple[JsonObject, ...], state: str) -> None:
    """It holds the turn from its first opened pod on until all are placed, and again with one that was made anew."""
    standing = stand(world_of(*changes))
    assert standing.holds_turn == (state == "holds")
    assert standing.whole == (state == "whole")


def test_a_leader_without_its_late_workers_holds_the_turn() -> None:
    """Its placeholders hold room, so that the next would get a part at the most."""
    standing = stand(world_of(BOUND, size=3, late=LEADER_READY, worker_set=False))
    assert standing.holds_turn
    assert standing.needed == 3


def test_every_pod_gets_the_same_declaration_the_leader_first() -> None:
    """Whichever of them YuniKorn sees first defines the application; the leader lives as long as the replica."""
    actions = opening(world_of(size=3))
    assert [action.name for action in actions] == ["vllm-0", "vllm-0-1", "vllm-0-2"]
    assert len({json.dumps(annotations(action)) for action in actions}) == 1
    gates = [{"$patch": "delete", "name": "lockstep.dev/group"}]
    assert [action.body["spec"] for action in actions] == [{"schedulingGates": gates}] * 3
    uids: list[Any] = [action.body["metadata"] for action in actions]
    assert [metadata["uid"] for metadata in uids] == [f"pod/{action.name}/1" for action in actions]


def test_c40_each_pods_task_group_is_listed_and_the_minimums_are_the_size() -> None:
    """For every size, with workers in time and late."""
    for size in (1, 2, 5):
        for late in (Plan().late, LEADER_READY):
            there = {} if late is Plan().late or size == 1 else {"worker_set": False}
            world = world_of(size=size, late=late, worker_set=there.get("worker_set", size > 1))
            actions = opening(world)
            groups = groups_of(actions[0])
            assert sum(group["minMember"] for group in groups) == size
            names = {
                pod["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] for pod in world.of_kind("Pod")
            }
            assert names <= {group["name"] for group in groups}
            assert all(group["minMember"] >= 1 for group in groups)


def test_c29_resources_come_from_the_pods_as_they_are_stored() -> None:
    """A sidecar that another webhook has added counts; pods that don't exist yet count by their template."""
    sidecar = {"name": "proxy", "resources": {"requests": {"cpu": "500m"}}}
    pod = world_of().objects["Pod", *LEADER]
    leader = {"spec": {"containers": [*pod["spec"]["containers"], sidecar]}}
    [first_group, second] = groups_of(opening(world_of(leader))[0])
    assert first_group["minResource"] == {"cpu": "1500m", "nvidia.com/gpu": "8"}
    assert second["minResource"] == {"cpu": "1", "nvidia.com/gpu": "8"}
    late = world_of(leader, late=LEADER_READY, worker_set=False)
    assert groups_of(opening(late)[0])[1]["minResource"] == {"cpu": "1", "nvidia.com/gpu": "8"}


def test_placeholders_may_go_where_their_pods_may() -> None:
    """Node selector, tolerations and affinity of leader and worker, each its own."""
    where = {
        "nodeSelector": {"pool": "h100"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    }
    [leader, worker] = groups_of(opening(world_of({}, {"spec": where}))[0])
    assert {key: worker[key] for key in where} == where
    assert not leader.keys() & where.keys()


def test_c13_exclusive_placement_reaches_the_placeholders() -> None:
    """The leader's affinity for all, and the label that it looks for; never the LWS name, which LWS would refuse."""
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}}
    leader = {"spec": {"affinity": affinity}, "metadata": {"annotations": EXCLUSIVE.annotations}}
    world = world_of(leader, size=3, late=EXCLUSIVE, worker_set=False)
    key = world.objects["Pod", *LEADER]["metadata"]["labels"][f"{LWS}group-key"]
    for group in groups_of(opening(world)[0]):
        assert group["affinity"] == affinity
        assert group["labels"] == {f"{LWS}group-key": key}


def test_what_was_declared_first_stays_for_the_rest() -> None:
    """A worker that comes later, or after a restart of the reconciler, gets what YuniKorn has read."""
    first_words = {TASK_GROUPS: '[{"name":"leader"}]', PARAMETERS: "placeholderTimeoutInSeconds=46"}
    [action] = opening(world_of({"spec": {"schedulingGates": None}, "metadata": {"annotations": first_words}}))
    assert action.name == "vllm-0-1"
    assert annotations(action) == first_words


def test_a_member_made_anew_is_opened_without_a_declaration() -> None:
    """YuniKorn reserves nothing for an application that runs; after a restart it would reserve all of it again."""
    [action] = opening(world_of(STRIPPED))
    assert annotations(action) == {}


def test_a_timeout_is_counted_from_the_opening() -> None:
    """YuniKorn counts from the pod's creation: 26 s behind the gate are added to the 20 that were asked for."""
    world = world_of(lws_annotations={"lockstep.dev/schedule-timeout": "20"})
    [action, _] = opening(world, CREATED + 26)
    assert annotations(action)[PARAMETERS] == "placeholderTimeoutInSeconds=46 gangSchedulingStyle=Hard"
    [action, _] = opening(world_of(), CREATED + 26)
    assert annotations(action)[PARAMETERS] == "gangSchedulingStyle=Hard"


def test_a_queue_is_a_label_unless_the_user_has_set_one() -> None:
    """The word for all schedulers, YuniKorn's own label before it."""
    queue = {"lockstep.dev/queue": "root.gpu"}
    [action, _] = opening(world_of(lws_annotations=queue))
    body: Any = action.body
    assert body["metadata"]["labels"] == {"yunikorn.apache.org/queue": "root.gpu"}
    own = {"metadata": {"labels": {"yunikorn.apache.org/queue": "root.own"}}}
    [action, _] = opening(world_of(own, own, lws_annotations=queue))
    body = action.body
    assert "labels" not in body["metadata"]


WAITS: dict[str, tuple[dict[str, Any], str]] = {
    "a worker is missing": ({"size": 3, "workers": 1}, "2 of 3 pods exist"),
    "the worker StatefulSet is missing": ({"worker_set": False}, "1 of 2 pods exist"),
    "another gate": (
        {"changes": {"vllm-0-1": {"spec": {"schedulingGates": [{"name": "lockstep.dev/group"}, {"name": "k"}]}}}},
        'gate "k" holds its pods',
    ),
}


@pytest.mark.parametrize(("difference", "reason"), WAITS.values(), ids=WAITS)
def test_a_replica_that_can_not_be_placed_yet_is_not_opened(difference: dict[str, Any], reason: str) -> None:
    """It would hold the turn, and room, for pods that can't come."""
    world = World(*replica(provider=YUNIKORN, **difference))
    assert read_whole(stand(world), world.configuration) == NotYet(reason, 0.0)


UNSTAMPED: JsonObject = {
    "metadata": {
        "labels": {"lockstep.dev/group": None, "yunikorn.apache.org/app-id": None},
        "annotations": {"yunikorn.apache.org/task-group-name": None},
    },
    "spec": {"schedulingGates": None},
}


def test_a_replica_is_opened_without_pods_that_are_no_members() -> None:
    """A worker admitted while the webhook was away is placed alone; the rest is a gang, and not left behind."""
    world = world_of({}, {}, UNSTAMPED, size=3)
    actions = opening(world)
    assert [action.name for action in actions] == ["vllm-0", "vllm-0-1"]
    assert [(group["name"], group["minMember"]) for group in groups_of(actions[0])] == [("leader", 1), ("worker", 1)]
    message = "pod team-a/vllm-0-2: was admitted without its group, and YuniKorn places it alone"
    assert said(tend(world)) == [("UnstampedPod", message)]


def test_workers_of_a_leader_without_a_stamp_are_not_left_behind() -> None:
    """It was admitted while the webhook was away: its workers are a gang by themselves."""
    actions = opening(world_of(UNSTAMPED, size=3))
    assert [action.name for action in actions] == ["vllm-0-1", "vllm-0-2"]
    assert [(group["name"], group["minMember"]) for group in groups_of(actions[0])] == [("worker", 2)]


def test_a_pod_without_a_stamp_that_goes_is_waited_for() -> None:
    """It comes back with one."""
    leaving = merged(UNSTAMPED, {"metadata": {"deletionTimestamp": "2026-11-29T22:06:32Z"}})
    world = world_of({}, leaving)
    assert read_whole(stand(world), world.configuration) == NotYet("1 of 2 pods exist", 0.0)


def test_an_unstamped_pod_is_made_anew_where_that_is_chosen() -> None:
    """A gate can't be put on a pod that exists."""
    head = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Configuration"}
    world = World(
        *replica(provider=YUNIKORN, stamped=False), configuration=configuration_of({**head, "repair": RECREATE})
    )
    assert [type(action).__name__ for action in writes_of(tend(world))] == ["DeletePod"]


@pytest.mark.parametrize("changes", [(BOUND, BOUND), (STRIPPED, BOUND)], ids=["whole", "half taken back"])
def test_the_declaration_comes_off_once_all_are_placed(changes: tuple[JsonObject, ...]) -> None:
    """Each pod in one patch that names its UID; a reconciler that was killed in between goes on."""
    world = world_of(*changes)
    writes = writes_of(tend(world))
    off = dict.fromkeys((TASK_GROUPS, PARAMETERS))
    expected = [name for name, change in zip(("vllm-0", "vllm-0-1"), changes, strict=True) if change is BOUND]
    assert writes == [
        PatchPod("team-a", name, {"metadata": {"uid": f"pod/{name}/1", "annotations": off}}) for name in expected
    ]
    world.settle()
    assert stand(world).declared == ()


@pytest.mark.parametrize("changes", [(OPEN, OPEN), (BOUND, OPEN), (BOUND, {}), ({}, {})])
def test_the_declaration_stays_while_anyone_is_missing(changes: tuple[JsonObject, ...]) -> None:
    """YuniKorn reads it again after a restart."""
    assert writes_of(tend(world_of(*changes))) == []


def test_the_declaration_of_late_workers_comes_off_when_their_room_is_held_no_more() -> None:
    """15 minutes after the leader was placed, or what was asked; else a restart of YuniKorn might kill the leader."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-29T22:06:32Z"}
    leader = merged(BOUND, {"status": {"conditions": [placed]}})
    late: dict[str, Any] = {"size": 3, "late": LEADER_READY, "worker_set": False}
    waits = LookAgain(900.0 - 40, "room is held for members that have not come")
    assert tend(world_of(leader, **late), CREATED + 100) == (waits,)
    assert [type(action) for action in tend(world_of(leader, **late), CREATED + 961)] == [PatchPod]
    asked: dict[str, Any] = {**late, "lws_annotations": {"lockstep.dev/schedule-timeout": "20"}}
    assert [type(action) for action in tend(world_of(leader, **asked), CREATED + 81)] == [PatchPod]


NOBODYS: dict[str, tuple[dict[str, Any], Configuration | None]] = {
    "YuniKorn is not configured any more": ({}, Configuration({"default-scheduler": "native"})),
    "the scheduler is another provider's now": ({}, Configuration({"yunikorn": "volcano"})),
    "the template keeps Lockstep away": ({"metadata": {"labels": {"lockstep.dev/gang": "off"}}}, None),
    "someone else has put it into an application": (
        {"metadata": {"labels": {"yunikorn.apache.org/app-id": "theirs"}}},
        None,
    ),
}


@pytest.mark.parametrize(("change", "configuration"), NOBODYS.values(), ids=NOBODYS)
def test_a_gate_that_nobody_opens_is_taken_off(change: JsonObject, configuration: Configuration | None) -> None:
    """Without a declaration, and told; no pod of ours is left gated for good."""
    world = world_of(change, change, configuration=configuration or default_configuration())
    actions = tend(world)
    opened = [action for action in actions if isinstance(action, OpenGate)]
    assert [action.name for action in opened] == ["vllm-0", "vllm-0-1"]
    assert [annotations(action) for action in opened] == [{}, {}]
    assert [reason for reason, _ in said(actions)].count("GateReleased") == 2


def test_a_leader_that_goes_takes_its_gates_along() -> None:
    """Nothing is opened for a replica that is being deleted."""
    gone = {"metadata": {"deletionTimestamp": "2026-11-29T22:06:32Z"}}
    world = world_of(gone, configuration=Configuration({"default-scheduler": "native"}))
    assert writes_of(tend(world)) == []


def test_words_that_yunikorn_has_nothing_for_are_told() -> None:
    """With the nearest thing that it has; the others are in the declaration."""
    words = {"lockstep.dev/topology": "rack", "lockstep.dev/priority-class": "high", "lockstep.dev/queue": "root.gpu"}
    found = said(tend(world_of(lws_annotations=words)))
    assert [reason for reason, _ in found] == ["WordNotHonoured", "WordNotHonoured"]
    assert any("placeholders have too" in message for _, message in found)


def test_a_template_that_is_no_quantity_is_told() -> None:
    """By its field; nothing is opened for it, and it holds up nobody."""
    world = world_of(size=2, late=LEADER_READY, worker_set=False)
    for revision in world.of_kind("ControllerRevision"):
        template = revision["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    path = "workerTemplate.spec.containers[0].resources.requests[cpu]"
    message = f'no gate is opened: {path}: must be a quantity, got "lots"'
    assert said(tend(world)) == [("BadTemplate", message)]
    assert take_turns(line_up([see(world)], world.configuration), world.configuration).openings == ()
