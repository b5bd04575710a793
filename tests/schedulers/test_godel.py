"""Lockstep beside Gödel, of which there is no build: against a model of its reactions, made from its source."""

from typing import Any, Final

import pytest

from schedulers.registry import all_providers
from tests.builders import LWS, JsonObject
from tests.reconciler.sights import merged
from tests.schedulers.godel_model import NAME, GodelModel
from tests.schedulers.scene import Scene, wholly_placed

GODEL: Final = all_providers()["godel"]
LATE: Final = {"spec": {"startupPolicy": "LeaderReady"}}


def started(room: int, **lws: Any) -> tuple[Scene, GodelModel]:
    """Apply an LWS and let it come up as far as the room goes."""
    scene = Scene(GODEL, room=room)
    scene.apply(**{"size": 3, **lws})
    model = GodelModel(scene)
    model.run()
    return scene, model


def reasons(pods: list[JsonObject]) -> set[str]:
    """Give the reasons that pods show, empty for no condition."""
    conditions = [one for pod in pods for one in pod["status"].get("conditions", [{}])]
    return {one.get("reason", "") for one in conditions if one.get("type", "PodScheduled") == "PodScheduled"}


def test_replicas_are_whole_or_absent_and_take_room_that_comes() -> None:
    """Three of three replicas' pods each, room for seven: two whole, and the third when room for it is there."""
    scene, model = started(7, replicas=3)
    assert sorted(wholly_placed(scene)) == [False, True, True]
    scene.room = 3
    model.run()
    assert all(wholly_placed(scene))
    assert {model.phase(group) for group in scene.groups()} == {"Scheduled"}


def test_a_replica_that_waits_for_months_is_placed_at_last() -> None:
    """The time-out counts from the PodGroup's creation and is final: without a word it is a year."""
    scene, model = started(0)
    model.pass_time(days=300)
    scene.room = 3
    model.run()
    assert scene.bound() == 3


@pytest.mark.parametrize("seconds", ["60", "300"])
def test_a_time_out_that_is_asked_for_is_final_for_one_incarnation(seconds: str) -> None:
    """Room that comes later helps nobody; a new leader has a new PodGroup, and is placed."""
    scene, model = started(0, annotations={"lockstep.dev/schedule-timeout": seconds})
    model.pass_time(seconds=int(seconds) + 1)
    model.run()
    scene.room = 3
    model.run()
    (lost,) = scene.groups()
    assert (model.phase(lost), scene.bound()) == ("Timeout", 0)
    scene.delete_leader()
    model.run()
    (made,) = scene.groups()
    assert made["metadata"]["name"] != lost["metadata"]["name"]
    assert scene.bound() == 3


def test_a_leader_that_comes_again_is_placed_as_a_whole_again() -> None:
    """A PodGroup that was placed once asks for nothing more; under its old name the new pods would go one by one."""
    scene, model = started(3)
    scene.delete_leader()
    scene.room = 2
    model.run()
    assert scene.bound() == 0
    scene.room = 3
    model.run()
    assert scene.bound() == 3


def test_late_workers_start_and_are_placed_one_by_one() -> None:
    """As the provider promises: the leader starts, and its workers take what room there is."""
    scene, model = started(2, **LATE)
    assert (scene.bound(), len(scene.pods())) == (2, 3)
    scene.room = 1
    model.run()
    assert scene.bound() == 3
    assert "one by one" in GODEL.late_workers.promise


@pytest.mark.parametrize(
    ("kept", "bound", "phase"),
    [("labels", 0, "PreScheduling"), ("annotations", 3, "Pending"), ("both", 3, "Scheduled")],
)
def test_both_label_and_annotation_are_needed(kept: str, bound: int, phase: str) -> None:
    """Without the annotation nothing is placed as a gang; without the label the phase never follows, and times out."""
    scene = Scene(GODEL, room=3)
    scene.apply(size=3)
    scene.run(scene.lws_controller, scene.reconciler)
    for pod in scene.pods():
        for where in {"labels", "annotations"} - {kept} if kept != "both" else ():
            scene.world.put(merged(pod, {"metadata": {where: {NAME: None}}}))
    model = GodelModel(scene)
    scene.run(model.controller, model.scheduler)
    (group,) = scene.groups()
    assert (scene.bound(), model.phase(group)) == (bound, phase)


def test_what_autoscalers_see_is_as_tabled() -> None:
    """A replica that lacks room carries a reason that none of them looks for; others carry nothing."""
    scene, _ = started(2)
    assert reasons(scene.pods()) == {GODEL.waiting.capacity}
    alone = Scene(GODEL, room=9)
    alone.apply(size=3)
    alone.run(alone.lws_controller)
    model = GodelModel(alone)
    alone.run(model.controller, model.scheduler)
    assert reasons(alone.pods()) == {GODEL.waiting.group}
    alone.run(alone.reconciler)
    alone.world.remove(alone.pods(worker_index="2")[0])
    alone.run(model.controller, model.scheduler)
    assert (alone.bound(), reasons(alone.pods())) == (0, {GODEL.waiting.members})
    assert [pod["metadata"]["labels"][f"{LWS}worker-index"] for pod in alone.pods()] == ["0", "1"]
