"""Gates and the whole reconciler, against an API server over HTTP."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.api import load_api
from reconciler.clocks import seconds_time
from reconciler.loop import Reconciler
from schedulers.configuration import Configuration, default_configuration
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.fake_api import Answer, FakeApi, Seen, eventually, kubeconfig, status
from tests.reconciler.sights import LEADER_READY, YUNIKORN, Plan, merged, pods_of, worker_set
from tests.reconciler.test_loop import PODS, SETTINGS, STATEFUL_SETS, events, owner, put

STRATEGIC = "application/strategic-merge-patch+json"
TASK_GROUPS = "yunikorn.apache.org/task-groups"


class Running:
    """An API server and reconcilers beside it."""

    def __init__(self, fake: FakeApi, folder: Path) -> None:
        """Run nothing yet."""
        self.fake, self._folder = fake, folder
        self._running: list[Reconciler] = []
        self._api = load_api(kubeconfig(folder, fake))

    def start(self, configuration: Configuration | None = None) -> Reconciler:
        """Start a reconciler."""
        reconciler = Reconciler(self._api, configuration or default_configuration(), SETTINGS, identity="one")
        self._running.append(reconciler)
        reconciler.start()
        return reconciler

    def stop(self) -> None:
        """Stop them all."""
        for reconciler in self._running:
            reconciler.stop()
        self._api.close()

    def pod(self, name: str) -> JsonObject:
        """Give a pod as it is."""
        with self.fake.changed:
            found: JsonObject = self.fake.objects[PODS][NAMESPACE, name]
            return found

    def gated(self) -> list[str]:
        """Give the pods that have a gate."""
        with self.fake.changed:
            pods = self.fake.objects.get(PODS, {}).items()
            return sorted(name for (_, name), pod in pods if pod["spec"].get("schedulingGates"))

    def declared(self) -> list[str]:
        """Give the pods that carry task groups."""
        with self.fake.changed:
            pods = self.fake.objects.get(PODS, {}).items()
            return sorted(name for (_, name), pod in pods if TASK_GROUPS in pod["metadata"]["annotations"])

    def bind(self, *names: str) -> None:
        """Place pods."""
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": seconds_time(datetime.now(UTC))}
        for name in names:
            spec = {**self.pod(name)["spec"], "nodeName": "n1"}
            self.fake.update(PODS, NAMESPACE, name, spec=spec, status={"phase": "Running", "conditions": [placed]})

    def opened(self) -> Counter[str]:
        """Count the openings of each pod."""
        with self.fake.changed:
            return Counter(
                seen.path.rpartition("/")[2]
                for seen in self.fake.requests
                if seen.headers.get("content-type") == STRATEGIC
            )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """An API server, and reconcilers that are stopped at the test's end."""
    fake = FakeApi().start()
    running = Running(fake, tmp_path)
    yield running
    running.stop()
    fake.stop()


def soon(condition: Callable[[], object]) -> bool:
    """Wait for a condition; generously, for the machine may be busy."""
    return eventually(condition, 30)


def plan(index: int, **difference: object) -> Plan:
    """Plan a replica of YuniKorn's."""
    return Plan(provider=YUNIKORN, index=index, key=f"{index:040x}", **difference)  # type: ignore[arg-type]


def test_one_replica_after_the_other_is_opened_and_each_pod_once(running: Running) -> None:
    """The next when the one before is placed; task groups come off then. Each step costs one write a pod."""
    for index in range(3):
        put(running.fake, plan(index))
    running.start()
    for index in range(3):
        names = [f"vllm-{index}", f"vllm-{index}-1"]
        later = [f"vllm-{more}{end}" for more in range(index + 1, 3) for end in ("", "-1")]
        assert soon(lambda later=later: running.gated() == later)  # type: ignore[misc]
        assert running.declared() == names
        running.bind(*names)
    assert soon(lambda: running.declared() == [])
    assert set(running.opened().values()) == {1}


def test_a_replica_that_goes_gives_the_turn_away(running: Running) -> None:
    """Its leader is deleted while it waits."""
    for index in range(2):
        put(running.fake, plan(index))
    running.start()
    assert soon(lambda: running.gated() == ["vllm-1", "vllm-1-1"])
    running.fake.delete(PODS, NAMESPACE, "vllm-0")
    assert soon(lambda: running.gated() == [])


ENDS: dict[str, JsonObject] = {
    "its leader has failed": {"status": {"phase": "Failed"}},
    "it is opted out": {"metadata": {"labels": {"lockstep.dev/gang": "off"}}},
}


@pytest.mark.parametrize("change", ENDS.values(), ids=ENDS)
def test_a_replica_that_is_no_gang_any_more_gives_the_turn_away(running: Running, change: JsonObject) -> None:
    """At once, not at the next resync."""
    for index in range(2):
        put(running.fake, plan(index))
    running.start()
    assert soon(lambda: running.gated() == ["vllm-1", "vllm-1-1"])
    running.fake.write(PODS, NAMESPACE, merged(running.pod("vllm-0"), change), create=False)
    assert soon(lambda: running.gated() == [])


def test_late_workers_are_opened_when_they_come(running: Running) -> None:
    """With what was declared for their leader; the next replica waits for them."""
    late = plan(0, size=2, late=LEADER_READY, worker_set=False)
    put_leader(running.fake, late)
    running.start()
    assert soon(lambda: running.declared() == ["vllm-0"])
    put(running.fake, plan(0, lws="next"))
    running.bind("vllm-0")
    uid = running.pod("vllm-0")["metadata"]["uid"]
    there = plan(0, size=2, late=LEADER_READY)
    made = running.fake.write(
        STATEFUL_SETS, NAMESPACE, merged(worker_set(there), owner("Pod", "vllm-0", uid)), create=True
    )
    worker = merged(pods_of(there)[1], owner("StatefulSet", "vllm-0", made["metadata"]["uid"]))
    running.fake.write(PODS, NAMESPACE, worker, create=True)
    assert soon(lambda: running.gated() == ["next-0", "next-0-1"])
    assert running.pod("vllm-0-1")["metadata"]["annotations"][TASK_GROUPS]
    running.bind("vllm-0-1")
    assert soon(lambda: running.gated() == [] and running.declared() == ["next-0", "next-0-1"])


def put_leader(fake: FakeApi, of: Plan) -> None:
    """Create a replica without its workers and their StatefulSet."""
    put(fake, of)
    fake.delete(STATEFUL_SETS, NAMESPACE, of.leader_name)


def test_a_refused_opening_is_told_and_tried_again(running: Running) -> None:
    """In the server's words, on the LWS."""

    def opens(seen: Seen) -> bool:
        return seen.headers.get("content-type") == STRATEGIC

    answer = Answer(403, json.dumps(status(403, "Forbidden", "pods is forbidden")).encode())
    running.fake.fault(opens, answer)
    put(running.fake, plan(0))
    running.start()
    assert soon(lambda: ("WriteRefused", "vllm-0: 403 Forbidden: pods is forbidden") in events(running.fake))
    assert soon(lambda: running.gated() == [])


def test_gates_of_a_scheduler_that_is_not_configured_are_taken_off(running: Running) -> None:
    """All at once: nobody opens them otherwise."""
    for index in range(2):
        put(running.fake, plan(index))
    running.start(Configuration({"default-scheduler": "native"}))
    assert soon(lambda: running.gated() == [])
    assert running.declared() == []
    assert soon(lambda: "GateReleased" in [reason for reason, _ in events(running.fake)])


def test_a_stopped_reconciler_is_followed_by_one_that_goes_on(running: Running) -> None:
    """It died between two pods of a replica: the next opens the second, and nothing twice."""

    def second(seen: Seen) -> bool:
        return seen.headers.get("content-type") == STRATEGIC and seen.path.endswith("vllm-0-1")

    running.fake.fault(second, Answer(500, b"{}"), times=2)
    for index in range(2):
        put(running.fake, plan(index))
    first = running.start()
    assert soon(lambda: running.gated() == ["vllm-0-1", "vllm-1", "vllm-1-1"])
    first.stop()
    running.start()
    assert soon(lambda: running.gated() == ["vllm-1", "vllm-1-1"])
    assert running.opened()["vllm-0"] == 1
    assert running.opened()["vllm-1"] == 0
