"""Capacity that grows while replicas wait is used at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.cluster.evidence import name_of, target, writes
from tests.cluster.foreign_schedulers import TAKEN_BY_KAI
from tests.cluster.lws import lws_manifest
from tests.cluster.resources import PODS
from tests.cluster.scenarios import COSCHEDULING, KOORDINATOR, ON_ALL, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

PROMISE = 5
"""Seconds until the next replica is placed."""


@pytest.fixture
def plane(crowded_plane: ControlPlane, crowded_lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep."""
    assert crowded_lockstep.webhook.alive
    crowded_plane.reset()
    return crowded_plane


@dataclass(frozen=True)
class Growth:
    """A way in which room appears.

    Attributes:
        before: what there is beside three one-pod nodes, of which the replica that runs takes two.
        happens: makes room for one more pod.
        noticed: whether coscheduling may notice by itself. Cordoned nodes count in the sum that it compares with
            minResources, so it goes on to try each node.
    """

    before: Callable[[ControlPlane, Scheduler], object]
    happens: Callable[[ControlPlane], object]
    noticed: bool = False


def nothing(plane: ControlPlane, scheduler: Scheduler) -> None:
    """Leave things as they are."""


def cordoned_node(plane: ControlPlane, scheduler: Scheduler) -> None:  # noqa: ARG001 - one shape for all
    """A node that takes no pods."""
    plane.nodes.add(["n4"])
    plane.nodes.cordon("n4")


def other_lws(plane: ControlPlane, scheduler: Scheduler) -> None:
    """A node that another LWS takes."""
    plane.nodes.add(["n4"])
    plane.lws.create("other", 1, 1, scheduler=scheduler.name)
    plane.wait("the other LWS runs", lambda: plane.lws.whole("other", 1) == [0])


def plain_pod(plane: ControlPlane, scheduler: Scheduler) -> None:
    """A node that a pod of nobody takes."""
    plane.nodes.add(["n4"])
    spec = lws_manifest("any", 1, 1, scheduler=scheduler.name)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    # KAI places no pod without a group, so its podgrouper has to make one.
    plane.api.create(PODS, PODS.make("plain", metadata={"labels": {TAKEN_BY_KAI: "yes"}}, spec=spec))
    plane.wait("the plain pod runs", lambda: plane.api.get(PODS, "plain")["spec"]["nodeName"])


GROWTHS = {
    "a node is added": Growth(nothing, lambda plane: plane.nodes.add(["n4"])),
    "a node is made schedulable": Growth(cordoned_node, lambda plane: plane.nodes.uncordon("n4"), noticed=True),
    "a node is enlarged": Growth(nothing, lambda plane: plane.nodes.resize("n3", **{"nvidia.com/gpu": "16"})),
    "another LWS is deleted": Growth(other_lws, lambda plane: plane.lws.delete("other")),
    "a plain pod is deleted": Growth(plain_pod, lambda plane: plane.api.delete(PODS, "plain", grace=0)),
}


@ON_ALL
@pytest.mark.parametrize("growth", GROWTHS.values(), ids=GROWTHS)
def test_room_that_appears_is_used_within_five_seconds(
    plane: ControlPlane, scheduler: Scheduler, growth: Growth
) -> None:
    """The replica that waits is placed whole; coscheduling, which would sleep on, is woken by a touch of its group."""
    growth.before(plane, scheduler)
    plane.nodes.add(["n1", "n2", "n3"])
    plane.lws.create("vllm", 2, 2, scheduler=scheduler.name)
    plane.wait("one replica is whole", lambda: len(plane.lws.whole("vllm", 2)) == 1)
    plane.wait("two pods are refused", lambda: len(refused(plane)) == 2)
    plane.holds("one waits", lambda: len(plane.lws.whole("vllm", 2)) == 1 and len(refused(plane)) == 2, 1)
    waiting = {pod["metadata"]["labels"]["lockstep.dev/group"] for pod in refused(plane)}
    members = {pod["metadata"]["name"] for pod in refused(plane)} if scheduler is KOORDINATOR else set()

    since = plane.audit.offset()
    growth.happens(plane)
    plane.wait("the next replica is whole", lambda: len(plane.lws.whole("vllm", 2)) == 2, PROMISE)

    touches = writes(plane, since)
    on_pods = [event for event in touches if target(event) == "pods"]
    on_groups = [event for event in touches if target(event) != "pods"]
    assert {(event["verb"], name_of(event)) for event in on_pods} <= {("patch", name) for name in members}
    assert {name_of(event) for event in on_groups} <= (waiting if scheduler.touches else set())
    changes = {(verb, key) for event in on_groups for verb, key in changed(event)}
    assert changes <= {("patch", annotation) for annotation in scheduler.touches}
    if scheduler is COSCHEDULING and not growth.noticed:
        assert touches[0]["stageTimestamp"] < bindings(plane, since)[0]["stageTimestamp"]


def refused(plane: ControlPlane) -> list[Json]:
    """Pods of the LWS that their scheduler has refused."""
    pods = [pod for pod in plane.lws.pods("vllm") if not pod["spec"].get("nodeName")]
    return [pod for pod in pods if "PodScheduled" in {c["type"] for c in pod["status"].get("conditions", ())}]


def changed(event: Json) -> set[tuple[str, str]]:
    """The verb of a write, and the annotations that it changes; it changes nothing else."""
    assert event["requestObject"].keys() == {"metadata"}
    return {(event["verb"], annotation) for annotation in event["requestObject"]["metadata"]["annotations"]}


def bindings(plane: ControlPlane, since: int) -> list[Json]:
    """Pods that were given a node, oldest first."""
    events = plane.audit.events(verbs={"create"}, resource="pods", since=since)
    return [event for event in events if event["objectRef"].get("subresource") == "binding"]
