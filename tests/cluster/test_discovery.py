"""What the cluster serves may change at any time, and where we work is a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.evidence import said
from tests.cluster.resources import CUSTOM_RESOURCES, NATIVE_GROUPS, PODS
from tests.cluster.scenarios import COSCHEDULING

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.lockstep import LockstepFactory


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane without the kinds of scheduler-plugins, emptied."""
    control_plane.reset()
    return control_plane


def test_a_kind_that_appears_later(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """While no kind of a scheduler's groups is served that is said; once one is, groups are made without a restart."""
    lockstep = run_lockstep(plane)
    pid = lockstep.reconcilers[0].pid
    plane.lws.create("vllm", 2, 2, scheduler=COSCHEDULING.name)
    told = plane.wait("it is said", lambda: said(plane, "GroupKindNotServed"))
    assert told == ["the cluster serves none of podgroups.scheduling.x-k8s.io/v1alpha1: no group is made"]

    plane.register_kinds(plane.layout.binaries / "crds" / "scheduling.x-k8s.io_podgroups.yaml")
    plane.wait("two groups", lambda: len(plane.api.items(COSCHEDULING.groups)) == 2)
    stamped = {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in plane.lws.pods("vllm")}
    assert stamped == {group["metadata"]["name"] for group in plane.api.items(COSCHEDULING.groups)}

    plane.api.delete(CUSTOM_RESOURCES, "podgroups.scheduling.x-k8s.io")
    plane.wait("no longer served", lambda: not plane.serves(COSCHEDULING.groups))
    plane.lws.create("native", 1, 2)
    plane.wait("others go on", lambda: plane.api.items(NATIVE_GROUPS))
    plane.register_kinds(plane.layout.binaries / "crds" / "scheduling.x-k8s.io_podgroups.yaml")
    plane.wait("two groups again", lambda: len(plane.api.items(COSCHEDULING.groups)) == 2)
    assert lockstep.reconcilers[0].pid == pid


def test_some_namespaces_only(plane: ControlPlane, run_lockstep: LockstepFactory) -> None:
    """With `--namespace a b` groups are kept there, and nothing is written elsewhere."""
    lockstep = run_lockstep(plane)
    lockstep.reconcilers[0].stop()
    for namespace in ("a", "b", "c"):
        plane.create_namespace(namespace)
    since = plane.audit.offset()
    lockstep.start_reconciler("--namespace", "a", "b")
    for namespace in ("a", "b", "c", "default"):
        plane.lws.create("vllm", 1, 2, namespace=namespace)
    plane.wait("all pods", lambda: len(plane.api.items(PODS)) == 8)
    plane.wait("a group in each of two", lambda: homes(plane) == ["a", "b"])
    plane.holds("and in no other", lambda: homes(plane) == ["a", "b"], 5)

    plane.api.delete(NATIVE_GROUPS, plane.api.items(NATIVE_GROUPS, "b")[0]["metadata"]["name"], "b")
    plane.wait("a repair there", lambda: homes(plane) == ["a", "b"])
    written = plane.audit.events(user="lockstep-reconciler", resource="podgroups", since=since)
    assert {event["objectRef"]["namespace"] for event in written} == {"a", "b"}


def homes(plane: ControlPlane) -> list[str]:
    """Namespaces of all groups that are there to stay."""
    groups = [group["metadata"] for group in plane.api.items(NATIVE_GROUPS)]
    return sorted(group["namespace"] for group in groups if "deletionTimestamp" not in group)
