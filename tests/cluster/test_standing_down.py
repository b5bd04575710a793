"""Pods that are not Lockstep's business, and clusters on which it can do nothing: not a byte of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import said, writes
from tests.cluster.lockstep import WEBHOOK
from tests.cluster.resources import NATIVE_GROUPS, PODS, VOLCANO_GROUPS

if TYPE_CHECKING:
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.lockstep import LockstepFactory
    from tests.cluster.resources import Json

Sets = dict[str, dict[str, Any]]
"""What is different about each LWS, by its name."""

NODES = ["n1", "n2", "n3", "n4"]
GANG = "lockstep.dev/gang"
LWS_GROUP_NAME = "scheduling.k8s.io/group-name"

ALWAYS_DIFFERENT = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences")
"""Metadata that differs between two pods of the same name, whoever admitted them."""


@pytest.fixture(scope="module")
def shared_plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane with native gang scheduling and Volcano's kinds."""
    return start_plane(Options(volcano=True))


@pytest.fixture(scope="module")
def gates_off(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane as most are: without GenericWorkload."""
    return start_plane(Options(gates={"GenericWorkload": False}, runtime_config={}))


@pytest.fixture(scope="module")
def lws_does_it(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane on which LWS's own Volcano provider is on."""
    return start_plane(Options(lws_provider="volcano"))


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    """The first control plane, emptied."""
    shared_plane.reset()
    return shared_plane


def pods_without_lockstep(plane: ControlPlane, sets: Sets) -> dict[str, Json]:
    """Create LWS while Lockstep is not there; what their pods look like, by name."""
    create(plane, sets)
    found = plane.wait("all pods", lambda: all_pods(plane, sets))
    plane.reset()
    return found or {}


def create(plane: ControlPlane, sets: Sets) -> None:
    """Create LWS of two replicas of two."""
    for name, difference in sets.items():
        plane.lws.create(name, 2, 2, **difference)


def all_pods(plane: ControlPlane, sets: Sets) -> dict[str, Json] | None:
    """All their pods, but for what always differs; None while there are fewer."""
    pods = [pod for name, lws in sets.items() for pod in plane.lws.pods(name, lws.get("namespace", "default"))]
    return {pod["metadata"]["name"]: stable(pod) for pod in pods} if len(pods) == 4 * len(sets) else None


def hold_untouched(plane: ControlPlane, sets: Sets, expected: dict[str, Json]) -> None:
    """See that all pods come, and that they are and stay what they were without Lockstep."""
    plane.wait("all pods", lambda: all_pods(plane, sets))
    plane.holds("the same pods", lambda: all_pods(plane, sets) == expected, 3)


def stable(pod: Json) -> Json:
    """Labels, annotations and spec of a pod without what differs from pod to pod."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ALWAYS_DIFFERENT}
    token = next(volume["name"] for volume in pod["spec"]["volumes"] if volume["name"].startswith("kube-api-access"))
    spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "volumes")}
    for container in spec["containers"]:
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != token]
    return {"metadata": metadata, "spec": spec}


def test_untouched_byte_by_byte(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Opted out, or of a scheduler that nobody configured: the same pods as without Lockstep, and nothing is said."""
    opted_out = {"labels": {GANG: "off"}}
    sets: Sets = {
        "stranger": {"scheduler": "nobody-configured-me"},
        "quiet": {"pod_metadata": opted_out},
        "quiet-volcano": {"pod_metadata": opted_out, "scheduler": "volcano"},
        "quiet-koordinator": {"pod_metadata": opted_out, "scheduler": "koord-scheduler"},
        "quiet-kai": {"pod_metadata": opted_out, "scheduler": "kai-scheduler"},
    }
    expected = pods_without_lockstep(plane, sets)
    run_lockstep(plane)
    since = plane.audit.offset()
    create(plane, sets)
    hold_untouched(plane, sets, expected)
    assert writes(plane, since) == []


def test_a_namespace_that_is_opted_out(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The webhook is not called there by its namespaceSelector, and the reconciler neither repairs nor complains."""
    plane.create_namespace("quiet", {GANG: "off"})
    sets: Sets = {"native": {"namespace": "quiet"}, "volcano": {"namespace": "quiet", "scheduler": "volcano"}}
    expected = pods_without_lockstep(plane, sets)
    lockstep = run_lockstep(plane)
    selector = {"matchExpressions": [{"key": GANG, "operator": "NotIn", "values": ["off"]}]}
    ca = plane.certificates.ca.read_bytes()
    url = f"https://127.0.0.1:{lockstep.port}"
    plane.webhooks.register_mutating(WEBHOOK, url, ca, namespace_selector=selector)
    since = plane.audit.offset()

    plane.lws.create("loud", 1, 2)
    plane.wait("elsewhere it is called", lambda: plane.api.items(NATIVE_GROUPS, "default"))
    create(plane, sets)
    hold_untouched(plane, sets, expected)
    assert {event["objectRef"]["namespace"] for event in writes(plane, since)} == {"default"}


def test_c03_volcano_alone_is_configured(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Pods of the default scheduler are nobody's then: admitted unchanged, no group."""
    expected = pods_without_lockstep(plane, {"vllm": {}})
    run_lockstep(plane, configuration={"schedulers": {"volcano": "volcano"}})
    since = plane.audit.offset()
    create(plane, {"vllm": {}})
    hold_untouched(plane, {"vllm": {}}, expected)
    assert writes(plane, since) == []
    assert not plane.api.items(VOLCANO_GROUPS)


def test_gate_off(gates_off: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """The API server drops the stamp: pods run as without us, no group is made, it is said once and counted."""
    gates_off.nodes.add(NODES)
    lockstep = run_lockstep(gates_off)
    since = gates_off.audit.offset()
    gates_off.lws.create("vllm", 2, 2)
    gates_off.wait("all run", lambda: gates_off.lws.whole("vllm", 2) == [0, 1])
    gates_off.wait("it is said", lambda: said(gates_off, "StampDropped"))
    gates_off.wait("and counted", lambda: lockstep.metric("lockstep_dropped_stamps", provider="native") == 4)
    gates_off.lws.scale("vllm", 3)
    gates_off.wait("more of them", lambda: lockstep.metric("lockstep_dropped_stamps", provider="native") == 6)
    assert len(said(gates_off, "StampDropped")) == 1
    assert [(event["verb"], event["objectRef"]["resource"]) for event in writes(gates_off, since)] == [
        ("create", "events")
    ]
    assert not any("schedulingGroup" in pod["spec"] for pod in gates_off.lws.pods("vllm"))


def test_c17_lws_own_volcano_provider_is_on(lws_does_it: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """Not one byte of ours on LWS's pods or groups, whichever scheduler; that we stand down is said once a set."""
    plane = lws_does_it
    sets: Sets = {"volcano": {"scheduler": "volcano"}, "default": {}}
    expected = pods_without_lockstep(plane, sets)
    run_lockstep(plane)
    since = plane.audit.offset()
    create(plane, sets)
    plane.wait("it is said", lambda: all(said(plane, "GroupOfOther", name) for name in sets))
    hold_untouched(plane, sets, expected)
    assert all(LWS_GROUP_NAME in pod["metadata"]["annotations"] for pod in plane.api.items(PODS))
    assert not any("lockstep.dev" in str(pod) for pod in expected.values())

    groups = plane.wait("LWS's groups", lambda: len(found := plane.api.items(VOLCANO_GROUPS)) == 4 and found) or []
    for group in groups:
        assert {entry["manager"] for entry in group["metadata"]["managedFields"]} == {"lws"}
        assert "lockstep.dev" not in str(group)
    assert not plane.api.items(NATIVE_GROUPS)
    written = [(event["verb"], event["objectRef"]["resource"]) for event in writes(plane, since)]
    assert written == [("create", "events")] * 2
