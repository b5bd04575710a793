"""Pods of a replica, sorted by what they carry."""

import msgspec
import pytest

from reconciler.objects import Metadata, Namespace
from reconciler.rolls import call_roll, kept_away, waits
from schedulers.configuration import default_configuration
from tests.builders import JsonObject
from tests.reconciler.sights import COSCHEDULING, NATIVE, Plan, World, decoded, pods_of, replica

GANG = "lockstep.dev/gang"
CHANGES: dict[str, tuple[JsonObject, str]] = {
    "stamped": ({}, "members"),
    "stamped, and opted out later": ({"metadata": {"labels": {GANG: "off"}}}, "members"),
    "the field was dropped": ({"spec": {"schedulingGroup": None}}, "dropped"),
    "neither label nor field": (
        {"spec": {"schedulingGroup": None}, "metadata": {"labels": {"lockstep.dev/group": None}}},
        "unstamped",
    ),
    "an empty field": (
        {"spec": {"schedulingGroup": {"podGroupName": None}}, "metadata": {"labels": {"lockstep.dev/group": None}}},
        "unstamped",
    ),
    "opted out": (
        {"spec": {"schedulingGroup": None}, "metadata": {"labels": {"lockstep.dev/group": None, GANG: "off"}}},
        "strangers",
    ),
    "another group": ({"spec": {"schedulingGroup": {"podGroupName": "theirs"}}}, "strangers"),
    "another scheduler of ours": ({"spec": {"schedulerName": "volcano"}}, "strangers"),
    "a scheduler of nobody": ({"spec": {"schedulerName": "bespoke"}}, "strangers"),
    "LWS's own Volcano provider": (
        {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "vllm-0-69fbc5554"}}},
        "strangers",
    ),
}


@pytest.mark.parametrize(("change", "place"), CHANGES.values(), ids=CHANGES.keys())
def test_a_worker_has_one_place(change: JsonObject, place: str) -> None:
    """Members, dropped, unstamped or strangers."""
    sight = World(*replica(changes={"vllm-0-1": change})).sight()
    roll = call_roll(sight, NATIVE, default_configuration())
    places = {name for name in ("members", "dropped", "unstamped", "strangers") if sight.pods[1] in getattr(roll, name)}
    assert places == {place}
    assert roll.members[0] == sight.leader


def test_another_name_of_the_same_scheduler_is_no_stranger() -> None:
    """Empty and `default-scheduler` mean the same."""
    sight = World(*replica(changes={"vllm-0-1": {"spec": {"schedulerName": ""}}})).sight()
    assert len(call_roll(sight, NATIVE, default_configuration()).members) == 2


KEPT_AWAY = {
    "nobody says anything": ({}, {}, True, False),
    "template": ({GANG: "off"}, {}, True, True),
    "namespace, before the replica began": ({}, {GANG: "off"}, False, True),
    "namespace, after the replica began": ({}, {GANG: "off"}, True, False),
    "another word on the namespace": ({}, {GANG: "on"}, False, False),
}


@pytest.mark.parametrize(("pod", "namespace", "stamped", "away"), KEPT_AWAY.values(), ids=KEPT_AWAY.keys())
def test_who_keeps_a_replica_away(pod: JsonObject, namespace: dict[str, str], *, stamped: bool, away: bool) -> None:
    """The template of its pods, and its namespace unless its leader is stamped and needs a group."""
    changes = {"vllm-0": {"metadata": {"labels": pod}}}
    sight = World(*replica(changes=changes, stamped=stamped)).sight()
    sight = msgspec.structs.replace(sight, namespace=Namespace(Metadata(labels=namespace)))
    assert kept_away(sight) is away


WAITS = {
    "no node": ({}, True),
    "a node": ({"spec": {"nodeName": "n1"}}, False),
    "a gate of someone's": ({"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}, False),
    "finished": ({"status": {"phase": "Failed"}}, False),
    "being deleted": ({"metadata": {"deletionTimestamp": "2026-11-29T22:05:32Z"}}, False),
}


@pytest.mark.parametrize(("change", "waiting"), WAITS.values(), ids=WAITS.keys())
def test_a_pod_waits_when_its_scheduler_may_place_it(change: JsonObject, *, waiting: bool) -> None:
    """Then, and only then, a touch of its group can help."""
    assert waits(decoded(pods_of(Plan(provider=COSCHEDULING, changes={"vllm-0": change}))[0])) is waiting
