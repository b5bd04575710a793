"""The group object that should be there, and the patch that makes it so."""

from typing import Any

import pytest

from reconciler.objects import GroupObject
from reconciler.wanted import difference, group_object, minimum_of, owner_reference
from schedulers.contract import Spec
from tests.builders import JsonObject
from tests.reconciler.sights import Plan, decoded, group, merged, pods_of
from tests.schedulers.cases import GROUP, replica
from tests.schedulers.cases_native import CASES as NATIVE_CASES

LABELS = {
    "lockstep.dev/group": GROUP,
    "leaderworkerset.sigs.k8s.io/name": "vllm",
    "leaderworkerset.sigs.k8s.io/group-index": "0",
    "leaderworkerset.sigs.k8s.io/template-revision-hash": "69fbc5554",
}
SPEC = Spec(
    {
        "minMember": 4,
        "minResources": {"cpu": "4", "nvidia.com/gpu": "8"},
        "queue": "default",
        "policy": {"gang": {"n": 2}},
    },
    fixed=("queue",),
    quantities=("minResources",),
)


def live(spec: JsonObject, **metadata: Any) -> GroupObject:
    found: GroupObject = decoded(
        {"kind": "PodGroup", "metadata": {"name": GROUP, "uid": "g1", "labels": LABELS} | metadata, "spec": spec}
    )
    return found


def test_a_group_is_made_with_labels_owner_and_our_fields_alone() -> None:
    """Controlled by its leader, in its namespace (C35); nothing is set that we don't own."""
    leader = decoded(pods_of(Plan())[0])
    case = NATIVE_CASES.specs[0]
    assert group_object(replica(), case.kind, SPEC, leader) == {
        "apiVersion": case.kind.api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": GROUP,
            "namespace": "team-a",
            "labels": LABELS,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": "pod/vllm-0/1", "controller": True}
            ],
        },
        "spec": dict(SPEC.fields),
    }
    assert "blockOwnerDeletion" not in owner_reference(leader)


RIGHT = {
    "minMember": 4,
    "minResources": {"cpu": "4", "nvidia.com/gpu": "8"},
    "queue": "default",
    "policy": {"gang": {"n": 2}},
}
UID = {"metadata": {"uid": "g1"}}
DIFFERENCES: dict[str, tuple[JsonObject, JsonObject | None]] = {
    "nothing amiss": ({}, None),
    "fields of others are not looked at": ({"topology": {"mode": "hard"}, "policy": {"other": 1}}, None),
    "quantities are compared by value": ({"minResources": {"cpu": "4000m", "nvidia.com/gpu": "8e0"}}, None),
    "a zero more is nothing more": ({"minResources": {"memory": "0"}}, None),
    "what is written once is not repaired": ({"queue": "other"}, None),
    "another number": ({"minMember": 2}, {"spec": {"minMember": 4}}),
    "a field gone": ({"minMember": None}, {"spec": {"minMember": 4}}),
    "another amount": (
        {"minResources": {"cpu": "5"}},
        {"spec": {"minResources": {"cpu": "4", "nvidia.com/gpu": "8"}}},
    ),
    "a resource too many is taken away": (
        {"minResources": {"memory": "1Gi"}},
        {"spec": {"minResources": {"cpu": "4", "nvidia.com/gpu": "8", "memory": None}}},
    ),
    "amounts that are none": (
        {"minResources": {"cpu": "x"}},
        {"spec": {"minResources": {"cpu": "4", "nvidia.com/gpu": "8"}}},
    ),
    "no map where one should be": ({"policy": 7}, {"spec": {"policy": {"gang": {"n": 2}}}}),
    "a field below": ({"policy": {"gang": {"n": 3, "theirs": 1}}}, {"spec": {"policy": {"gang": {"n": 2}}}}),
}


@pytest.mark.parametrize(("edit", "patch"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_the_patch_gives_our_fields_their_values_back(edit: JsonObject, patch: JsonObject | None) -> None:
    """Field by field, with the object's UID, and nothing of others in it."""
    expected = None if patch is None else UID | patch
    assert difference(replica(), SPEC, live(merged(RIGHT, edit))) == expected


def test_labels_of_ours_are_repaired_and_those_of_others_kept() -> None:
    """Only the wrong ones are in the patch."""
    labels = LABELS | {"lockstep.dev/group": "other", "team": "blue"}
    patch = {"metadata": {"uid": "g1", "labels": {"lockstep.dev/group": GROUP}}}
    assert difference(replica(), SPEC, live(RIGHT, labels=labels)) == patch


def test_a_patch_applied_leaves_nothing_to_do() -> None:
    """Whatever the edits were."""
    broken = merged(RIGHT, {"minMember": 1, "minResources": {"memory": "1Gi"}, "policy": None, "theirs": True})
    patch = difference(replica(), SPEC, live(broken, labels={}))
    assert patch is not None
    spec: Any = patch["spec"]
    metadata: Any = patch["metadata"]
    assert difference(replica(), SPEC, live(merged(broken, spec), labels=metadata["labels"])) is None


MINIMUMS = {
    "top level": ({"minMember": 3}, "minMember", 3),
    "below": ({"schedulingPolicy": {"gang": {"minCount": 2}}}, "schedulingPolicy.gang.minCount", 2),
    "another policy": ({"schedulingPolicy": {"basic": {}}}, "schedulingPolicy.gang.minCount", None),
    "no map": ({"schedulingPolicy": "gang"}, "schedulingPolicy.gang.minCount", None),
    "no number": ({"minMember": "3"}, "minMember", None),
    "nothing": ({}, "minMember", None),
}


@pytest.mark.parametrize(("spec", "path", "minimum"), MINIMUMS.values(), ids=MINIMUMS.keys())
def test_a_minimum_is_read_wherever_it_stands(spec: JsonObject, path: str, minimum: int | None) -> None:
    """`None` where there is none."""
    assert minimum_of(spec, path) == minimum


def test_the_model_makes_the_groups_that_the_tests_expect() -> None:
    """The builder of these tests says the same as the code it stands for."""
    assert group(Plan())["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": {"all": {}},
    }
