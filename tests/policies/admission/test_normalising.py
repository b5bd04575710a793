"""A manifest as the API server would see it; `tests/cluster/test_policies.py` compares with the real one."""

import copy
from typing import Any

from policies.admission import admission_of
from policies.targets import Target

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {
        "schedulingGroup": {"podGroupName": "g"},
        "nodeSelector": None,
        "containers": [{"name": "c", "image": "registry.example/a:1", "resources": {"limits": {"cpu": "1"}}}],
        "initContainers": [{"name": "i", "image": "registry.example:5000/a"}],
    },
}


def served(content: dict[str, Any], target: Target | None = None) -> dict[str, Any]:
    """Give the content that policies see."""
    admission = admission_of(content, target=target)
    assert admission.content is not None
    return dict(admission.content)


def test_a_pod_gets_what_its_type_always_has_and_its_defaults() -> None:
    """Empty resources, a status, a scheduler, pull policies by tag; nulls go."""
    pod = served(POD)
    container, initial = pod["spec"]["containers"][0], pod["spec"]["initContainers"][0]
    assert (pod["status"], pod["spec"]["schedulerName"], pod["spec"]["securityContext"]) == (
        {},
        "default-scheduler",
        {},
    )
    assert "nodeSelector" not in pod["spec"]
    assert container["resources"] == {"limits": {"cpu": "1"}}
    assert (initial["resources"], container["imagePullPolicy"], initial["imagePullPolicy"]) == (
        {},
        "IfNotPresent",
        "Always",
    )
    assert pod["metadata"] == {"name": "a", "namespace": "default"}


def test_a_field_behind_a_gate_is_dropped_when_the_gate_is_off() -> None:
    """As the API server drops it, without a word."""
    assert "schedulingGroup" in served(POD)["spec"]
    assert "schedulingGroup" not in served(POD, Target("1.37", frozenset()))["spec"]


def test_the_manifest_itself_stays_as_it_is() -> None:
    """What is filled in stands in copies."""
    before = copy.deepcopy(POD)
    admission_of(POD, operation="UPDATE", old=POD)
    assert before == POD


def test_what_has_no_shape_is_left_alone() -> None:
    """Native validation says what is wrong with it."""
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": [], "spec": "none"}
    assert served(broken) == {**broken, "status": {}}
    listed = {**POD, "spec": {"containers": [1], "initContainers": {}}}
    assert served(listed)["spec"]["containers"] == [1]


def test_cluster_scoped_objects_have_no_namespace() -> None:
    """And no namespace object."""
    admission = admission_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert (admission.namespace, admission.namespace_object) == ("", None)


def test_a_deletion_has_only_the_old_object() -> None:
    """As in a review of the API server."""
    admission = admission_of(POD, operation="DELETE")
    assert admission.content is None
    assert admission.old is not None
