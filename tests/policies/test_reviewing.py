"""The review as a whole: verdicts, their JSON, and objects of any shape."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.findings import Finding, ObjectRef, Source, Verdict, verdict_json, verdict_of
from policies.objects import CREATE, DELETE, UPDATE, Operation, Subject
from policies.registry import all_rules
from policies.reviewing import review, snapshot_of
from policies.targets import Target
from tests.builders import leader_pod
from tests.policies.rules import judged, messages

REF = ObjectRef("v1", "Pod", "team-a", "vllm-0")
GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "team-a"},
    "spec": {"minMember": 0},
}


def finding(**difference: Any) -> Finding:
    """Build a finding."""
    given: dict[str, Any] = {
        "rule": "a-rule",
        "severity": "error",
        "path": "spec",
        "message": "spec: must be, got nothing",
    }
    return Finding(**{**given, "object": REF, **difference})


@pytest.mark.parametrize(
    ("severity", "allowed", "clean"), [("error", False, False), ("warning", True, False), ("note", True, True)]
)
def test_verdicts(severity: str, allowed: bool, clean: bool) -> None:  # noqa: FBT001 - a table
    """An error is not allowed, a warning is to be looked at, a note is neither."""
    verdict = verdict_of([finding(severity=severity)])
    assert (verdict.allowed, verdict.clean) == (allowed, clean)


def test_findings_are_ordered_and_single() -> None:
    """Findings come in the order of files and lines, each once."""
    first, second, third = (finding(source=Source(*place)) for place in (("a", 2), ("a", 10), ("b", 1)))
    assert verdict_of([third, second, first, second]).findings == (first, second, third)


def test_json_shape() -> None:
    """A verdict has one JSON shape."""
    verdict = verdict_of([finding(source=Source("a.yaml", 3)), finding(rule="b-rule")])
    place = '"object":{"apiVersion":"v1","kind":"Pod","namespace":"team-a","name":"vllm-0"}'
    start = '"severity":"error","path":"spec","message":"spec: must be, got nothing",'
    assert verdict_json(verdict).decode() == (
        f'{{"allowed":false,"findings":[{{"rule":"b-rule",{start}{place},"source":null}},'
        f'{{"rule":"a-rule",{start}{place},"source":{{"file":"a.yaml","line":3}}}}]}}'
    )
    assert verdict_json(Verdict(allowed=True)) == b'{"allowed":true,"findings":[]}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": 1}}},
            "metadata.labels[...]: must be what its kind has there, got expected `str`, got `int`",
        ),
        (
            {
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "metadata": {"name": "a"},
                "spec": [],
            },
            "spec: must be what its kind has there, got expected `object`, got `array`",
        ),
        (
            {**GROUP, "spec": "none"},
            "spec: must be what its kind has there, got expected `object`, got `str`",
        ),
    ],
    ids=["a pod", "an LWS", "a group"],
)
def test_malformed_objects(content: dict[str, Any], message: str) -> None:
    """An object with a field of another type than its kind has is one finding, and judged by nothing else."""
    verdict = judged(content)
    assert messages(verdict, "objects-well-formed") or messages(verdict, "native-objects-valid")
    if content["kind"] != "Pod":
        assert messages(verdict) == [message]


def test_nulls_are_nothing() -> None:
    """A null is as good as a missing field, as it is for the API server."""
    pod = leader_pod(spec={"schedulingGroup": None, "priorityClassName": None})
    pod["status"] = None
    assert messages(judged(pod), "objects-well-formed") == []


def test_kinds_of_others_are_left_alone() -> None:
    """Nothing is said about objects that no rule looks at."""
    assert judged({"apiVersion": "v1", "kind": "ConfigMap", "data": 3}, {}, {"kind": "Pod"}) == Verdict(allowed=True)


def test_deletions_are_never_found() -> None:
    """What is deleted breaks no rule of ours."""
    subject = Subject(GROUP, operation=DELETE)
    rules = {rule.id: rule for rule in all_rules().values() if rule.enforced_by == "both"}
    assert review([subject], snapshot_of([subject]), Target(), rules=rules).findings == ()


def test_line_of_the_culprit() -> None:
    """A finding names the line of its field; where the field is missing, that of the nearest one around it."""
    lines = {"spec": (7, {"minMember": (9, None)})}
    subject = Subject(GROUP, Source("g.yaml", 2), lines=lines)
    verdict = review([subject], snapshot_of([subject]), Target())
    assert [(found.rule, found.source) for found in verdict.findings] == [
        ("podgroup-minimum-positive", Source("g.yaml", 9))
    ]


FIELDS = ["name", "labels", "annotations", "spec", "schedulingPolicy", "gang", "minCount", "template", "controller"]
TEXTS = ["", "vllm", "vllm-0", "0", "2", "8Gi", "[]", "volcano"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(TEXTS),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), below, max_size=3),
    max_leaves=10,
)
KEYS = [
    "leaderworkerset.sigs.k8s.io/name",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/size",
    "leaderworkerset.sigs.k8s.io/leader-name",
    "lockstep.dev/group",
    "lockstep.dev/queue",
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "yunikorn.apache.org/task-groups",
]
KINDS = sorted({kind for rule in all_rules().values() for kind in rule.kinds})
VERSIONS = {
    "": "v1",
    "leaderworkerset.x-k8s.io": "v1",
    "scheduling.k8s.io": "v1beta1",
    "scheduling.x-k8s.io": "v1alpha1",
}


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an object of a kind that rules look at, with fields of any shape."""
    kind, _, group = draw(st.sampled_from(KINDS)).partition(".")
    version = VERSIONS.get(group, "v1beta1")
    texts = st.dictionaries(
        st.sampled_from(KEYS), st.sampled_from(["", "vllm", "vllm-0", "0", "1", "x" * 70]), max_size=5
    )
    owners = st.lists(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("kind", "name", "uid", "controller"), VALUES)), max_size=2
    )
    metadata = st.fixed_dictionaries(
        {"name": st.sampled_from(["vllm", "vllm-0", "vllm-0-1"])},
        optional={
            "namespace": st.just("a"),
            "labels": texts | VALUES,
            "annotations": texts | VALUES,
            "ownerReferences": owners | VALUES,
        },
    )
    spec = st.dictionaries(
        st.sampled_from(
            [
                "minMember",
                "minResources",
                "queue",
                "priorityClassName",
                "schedulerName",
                "replicas",
                "workloadRef",
                "schedulingPolicy",
                "schedulingGroup",
                "leaderWorkerTemplate",
                "rolloutStrategy",
                "podGroupTemplates",
                "containers",
                "startupPolicy",
                "scheduling",
            ]
        ),
        VALUES,
        max_size=5,
    )
    return {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "metadata": draw(metadata | VALUES),
        "spec": draw(spec | VALUES),
    }


@given(st.lists(objects(), min_size=1, max_size=4), st.sampled_from([CREATE, UPDATE]))
@settings(max_examples=300, deadline=None)
def test_any_objects_are_judged(contents: list[dict[str, Any]], operation: Operation) -> None:
    """Whatever the objects hold, they are judged: no rule raises, and every message keeps its shape."""
    old = contents[0] if operation == UPDATE else None
    subjects = [Subject(content, operation=operation, old=old) for content in contents]
    for found in review(subjects, snapshot_of(subjects), Target()).findings:
        assert found.message
        assert found.rule in all_rules() or found.rule == "objects-well-formed"
