"""The recorded cases of 1.37, replayed on the real API server: it says what the cases say, and what we say offline.

Creations are dry runs. For an update the old object is stored, and the offline check is given what was really stored.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from policies.native import validate
from policies.targets import EVICTION, GATES, GENERIC_WORKLOAD, Target
from tests.cluster import commands
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.resources import PRIORITY_CLASSES, Json, Resource
from tests.policies.native.cases import Case, all_cases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.control_plane import PlaneFactory

RUNTIME: Final = {"scheduling.k8s.io/v1beta1": "true", "scheduling.k8s.io/v1alpha3": "true"}
PLURALS: Final = {
    "Workload": "workloads",
    "PodGroup": "podgroups",
    "CompositePodGroup": "compositepodgroups",
    "Pod": "pods",
}

STORED_WITH_GATE_ON: Final = "137-wl-upd-topology-kept-gate-off-ok"
"""Its old object has a field that a server with its gate off would not store."""

NOT_OVER_HTTP: Final = {
    "137-wl-meta-no-namespace": "the URL supplies the namespace",
    "137-pg-upd-name": "another name than the URL's is another error",
    "137-pg-prioclass-bad": "the Priority plugin answers before",
    "137-pg-priority-too-high": "the Priority plugin answers before",
    "137-pg-preemption-bad": "the Priority plugin answers before",
    "137-pg-priority-min-ok": "the Priority plugin answers before",
    "137-pg-upd-prioclass": "the Priority plugin answers before, when the old object is stored",
    "137-pg-upd-priority": "the Priority plugin answers before, when the old object is stored",
}


def _gates(case: Case) -> dict[str, bool]:
    """All gates of 1.37; those that a case does not name are off, but for one that only a single case can notice."""
    on = case.target.enabled
    return {gate: on(gate) or (gate == EVICTION and on(GENERIC_WORKLOAD)) for gate in sorted(GATES["1.37"])}


def _order(case: Case) -> tuple[int, list[bool]]:
    gates = _gates(case)
    return -sum(gates.values()), list(gates.values())


CASES: Final = sorted(
    (case for case in all_cases() if case.k8s_version == "1.37" and case.id not in NOT_OVER_HTTP), key=_order
)


class Server:
    """The API server of a control plane, with the gates that a case asks for."""

    def __init__(self, plane: ControlPlane, gates: Mapping[str, bool]) -> None:
        """Note what it runs with."""
        self.plane, self.gates = plane, gates

    def with_gates(self, gates: Mapping[str, bool]) -> ControlPlane:
        """Start it anew where it runs with other gates."""
        if gates != self.gates:
            self.plane.kill("kube-apiserver")
            self.plane._processes["kube-apiserver"] = commands.api_server(self.plane.layout, gates, RUNTIME)
            self.plane.start("kube-apiserver")
            self.gates = gates
        return self.plane


@pytest.fixture(scope="module")
def server(start_plane: PlaneFactory) -> Server:
    """An API server with the most gates, a priority class, and what no other could store."""
    gates = _gates(CASES[0])
    options = Options(gates=gates, runtime_config=RUNTIME, scheduler=False, kwok=False, lws=False)
    plane = start_plane(options)
    plane.api.create(PRIORITY_CLASSES, PRIORITY_CLASSES.make("high-priority", value=1000))
    kept = next(case for case in CASES if case.id == STORED_WITH_GATE_ON)
    plane.api.create(_resource(kept.object), _named(kept.old, kept.id))
    return Server(plane, gates)


def _resource(content: Json) -> Resource:
    return Resource(content["apiVersion"], PLURALS[content["kind"]], content["kind"])


def _named(content: Json | None, name: str) -> Json:
    """A copy under a name of its own."""
    assert content is not None
    metadata = {**content["metadata"], "name": name}
    metadata.pop("resourceVersion", None)
    return {**copy.deepcopy(content), "metadata": metadata}


def _replay(case: Case, plane: ControlPlane) -> tuple[Json, Json | None, int, Json]:
    """Do what the case does: what was sent, what was stored before, status and answer."""
    for other in case.existing:
        _make_existing(plane, other)
    resource = _resource(case.object)
    if case.old is None:
        path = resource.collection("default") + "?dryRun=All"
        sent, stored, method = case.object, None, "POST"
    else:
        old = _named(case.old, case.id)
        if case.id != STORED_WITH_GATE_ON:
            plane.api.create(resource, old)
        stored = plane.api.get(resource, case.id)
        sent, method = _changed(case, stored), "PUT"
        path = resource.item(case.id, "default", case.subresource) + "?dryRun=All"
    status, text = plane.api.text(method, path, sent)
    return sent, stored, status, json.loads(text)


def _changed(case: Case, stored: Json) -> Json:
    """The case's new object as a client would send it: with the version it read, a pod with its defaulted fields."""
    sent = _named(case.object, case.id)
    sent["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    if case.object["kind"] == "Pod":
        assert case.old is not None
        gone = {key for key in case.old["spec"] if key not in case.object["spec"]}
        kept = {key: value for key, value in stored["spec"].items() if key not in gone}
        fresh = {key: value for key, value in case.object["spec"].items() if key != "containers"}
        sent["spec"] = {**kept, **fresh}
    return sent


def _make_existing(plane: ControlPlane, content: Json) -> None:
    resource, name = _resource(content), content["metadata"]["name"]
    body = _named(content, name)
    ends = body["metadata"].pop("deletionTimestamp", None)
    body["metadata"]["finalizers"] = ["lockstep.dev/test"]
    plane.api.create(resource, body)
    if ends is not None:
        plane.api.delete(resource, name)


def _causes(answer: Json) -> set[tuple[str, str]]:
    """Field and kind of each error that the API server names."""
    causes: list[dict[str, Any]] = answer.get("details", {}).get("causes", [])
    return {(cause["field"], cause["reason"].removeprefix("FieldValue")) for cause in causes}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_api_server_and_the_offline_check_say_the_same(case: Case, server: Server) -> None:
    """One verdict, and every error that the server names is found offline, and no other; all as the case has it.

    A case that was not seen speaks of less than a whole request: of a PUT, say, that leaves out what admission filled
    in. Then only server and offline check have to agree.
    """
    gates = _gates(case)
    sent, stored, status, answer = _replay(case, server.with_gates(gates))
    target = Target("1.37", frozenset(gate for gate, on in gates.items() if on))
    found = validate(sent, stored, target, case.existing, case.subresource)
    assert {(problem.path, problem.type) for problem in found} == _causes(answer)
    assert (not found) == (status < 400)
    if case.seen:
        assert (status < 400) == case.allowed, answer
        assert case.field is None or case.field in {field for field, _ in _causes(answer)}
