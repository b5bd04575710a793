"""What the recorded cases leave open: other kinds, wrong types, dropped fields, ratcheting, messages word for word."""

from typing import Any, Final

import pytest

from policies.native import find_dropped, validate
from policies.targets import COMPOSITE, GENERIC_WORKLOAD, TOPOLOGY, Target, parse_target

GROUPS: Final = "scheduling.k8s.io/v1beta1"
ON: Final = parse_target("1.37", "GenericWorkload")
COMPOSITES: Final = Target("1.37", frozenset({GENERIC_WORKLOAD, TOPOLOGY, COMPOSITE}))

Json = dict[str, Any]


def _group(version: str = GROUPS, **spec: Any) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, **spec}
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": "vllm-0", "namespace": "default"},
        "spec": spec,
    }


def _messages(*args: Any, **named: Any) -> list[str]:
    return [problem.message for problem in validate(*args, **named)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec.schedulingPolicy.gang.minCount: must be at least 1, got 0",
            id="a minimum of zero",
        ),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 4}}},
            'spec.schedulingPolicy: must have exactly one of basic, gang, got ["basic", "gang"]',
            id="two policies",
        ),
        pytest.param(
            {"schedulingPolicy": None},
            "spec.schedulingPolicy: must have exactly one of basic, gang, got []",
            id="null is nothing",
        ),
        pytest.param(
            {"workloadRef": {"workloadName": "Big", "templateName": ""}},
            'spec.workloadRef.workloadName: must be a DNS subdomain of at most 253 characters, got "Big"',
            id="a name in capitals",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": "4"}}},
            'spec.schedulingPolicy.gang.minCount: must be a whole number, got "4"',
            id="a number in quotes",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 2147483648}}},
            "spec.schedulingPolicy.gang.minCount: must be a whole number of 32 bits, got 2147483648",
            id="a number that does not fit",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": True}}},
            "spec.schedulingPolicy.gang.minCount: must be a whole number, got true",
            id="true for a number",
        ),
        pytest.param({"priority": 1000000001}, "spec.priority: must be at most 1000000000, got 1000000001", id="1e9+1"),
    ],
)
def test_a_refusal_names_field_rule_and_value(spec: Json, message: str) -> None:
    """One sentence a user can act on."""
    assert message in _messages(_group(**spec), target=ON)


def test_wrong_types_are_told_before_anything_else() -> None:
    """What can't be decoded is judged by nothing else."""
    found = validate(_group(schedulingPolicy=[], priorityClassName="a/b"), target=ON)
    assert [(problem.path, problem.type) for problem in found] == [("spec.schedulingPolicy", "BadRequest")]


@pytest.mark.parametrize(
    ("version", "target", "served"),
    [
        pytest.param("scheduling.k8s.io/v1alpha2", "1.37", "v1beta1 or scheduling.k8s.io/v1alpha3", id="of 1.36"),
        pytest.param("scheduling.k8s.io/v1beta1", "1.36", "v1alpha2", id="of 1.37"),
    ],
)
def test_a_version_that_is_not_served_is_refused(version: str, target: str, served: str) -> None:
    """There is no conversion between the three generations."""
    assert _messages(_group(version), target=parse_target(target)) == [
        f'apiVersion: must be scheduling.k8s.io/{served} for a PodGroup on Kubernetes {target}, got "{version}"'
    ]


def test_a_kind_that_the_version_lacks_is_refused() -> None:
    """1.35 has no PodGroup of its own."""
    assert _messages(_group(), target=parse_target("1.35")) == [
        'apiVersion: must be of a version of Kubernetes that has PodGroup, which 1.35 has not, got "' + GROUPS + '"'
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": 1}, id="Volcano's"),
        pytest.param({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}, id="a neighbour"),
        pytest.param({"apiVersion": 1, "kind": []}, id="no kind at all"),
    ],
)
def test_other_kinds_are_not_judged(content: Json) -> None:
    """They have their own API."""
    assert validate(content, target=ON) == []


def test_dropped_fields_are_told_apart_from_refused_ones() -> None:
    """A field whose gate is off goes in silence, and so does a misspelt one: neither is a refusal."""
    group = _group(schedulingConstraints={}, minMember=4)
    assert validate(group, target=ON) == []
    assert [problem.message for problem in find_dropped(group, target=ON)] == [
        "spec.minMember: must be a field that the API server knows, got 4",
        "spec.schedulingConstraints: must be left out while the gate TopologyAwareWorkloadScheduling is off, got {}",
    ]


def test_the_stamp_of_another_version_is_dropped() -> None:
    """`workloadRef` is of 1.35 alone."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"workloadRef": {"name": "w", "podGroup": "g"}},
    }
    assert [problem.path for problem in find_dropped(pod, target=ON)] == ["spec.workloadRef"]
    assert find_dropped(pod, target=parse_target("1.35")) == []


def test_a_change_of_gates_does_not_touch_what_is_stored() -> None:
    """A gated field stays while the stored object has it."""
    stored = _group(schedulingConstraints={"topology": [{"key": "zone"}]})
    assert find_dropped(stored, stored, ON) == []
    assert validate(stored, stored, ON) == []


def test_what_was_stored_wrong_may_stay() -> None:
    """An update is not asked about fields that it leaves alone; the API server calls it ratcheting."""
    stored = _group(priorityClassName="a/b")
    labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    assert validate(labelled, stored, ON) == []
    assert [problem.path for problem in validate(labelled, target=ON)] == ["spec.priorityClassName"]


def test_an_item_moved_within_its_list_is_the_same_item() -> None:
    """Templates are told apart by name."""
    leaves: list[Json] = [{"name": name, "schedulingPolicy": {"basic": {}}} for name in ("a", "b")]
    workload = {
        "apiVersion": GROUPS,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"podGroupTemplates": leaves},
    }
    turned = {**workload, "spec": {"podGroupTemplates": leaves[::-1]}}
    assert validate(turned, workload, ON) == []
    twice = {**workload, "spec": {"podGroupTemplates": [*leaves, leaves[0]]}}
    assert [problem.type for problem in validate(twice, workload, ON)] == ["Duplicate"]


def test_a_deep_tree_of_templates_is_refused_and_ends() -> None:
    """Depth is bounded before the tree is walked."""
    tree: Json = {"name": "leaf", "schedulingPolicy": {"basic": {}}}
    for level in range(20):
        tree = {"name": f"n{level}", "schedulingPolicy": {"basic": {}}, "compositePodGroupTemplates": [tree]}
    workload = {
        "apiVersion": GROUPS,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"compositePodGroupTemplates": [tree]},
    }
    assert "spec.compositePodGroupTemplates[0]: must be a tree of at most 4 levels, got 22" in _messages(
        workload, target=COMPOSITES
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param(
            {"labels": {"a b": "c"}}, 'metadata.labels: must have label keys as keys, got "a b"', id="a label's key"
        ),
        pytest.param(
            {"labels": {"a": "b c"}}, 'metadata.labels: must have a label value at a, got "b c"', id="a label's value"
        ),
        pytest.param(
            {"annotations": {"/": ""}}, 'metadata.annotations: must have label keys as keys, got "/"', id="annotation"
        ),
        pytest.param(
            {"annotations": {"a": "b" * 262144}},
            "metadata.annotations: must have at most 262144 bytes, got 262145",
            id="too many bytes",
        ),
        pytest.param({"finalizers": ["a b"]}, 'metadata.finalizers: must have qualified names, got "a b"', id="final"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]},
            'metadata.ownerReferences[0].apiVersion: must be <group>/<version> or <version>, got "a/b/c"',
            id="an owner's version",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]},
            "metadata.ownerReferences[0].uid: must be set, got nothing",
            id="an owner without UID",
        ),
        pytest.param(
            {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "K", "name": name, "uid": name, "controller": True} for name in "ab"
                ]
            },
            'metadata.ownerReferences: must have at most one controller, got ["a", "b"]',
            id="two controllers",
        ),
        pytest.param(
            {"generateName": "A-"},
            'metadata.generateName: must be the beginning of a DNS subdomain, got "A-"',
            id="prefix",
        ),
        pytest.param(
            {"namespace": "a.b"},
            'metadata.namespace: must be a DNS label of at most 63 characters, got "a.b"',
            id="namespace",
        ),
        pytest.param(
            {"creationTimestamp": "now"},
            'metadata.creationTimestamp: must be a time as 2026-01-31T12:00:00Z, got "now"',
            id="time",
        ),
    ],
)
def test_metadata_is_held_to_the_common_rules(metadata: Json, message: str) -> None:
    """What any manifest can get wrong."""
    group = _group()
    group["metadata"] = {**group["metadata"], **metadata}
    assert _messages(group, target=ON) == [message]


def test_an_update_may_not_move_the_object_or_hold_its_end_up() -> None:
    """Name, namespace and UID stay; an ending object gets no new finalizer."""
    stored, changed = _group(), _group()
    stored["metadata"] |= {"uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    changed["metadata"] |= {"uid": "2", "namespace": "other", "finalizers": ["a/b"]}
    assert _messages(changed, stored, ON) == [
        'metadata.namespace: must stay "default", got "other"',
        'metadata.uid: must stay "1", got "2"',
        'metadata.finalizers: must get no new entry while the object ends, got ["a/b"]',
    ]


def test_an_update_of_something_else_is_refused() -> None:
    """The stored object has to be one of its kind."""
    assert [problem.type for problem in validate(_group(), {"spec": []}, ON)] == ["BadRequest"]


def test_a_status_update_of_a_kind_without_status_is_nothing() -> None:
    """A Workload has none."""
    workload = {"apiVersion": GROUPS, "kind": "Workload", "metadata": {}, "spec": {}, "status": {"a": 1}}
    assert validate(workload, workload, ON, subresource="status") == []
