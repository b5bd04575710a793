"""No rule refuses what Lockstep itself writes (kubernetes-sigs/kueue#3683)."""

import base64
import copy
import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.objects import CREATE, UPDATE, Operation, Subject, User
from policies.registry import all_rules
from policies.reviewing import review
from policies.snapshot import Snapshot
from policies.targets import Target
from reconciler.gates import open_gates, read_whole, standing_of
from schedulers.configuration import default_configuration
from schedulers.contract import Replica
from tests.builders import KEY, NAMESPACE, JsonObject, patched, review_object
from tests.reconciler.sights import (
    EXCLUSIVE,
    IN_TIME,
    LEADER,
    LEADER_READY,
    PROVIDERS,
    YUNIKORN,
    Late,
    Plan,
    World,
    leader_worker_set,
    pods_of,
    revision,
    worker_set,
)
from webhook.mutation import Decider

API_VERSIONS: Final = {"StatefulSet": "apps/v1", "Pod": "v1", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1"}
CONTROLLER: Final = User("system:serviceaccount:kube-system:statefulset-controller")
RECONCILER: Final = User("system:serviceaccount:lockstep-system:lockstep")
DECIDER: Final = Decider(default_configuration(), lambda: KEY)


class Recorder(World):
    """A world that reviews every write before it is done."""

    def __init__(self, *objects: JsonObject) -> None:
        """Start with some objects, and no finding."""
        self.found: list[str] = []
        super().__init__(*objects)

    def put(self, *objects: JsonObject) -> None:
        """Fill in what the API server would not take an owner reference without."""
        for obj in objects:
            for owner in obj["metadata"].get("ownerReferences") or []:
                owner.setdefault("apiVersion", API_VERSIONS[owner["kind"]])
        super().put(*objects)

    def _write(self, obj: JsonObject) -> None:
        live = self.objects.get((obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]))
        operation: Operation = CREATE if live is None else UPDATE
        self.judge(Subject(copy.deepcopy(obj), operation=operation, old=copy.deepcopy(live), user=RECONCILER))
        super()._write(obj)

    def judge(self, subject: Subject) -> None:
        """Review one write against everything there is."""
        contents = [*self.objects.values(), subject.content]
        snapshot = Snapshot(contents, complete=("Pod", "StatefulSet.apps"))
        self.found += [finding.message for finding in review([subject], snapshot, Target()).findings]


def templated(plan: Plan, lws: JsonObject) -> JsonObject:
    """Give the templates of an LWS the scheduler of a plan."""
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["schedulerName"] = plan.provider.scheduler_names[0]
    return lws


def leader_set(plan: Plan) -> JsonObject:
    """Build the StatefulSet of the leaders."""
    owner = {"kind": "LeaderWorkerSet", "name": plan.lws, "uid": f"leaderworkerset/{plan.lws}", "controller": True}
    metadata = {"name": plan.lws, "namespace": NAMESPACE, "uid": f"statefulset/{plan.lws}", "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 1}}


def world_of(plan: Plan) -> Recorder:
    """Build the world in which a plan's replica appears."""
    parts = [revision(plan), leader_set(plan), templated(plan, leader_worker_set(plan))]
    return Recorder(*parts, *([worker_set(plan)] if plan.worker_set else []), *pods_of(plan))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a replica as LWS builds it."""
    size = draw(st.integers(1, 5))
    words: dict[str, str] = draw(
        st.fixed_dictionaries(
            {}, optional={"lockstep.dev/queue": st.just("gold"), "lockstep.dev/schedule-timeout": st.just("9")}
        )
    )
    return Plan(
        provider=draw(st.sampled_from(PROVIDERS)),
        size=size,
        annotated=draw(st.sampled_from([None, size, 1, 7])),
        workers=draw(st.integers(0, size - 1)),
        stamped=draw(st.booleans()),
        worker_set=draw(st.booleans()),
        gpus=draw(st.integers(0, 8)),
        late=draw(st.sampled_from([IN_TIME, LEADER_READY, EXCLUSIVE])),
        lws_annotations=words,
    )


@given(plans())
@settings(max_examples=120, deadline=None)
def test_c45_what_the_reconciler_writes_passes(plan: Plan) -> None:
    """C45: every group the reconciler makes or raises, and every pod it stamps late, passes every rule."""
    world = world_of(plan)
    world.settle()
    grown = Plan(**{**_fields(plan), "workers": None, "worker_set": True})
    world.put(
        worker_set(grown),
        *(pod for pod in pods_of(grown) if ("Pod", NAMESPACE, pod["metadata"]["name"]) not in world.objects),
    )
    world.settle()
    assert world.found == []


def _fields(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


@given(plans())
@settings(max_examples=60, deadline=None)
def test_c45_what_the_webhook_admits_passes(plan: Plan) -> None:
    """C45: every pod passes as it comes out of the webhook, before its group is there."""
    unstamped = Plan(**{**_fields(plan), "stamped": False, "annotated": None})
    pods = pods_of(unstamped)
    world = Recorder(templated(plan, leader_worker_set(plan)))
    for pod in pods:
        for owner in pod["metadata"]["ownerReferences"]:
            owner.setdefault("apiVersion", API_VERSIONS[owner["kind"]])
        answer = json.loads(DECIDER(json.dumps(review_object(pod)).encode()).body)["response"]
        admitted = patched(pod, json.loads(base64.b64decode(answer.get("patch", "W10="))))
        assert "lockstep.dev/group" in admitted["metadata"]["labels"]
        subject = Subject(admitted, user=CONTROLLER)
        rules = {name: rule for name, rule in all_rules().items() if name != "members-made-by-their-stateful-set"}
        snapshot = Snapshot([*world.objects.values(), *pods, admitted], complete=("Pod",))
        assert review([subject], snapshot, Target(), rules=rules).findings == ()


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_repairs_pass(provider: Any) -> None:
    """What puts an edited group right again passes, whatever the edit."""
    for edit in (
        {"spec": {"minMember": 7, "schedulingPolicy": {"gang": {"minCount": 7}}}},
        {"metadata": {"labels": {"lockstep.dev/group": "another"}}},
        {"metadata": {"labels": None}},
        {"spec": {"minResources": {"cpu": "1"}}},
    ):
        world = world_of(Plan(provider=provider, size=3))
        world.settle()
        name = next(name for kind, _, name in world.objects if kind == "PodGroup")
        live = world.objects["PodGroup", NAMESPACE, name]
        world.put(_edited(live, edit))
        world.found.clear()
        world.settle(LEADER)
        assert world.found == []


def _edited(live: JsonObject, edit: JsonObject) -> JsonObject:
    known = edit.get("spec", {}).keys() & live["spec"].keys()
    spec = {**live["spec"], **{field: edit["spec"][field] for field in known}}
    return {**live, "metadata": {**live["metadata"], **edit.get("metadata", {})}, "spec": spec}


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    "late", [IN_TIME, LEADER_READY, EXCLUSIVE], ids=["in time", "LeaderReady", "exclusive topology"]
)
def test_c45_what_is_declared_when_gates_are_opened_breaks_no_rule(size: int, late: Late) -> None:
    """YuniKorn's task groups on every pod, then off again; a leader alone carries the groups of its late workers."""
    plan = Plan(provider=YUNIKORN, size=size, late=late, worker_set=late is IN_TIME and size > 1)
    world = world_of(plan)
    standing = standing_of(world.sight(), world.configuration)
    assert standing is not None
    replica = read_whole(standing, world.configuration)
    assert isinstance(replica, Replica)
    for action in open_gates(standing, replica):
        world.carry_out(action)
    for pod in world.of_kind("Pod"):
        pod["spec"]["nodeName"] = "n1"
    world.settle()
    assert world.found == []
    assert world.writes == len(world.of_kind("Pod")) * (2 if standing.needed == len(standing.members) else 1)
