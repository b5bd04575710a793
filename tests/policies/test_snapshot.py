"""A snapshot with a few more objects is what a new one of all of them would be."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from gangs import keys
from policies.shapes import POD, Pod, Thing
from policies.snapshot import Snapshot
from schedulers.registry import all_providers

Json = dict[str, Any]

NAMES = ("a", "b", "c")
INDEXES = ("_things", "_versions", "_members", "_of_lws", "_groups", "_namespaces")


def _pod(name: str, namespace: str, lws: str | None, group: str | None) -> Json:
    labels = {} if lws is None else {keys.LWS_NAME: lws}
    spec: Json = {} if group is None else {"schedulingGroup": {"podGroupName": group}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _group(name: str, namespace: str, lws: str | None) -> Json:
    labels = {} if lws is None else {keys.LWS_NAME: lws}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": {}}


OBJECTS = st.builds(
    _pod, st.sampled_from(NAMES), st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES), st.sampled_from(NAMES)
) | st.builds(_group, st.sampled_from(NAMES), st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES))


def _indexed(snapshot: Snapshot) -> dict[str, Any]:
    """Everything it knows, lists without their order and empty ones left out."""
    found: dict[str, Any] = {}
    for index in INDEXES:
        entries = getattr(snapshot, index)
        listed = {key: sorted(map(repr, value)) if isinstance(value, list) else value for key, value in entries.items()}
        found[index] = {key: value for key, value in listed.items() if value}
    return found


@given(st.lists(OBJECTS, max_size=8), st.lists(OBJECTS, max_size=4))
def test_more_objects_are_known_as_if_they_had_been_there(first: list[Json], more: list[Json]) -> None:
    """New ones are added, those of the same name replaced, in every index; the first snapshot stays as it was."""
    snapshot = Snapshot(first)
    before = _indexed(snapshot)
    assert _indexed(snapshot.plus(more)) == _indexed(Snapshot([*first, *more]))
    assert _indexed(snapshot) == before


def test_a_moved_member_leaves_its_group() -> None:
    """A pod that is replaced is in its new group alone."""
    native = all_providers()["native"]
    snapshot = Snapshot([_pod("p", "n", "vllm", "old")]).plus([_pod("p", "n", "vllm", "new")])
    assert snapshot.members(native, "n", "old") == []
    assert [pod.metadata.name for pod in snapshot.members(native, "n", "new")] == ["p"]
    assert len(snapshot.pods_of("n", "vllm")) == 1


def test_what_was_complete_need_not_be_any_more() -> None:
    """The caller says which kinds are whole; what is served stays known."""
    snapshot = Snapshot([_pod("p", "n", None, None)], complete=[POD], served=[])
    assert snapshot.knows(POD)
    assert not snapshot.plus([]).knows(POD)
    assert snapshot.plus([], complete=[POD]).knows(POD)
    assert snapshot.plus([]).get(POD, Pod, "n", "p") is not None


def test_what_is_no_object_is_left_out() -> None:
    """Without a name, or of a wrong shape, nothing is added."""
    snapshot = Snapshot([]).plus([{}, {"kind": "Pod", "apiVersion": "v1", "metadata": []}])
    assert snapshot.all(POD, Thing) == []
