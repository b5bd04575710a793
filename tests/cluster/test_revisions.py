"""Replicas of an old revision that are rebuilt while the LWS has another size already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.as_built import Numbers, astray, numbers_of
from tests.cluster.lws import lws_manifest
from tests.cluster.recording import Recording
from tests.cluster.resources import PODS, STATEFUL_SETS
from tests.cluster.scenarios import ON_BOTH, Scheduler

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import Lockstep
    from tests.cluster.resources import Json

KEEP_FIRST = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": 1}}
OLD_GPUS, NEW_GPUS = 4, 2
REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"
SIZE = "leaderworkerset.sigs.k8s.io/size"
BACKED_OFF = 90
"""Seconds; LWS's controller waits longer and longer after errors of its own."""


@pytest.fixture
def plane(coscheduling_plane: ControlPlane, lockstep: Lockstep) -> ControlPlane:
    """The control plane, emptied, with Lockstep and room for everything."""
    assert lockstep.webhook.alive
    coscheduling_plane.reset()
    coscheduling_plane.nodes.add(["n1", "n2"], gpus=64, cpu="64", memory="256Gi")
    return coscheduling_plane


@ON_BOTH
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(2, 3, id="rebuilt larger"),
        pytest.param(3, 2, id="rebuilt smaller"),
        pytest.param(1, 2, id="rebuilt with a worker"),
        pytest.param(2, 1, id="rebuilt without workers"),
    ],
)
def test_an_old_replica_rebuilt_in_another_size_has_the_numbers_it_was_built_with(
    plane: ControlPlane, scheduler: Scheduler, old: int, new: int
) -> None:
    """LWS 0.8.0 builds it of its own revision's template, but in the live size: so says its group, and it starts."""
    with Recording(plane, PODS, STATEFUL_SETS, scheduler.groups) as recording:
        plane.lws.create("vllm", 2, old, scheduler=scheduler.name, gpus=OLD_GPUS, rolloutStrategy=KEEP_FIRST)
        plane.wait("both replicas whole", lambda: plane.lws.whole("vllm", old) == [0, 1])
        template = lws_manifest("vllm", 2, new, scheduler=scheduler.name, gpus=NEW_GPUS)["spec"]["leaderWorkerTemplate"]
        plane.lws.change("vllm", {"leaderWorkerTemplate": template})
        plane.wait("the second is rolled over", lambda: rolled_over(plane, new), BACKED_OFF)

        before = plane.api.get(PODS, "vllm-0")
        plane.api.delete(PODS, "vllm-0", grace=0)
        after = plane.wait("the first is rebuilt whole", lambda: rebuilt(plane, before, new), BACKED_OFF)
        assert after is not None
        assert after["metadata"]["labels"][REVISION] == before["metadata"]["labels"][REVISION]
        assert after["metadata"]["annotations"][SIZE] == str(old)

        gpus = new * OLD_GPUS if scheduler.provider == "coscheduling" else None
        group = plane.api.get(scheduler.groups, after["metadata"]["labels"]["lockstep.dev/group"])
        assert numbers_of(scheduler, group) == Numbers(new, gpus)
        plane.wait("recording is whole", recording.caught_up)
        assert astray(recording, scheduler) == []


def rolled_over(plane: ControlPlane, size: int) -> bool:
    """Is the second replica whole on the new revision, while the first is still on the old one?"""
    first, second = (plane.api.get(PODS, f"vllm-{index}") for index in (0, 1))
    new = second["metadata"]["labels"][REVISION] != first["metadata"]["labels"][REVISION]
    return new and plane.lws.replicas("vllm")[1] == (size, size)


def rebuilt(plane: ControlPlane, before: Json, size: int) -> Json | None:
    """The new leader of the first replica, once the replica is whole."""
    leader = plane.api.get(PODS, "vllm-0")
    new = leader["metadata"]["uid"] != before["metadata"]["uid"]
    return leader if new and plane.lws.replicas("vllm")[0] == (size, size) else None
