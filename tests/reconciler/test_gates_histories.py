"""Gates under YuniKorn, through whatever happens, in any order: held against the model of YuniKorn."""

import itertools
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.gates import open_gates, read_whole, standing_of
from schedulers.configuration import Configuration
from schedulers.contract import Replica
from tests.reconciler.sights import merged
from tests.reconciler.yunikorn_model import bound, is_placeholder
from tests.reconciler.yunikorn_play import Play, gated, size_of

T = TypeVar("T")

LEADER_READY = {"startupPolicy": "LeaderReady"}


def check_moment(play: Play) -> None:
    """Check what holds at every moment: one replica is open at the most, and placeholders stand for that one alone."""
    opened = play.open()
    assert len(opened) <= 1, f"opened at once: {opened}"


def check_rest(play: Play) -> None:
    """Check what holds once everybody has done what there is to do.

    A replica that was whole, or whose late workers came after YuniKorn had let their room go, may wait for a worker.
    """
    assert set(play.in_part()) <= play.disturbed | play.yunikorn.gave_up
    waiting = [pods for pods in play.replicas().values() if len(pods) == size_of(pods[0]) and all(map(gated, pods))]
    assert not waiting or play.open(), f"left gated, though nobody holds the turn: {waiting[0][0]['metadata']['name']}"
    whole = set(play.whole())
    assert [pod["metadata"]["name"] for pod in play.declared() if app(pod) in whole] == []


def app(pod: dict[str, dict[str, dict[str, str]]]) -> str:
    """Give the application of a pod."""
    return pod["metadata"]["labels"]["yunikorn.apache.org/app-id"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reconcile"), st.integers(1, 3)),
        st.tuples(st.just("reconcile"), st.just(99)),
        st.tuples(st.just("lws"), st.integers(1, 6)),
        st.tuples(st.just("schedule"), st.integers(0, 99)),
        st.tuples(st.just("schedule"), st.integers(0, 99)),
        st.tuples(st.just("replicas"), st.integers(0, 4)),
        st.tuples(st.just("delete leader"), st.integers(0, 9)),
        st.tuples(st.just("delete worker"), st.integers(0, 9)),
        st.tuples(st.just("add nodes"), st.integers(1, 2)),
        st.tuples(st.just("restart YuniKorn"), st.just(0)),
        st.tuples(st.just("time"), st.sampled_from([5, 400, 1000])),
    ),
    max_size=40,
)
SETS = st.lists(st.sampled_from([(1, False), (2, False), (3, False), (2, True), (3, True)]), min_size=1, max_size=3)


def act(play: Play, what: str, number: int, sizes: list[tuple[int, bool]]) -> None:
    """Do one thing that happens in a cluster."""
    leaders = play.leaders()
    workers = [pod for pod in play.all() if pod["metadata"]["name"].count("-") > 1 and not is_placeholder(pod)]
    deeds: dict[str, Callable[[], object]] = {
        "reconcile": lambda: play.reconciler(number),
        "lws": lambda: [play.lws_controller() for _ in range(number)],
        "schedule": lambda: play.scheduler(lambda moves: number % moves),
        "replicas": lambda: apply(play, sizes, replicas=number),
        "delete leader": lambda: one_of(leaders, number, lambda leader: play.delete_leader(leader[1], leader[0])),
        "delete worker": lambda: one_of(workers, number, play.delete_worker),
        "add nodes": lambda: play.add_nodes(number),
        "restart YuniKorn": play.yunikorn.restart,
        "time": lambda: setattr(play, "now", play.now + number),
    }
    deeds[what]()


def one_of(things: list[T], number: int, do: Callable[[T], None]) -> None:
    """Do something to one of some things, if there is any."""
    if things:
        do(things[number % len(things)])


def apply(play: Play, sizes: list[tuple[int, bool]], *, replicas: int) -> None:
    """Apply some LWS of one replica count, with late workers or without."""
    for number, (size, late) in enumerate(sizes):
        play.apply(f"set{number}", size=size, replicas=replicas, spec=LEADER_READY if late else {})


@settings(max_examples=60, deadline=None)
@given(sizes=SETS, steps=STEPS, nodes=st.integers(0, 6), luck=st.integers(0, 97), settled=st.booleans())
def test_through_any_history_one_replica_is_open_and_none_is_left_behind(
    sizes: list[tuple[int, bool]], steps: list[tuple[str, int]], nodes: int, luck: int, *, settled: bool
) -> None:
    """Whatever happens, whenever the reconciler is killed: one open at a time, nobody forgotten, nothing opened twice.

    Each reconcile is that of a process that has just been started, and may end after any write of it. In the end there
    is room for all: then all are whole, no pod carries task groups, and a restart of YuniKorn reserves nothing.
    """
    play = Play(nodes)
    apply(play, sizes, replicas=2)
    if settled:
        play.settle()
    for what, number in steps:
        act(play, what, number, sizes)
        check_moment(play)
    play.settle(lambda moves: luck % moves)
    check_moment(play)
    check_rest(play)

    play.add_nodes(40)
    play.settle(lambda moves: luck % moves)
    assert len(play.whole()) == len(play.replicas())
    assert list(play.declared()) == []
    play.yunikorn.restart()
    play.settle()
    assert play.placeholders() == []
    assert len(play.whole()) == len(play.replicas())


def test_ten_replicas_on_four_nodes() -> None:
    """Two are whole, one holds what it has got, seven have no placeholder: 2 of them pending instead of 16."""
    play = Play(nodes=4)
    play.apply(replicas=10)
    play.settle()
    assert (len(play.whole()), play.in_part(), len(play.open())) == (2, [], 1)
    assert len(play.placeholders()) == 2
    assert sum(all(map(gated, pods)) for pods in play.replicas().values()) == 7


@pytest.mark.parametrize("pick", [lambda _: 0, lambda moves: moves - 1], ids=["first to first", "last to first"])
def test_two_nodes_at_once_make_one_replica_whole(pick: Callable[[int], int]) -> None:
    """Whoever of the placeholders is tried first: they are of one replica."""
    play = Play()
    play.apply(replicas=4)
    play.settle(pick)
    play.add_nodes(2)
    play.settle(pick)
    assert (len(play.whole()), play.in_part()) == (1, [])


def test_the_model_shows_what_happens_without_turns() -> None:
    """With all gates open at once each of two nodes goes to another replica, and both wait: seen in 4 of 6 tries."""
    play = Play()
    play.apply(replicas=2)
    while play.lws_controller():
        pass
    for sight in play.sights():
        standing = standing_of(sight, play.configuration)
        assert standing is not None
        replica = read_whole(standing, play.configuration)
        assert isinstance(replica, Replica)
        for action in open_gates(standing, replica):
            play.world.carry_out(action)
    while play.scheduler():
        pass
    play.add_nodes(2)
    turn = itertools.chain((0, 2), itertools.repeat(0))
    while play.scheduler(lambda moves: min(next(turn), moves - 1)):
        pass
    assert len({app(pod) for pod in play.placeholders() if bound(pod)}) == 2
    assert play.whole() == []


def test_late_workers_find_their_room_held() -> None:
    """LeaderReady: an ordinary pod does not get in between, and the next replica waits until all workers are placed."""
    play = Play(nodes=3)
    play.apply("late", size=3, spec=LEADER_READY)
    play.lws_controller()
    while play.reconciler() or play.scheduler():
        pass
    [leader] = [pod for pod in play.all() if not is_placeholder(pod)]
    assert bound(leader)
    held = [pod for pod in play.placeholders() if bound(pod)]
    assert len(held) == 2
    play.apply("next", size=1)
    play.settle()
    assert play.in_part() == []
    assert len(play.whole()) == 1
    assert [app(pod) for pod in play.all() if app(pod) in play.whole()] == [app(leader)] * 3


def test_a_leader_that_never_gets_ready_holds_the_turn_no_longer_than_its_room() -> None:
    """After 15 minutes YuniKorn lets the placeholders go, and the next replica is opened; what was declared is gone."""
    play = Play(nodes=3)
    play.apply("late", size=3, spec=LEADER_READY)
    play.lws_controller()
    while play.reconciler() or play.scheduler():
        pass
    play.apply("next", size=1)
    while add_leader(play, "next"):
        pass
    while play.reconciler() or play.scheduler():
        pass
    assert [gated(pod) for pod in play.all() if pod["metadata"]["name"] == "next-0"] == [True]
    play.now += 1000
    while play.reconciler() or play.scheduler():
        pass
    assert [bound(pod) for pod in play.all() if pod["metadata"]["name"] == "next-0"] == [True]
    assert list(play.declared()) == []


def add_leader(play: Play, name: str) -> bool:
    """Let LWS make the leader of one LWS alone."""
    others = [lws for lws in play.world.of_kind("LeaderWorkerSet") if lws["metadata"]["name"] != name]
    play.world.remove(*others)
    acted = play.lws_controller()
    play.world.put(*others)
    return acted


def test_two_namespaces_with_one_name_are_two_applications() -> None:
    """An application id is unique in the cluster; a shared one would have one gang for both."""
    play = Play(nodes=4)
    play.apply("vllm", "team-a")
    play.apply("vllm", "team-b")
    play.settle()
    assert len(play.replicas()) == 2
    assert len(play.whole()) == 2
    assert {pod["metadata"]["namespace"] for pods in play.replicas().values() for pod in pods} == {"team-a", "team-b"}


def test_a_new_leader_is_a_new_application() -> None:
    """The same id would get no second reservation: the new pods would be placed one by one."""
    play = Play(nodes=2)
    play.apply()
    play.settle()
    before = set(play.replicas())
    play.delete_leader()
    play.settle()
    assert len(play.whole()) == 1
    assert not before & set(play.replicas())


def test_yunikorn_taken_out_of_the_configuration_leaves_no_gate() -> None:
    """What waits is let go, one by one as YuniKorn would without Lockstep."""
    play = Play()
    play.apply(replicas=3)
    while play.lws_controller():
        pass
    assert all(map(gated, play.all()))
    play.configuration = Configuration({"default-scheduler": "native"})
    play.settle()
    assert not any(map(gated, play.all()))


def test_gates_of_others_stay_and_their_pods_do_not_hold_the_turn() -> None:
    """Kueue holds the older replica: the younger one is opened; ours comes off the older one after Kueue's."""
    play = Play()
    play.apply("a")
    while play.lws_controller():
        pass
    for pod in play.all():
        gates = [*pod["spec"]["schedulingGates"], {"name": "kueue.x-k8s.io/admission"}]
        play.world.put(merged(pod, {"spec": {"schedulingGates": gates}}))
    play.apply("b")
    play.settle()
    assert [name[:1] for name in play.open()] == ["b"]
    held = [pod["spec"]["schedulingGates"] for pod in play.all() if pod["metadata"]["name"].startswith("a")]
    assert held == [[{"name": "lockstep.dev/group"}, {"name": "kueue.x-k8s.io/admission"}]] * 2


def test_hard_and_a_restart_kill_what_still_carries_its_declaration() -> None:
    """Why it is taken off: the same restart leaves a replica alone from which it was taken."""
    play = Play(nodes=2)
    play.apply(annotations={"lockstep.dev/schedule-timeout": "20"})
    while play.lws_controller() or bool(play.open()) < bool(play.reconciler()) or play.scheduler():
        pass
    play.settle()
    kept = list(play.all())
    play.now += 60
    play.yunikorn.restart()
    assert {pod["status"]["phase"] for pod in play.all()} == {"Running"}
    declaration = {
        "yunikorn.apache.org/task-groups": '[{"name":"leader","minMember":1,"minResource":{"nvidia.com/gpu":"8"}}]',
        "yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=20 gangSchedulingStyle=Hard",
    }
    for pod in kept:
        play.world.put(merged(pod, {"metadata": {"annotations": declaration}}))
    play.yunikorn.restart()
    assert {pod["status"]["phase"] for pod in play.all()} == {"Failed"}
