"""`lockstep move` and `lockstep adopt` on the real control plane: no replica in part, no group left, no two owners."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from reconciler.rights import moving_rights, policy_rules
from schedulers.registry import all_providers
from tests.cluster.lockstep import Lockstep
from tests.cluster.lws import NAME_LABEL
from tests.cluster.recording import DELETED, Recording, Version
from tests.cluster.resources import COSCHEDULING_GROUPS, NATIVE_GROUPS, PODS
from tests.cluster.scenarios import COSCHEDULING, NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import LockstepFactory

GROUP = "lockstep.dev/group"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
MEMBERSHIP = "scheduling.x-k8s.io/pod-group"
SIZE = 2
LONGEST_BINDING = 10.0
"""Seconds for the bindings of one group, one after the other, on a busy machine."""


@pytest.fixture
def plane(coscheduling_plane: ControlPlane) -> ControlPlane:
    """The control plane, emptied, with a user who may move sets."""
    coscheduling_plane.reset()
    coscheduling_plane.access.grant("mover", policy_rules(moving_rights(all_providers().values())))
    return coscheduling_plane


@pytest.fixture
def churn(plane: ControlPlane) -> Iterator[None]:
    """Others come and go on nodes of their own, on both schedulers, more than fit."""
    plane.nodes.add(["o1", "o2"], labels={"pool": "others"})
    over = threading.Event()

    def work() -> None:
        pool = {"nodeSelector": {"pool": "others"}}
        plane.lws.create("native-others", 2, SIZE, pod=pool)
        plane.lws.create("other-others", 2, SIZE, scheduler=COSCHEDULING.name, pod=pool)
        for turn in range(200):
            if over.wait(1):
                return
            plane.lws.scale("native-others", turn % 3)
            plane.lws.scale("other-others", (turn + 1) % 3)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(30)


@pytest.mark.usefixtures("churn")
def test_an_lws_moves_there_and_back_under_load(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Replica by replica, each whole or absent all the time; afterwards no group of the scheduler that it left."""
    run_lockstep(plane)
    plane.nodes.add([f"n{number}" for number in range(1, 9)], labels={"pool": "ours"})
    with Recording(plane, PODS, NATIVE_GROUPS, COSCHEDULING_GROUPS) as recording:
        plane.lws.create("vllm", 3, SIZE, pod={"nodeSelector": {"pool": "ours"}})
        plane.wait("three replicas whole", lambda: plane.lws.whole("vllm", SIZE) == [0, 1, 2])

        code, told = lockstep_command(plane, "move", "lws/vllm", "--to", "coscheduling")
        assert code == 0, told
        assert (
            told.splitlines()[-1]
            == "all replicas are with Coscheduling (scheduler-plugins), and no group of another scheduler is left"
        )
        assert stamps(plane) == {("scheduler-plugins-scheduler", True, False)}
        assert groups(plane) == [0, 3]

        code, told = lockstep_command(plane, "move", "vllm", "--to", "default-scheduler")
        assert code == 0, told
        assert stamps(plane) == {("default-scheduler", False, True)}
        assert groups(plane) == [3, 0]
        plane.wait("recording is whole", recording.caught_up)
        assert in_part(recording) == []
        assert two_owners(recording) == []


def test_an_interrupted_move_goes_on(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """A dry run changes nothing; a move whose time is over says so, and the same command ends it."""
    run_lockstep(plane)
    plane.nodes.add(["n1", "n2"], gpus=32)
    plane.lws.create("vllm", 2, SIZE, gpus=4)
    plane.wait("two replicas whole", lambda: plane.lws.whole("vllm", SIZE) == [0, 1])
    before = stamps(plane)
    code, told = lockstep_command(plane, "move", "vllm", "--to", "coscheduling", "--dry-run")
    assert (code, stamps(plane)) == (0, before)
    to = '"scheduler-plugins-scheduler", Coscheduling (scheduler-plugins), replica by replica'
    assert told == f'default/vllm: from "default-scheduler" to {to}\n'
    code, told = lockstep_command(plane, "move", "vllm", "--to", "coscheduling", "--timeout", "0")
    assert code == 1
    assert told.endswith("LWS goes on with it, and the same command waits for it again\n")
    code, told = lockstep_command(plane, "move", "vllm", "--to", "coscheduling", "--timeout", "120")
    assert code == 0, told
    assert told.startswith(
        'default/vllm: its templates name "scheduler-plugins-scheduler", Coscheduling (scheduler-plugins), already\n'
    )
    assert stamps(plane) == {("scheduler-plugins-scheduler", True, False)}


def test_replicas_from_before_are_adopted_one_by_one(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Replicas that kube-scheduler has placed pod by pod are listed, made anew in groups, and then nothing is left."""
    plane.nodes.add(["n1", "n2"], gpus=32)
    plane.lws.create("vllm", 2, SIZE, gpus=4)
    plane.wait("placed", lambda: plane.lws.whole("vllm", SIZE) == [0, 1])
    run_lockstep(plane)
    code, told = lockstep_command(plane, "adopt", "--dry-run")
    assert (code, told.splitlines()) == (
        0,
        [
            "default/vllm: 2 replicas of native to adopt",
            "  admitted without a group: vllm-0, vllm-1: each replica is made anew",
        ],
    )
    code, told = lockstep_command(plane, "adopt", "vllm")
    assert code == 0, told
    assert stamps(plane) == {("default-scheduler", False, True)}
    assert plane.lws.whole("vllm", SIZE) == [0, 1]
    assert lockstep_command(plane, "adopt", "vllm") == (0, "default/vllm: has no replica to adopt\n")


def test_groups_written_by_hand_are_adopted(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The keys come off the template, the replicas roll into groups of ours, and the user's own object stays."""
    run_lockstep(plane)
    plane.nodes.add(["n1", "n2"], gpus=32)
    plane.api.create(COSCHEDULING_GROUPS, COSCHEDULING_GROUPS.make("mine", "default", spec={"minMember": 1}))
    by_hand = {"labels": {MEMBERSHIP: "mine"}}
    plane.lws.create("vllm", 2, SIZE, scheduler=COSCHEDULING.name, gpus=4, pod_metadata=by_hand)
    plane.wait("placed", lambda: plane.lws.whole("vllm", SIZE) == [0, 1])

    code, told = lockstep_command(plane, "move", "vllm", "--to", "native")
    assert code == 1
    assert told == (
        f"spec.leaderWorkerTemplate.workerTemplate.metadata.labels[{MEMBERSHIP}]: must not be written by hand, got "
        '"mine": `lockstep adopt` takes it off\n'
    )
    code, told = lockstep_command(plane, "adopt", "--all")
    assert code == 0, told
    assert "written by hand: vllm-0 (mine), vllm-1 (mine)" in told
    found = plane.api.items(COSCHEDULING_GROUPS)
    ours = {group["metadata"]["name"] for group in found if GROUP in group["metadata"].get("labels", {})}
    assert {group["metadata"]["name"] for group in found} - ours == {"mine"}
    assert {pod["metadata"]["labels"][MEMBERSHIP] for pod in plane.lws.pods("vllm")} == ours


def test_uninstalling_leaves_running_replicas_running(plane: ControlPlane, tmp_path: Path) -> None:
    """The command says what stays; without Lockstep the replicas run on, and their groups go when they go."""
    plane.nodes.add(["n1", "n2"], gpus=32)
    with Lockstep(plane, tmp_path / "lockstep"):
        plane.lws.create("vllm", 2, SIZE, gpus=4)
        plane.wait("whole", lambda: plane.lws.whole("vllm", SIZE) == [0, 1])
        code, told = lockstep_command(plane, "uninstall")
        assert code == 0, told
        lines = told.splitlines()
        assert lines[0] == "2 of 2 replicas in groups of ours run, and go on running"
        assert lines[1].startswith("podgroups.scheduling.k8s.io/v1beta1: 2 stay, each until its leader pod is gone")
        pods = {pod["metadata"]["uid"] for pod in plane.lws.pods("vllm")}
    plane.holds("the same pods", lambda: {pod["metadata"]["uid"] for pod in plane.lws.pods("vllm")} == pods, 3)
    plane.lws.delete("vllm")
    plane.wait("nothing left", lambda: not plane.lws.pods("vllm") and not plane.api.items(NATIVE.groups))


def lockstep_command(plane: ControlPlane, *words: str) -> tuple[int, str]:
    """Run a command as the user who may move; gives its exit code and what it said."""
    command = [sys.executable, "-m", "lockstep", *words, "--kubeconfig", str(plane.kubeconfig("mover"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr or done.stdout


def stamps(plane: ControlPlane) -> set[tuple[str, bool, bool]]:
    """What the pods carry: their scheduler, coscheduling's label, native's field."""
    return {
        (
            pod["spec"]["schedulerName"],
            MEMBERSHIP in pod["metadata"]["labels"],
            "schedulingGroup" in pod["spec"],
        )
        for pod in plane.lws.pods("vllm")
    }


def groups(plane: ControlPlane) -> list[int]:
    """How many groups of the set there are: native, coscheduling."""
    selector = f"{NAME_LABEL}=vllm"
    return [len(plane.api.items(kind, "default", selector)) for kind in (NATIVE_GROUPS, COSCHEDULING_GROUPS)]


def in_part(recording: Recording) -> list[str]:
    """Say which replicas stood in part for longer than bindings take, by every version of every pod."""
    lives: dict[str, list[Version]] = defaultdict(list)
    for version in recording.of(PODS):
        group = version.body["metadata"].get("labels", {}).get(GROUP)
        if group is not None:
            lives[group].append(version)
    return [f"{group}: {problem}" for group, versions in lives.items() if (problem := _in_part(versions))]


def _in_part(versions: list[Version]) -> str:
    """Follow one incarnation up to its first deletion."""
    bound: set[str] = set()
    first = 0.0
    for version in versions:
        if version.change == DELETED or version.body["metadata"].get("deletionTimestamp"):
            break
        if version.body["spec"].get("nodeName") and version.uid not in bound:
            first = first or version.moment
            bound.add(version.uid)
            if len(bound) == SIZE:
                late = version.moment - first
                return f"took {late:.1f} s" if late > LONGEST_BINDING else ""
    else:
        return "ended in part" if bound else ""
    return "was ended in part" if bound and version.moment - first > LONGEST_BINDING else ""


def two_owners(recording: Recording) -> list[str]:
    """Say which pods carried the keys of two schedulers at once."""
    return [
        version.name
        for version in recording.of(PODS)
        if "schedulingGroup" in version.body["spec"] and MEMBERSHIP in version.body["metadata"].get("labels", {})
    ]
