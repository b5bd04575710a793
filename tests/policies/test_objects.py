"""Kinds, field paths and the lines of fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.findings import ObjectRef, Source, ref_of
from policies.objects import Subject, kind_of, steps_of, value_at, version_of


@pytest.mark.parametrize(
    ("content", "kind", "version"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "Pod", "v1"),
        ({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}, "PodGroup.scheduling.k8s.io", "v1beta1"),
        ({"kind": "Pod"}, "", ""),
        ({"apiVersion": 1, "kind": []}, "", "1"),
    ],
)
def test_kind_of(content: dict[str, Any], kind: str, version: str) -> None:
    """A kind is named without its version; what is no object has none."""
    assert (kind_of(content), version_of(content)) == (kind, version)


@pytest.mark.parametrize(
    ("path", "steps", "value"),
    [
        ("spec.containers[1].name", ("spec", "containers", "1", "name"), "b"),
        ("metadata.labels[a.b/c]", ("metadata", "labels", "a.b/c"), "d"),
        ("spec.containers[2]", ("spec", "containers", "2"), None),
        ("spec.containers[\N{SUPERSCRIPT TWO}]", ("spec", "containers", "\N{SUPERSCRIPT TWO}"), None),
        ("spec.containers[99999999999999999999]", ("spec", "containers", "99999999999999999999"), None),
        ("spec.containers.name", ("spec", "containers", "name"), None),
        ("spec.none.at.all", ("spec", "none", "at", "all"), None),
    ],
)
def test_paths(path: str, steps: tuple[str, ...], value: object) -> None:
    """A field path is split at dots and brackets, and followed as far as it goes."""
    content = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "metadata": {"labels": {"a.b/c": "d"}}}
    assert steps_of(path) == steps
    assert value_at(content, path) == value


@given(st.text(max_size=40))
def test_any_path_is_followed(path: str) -> None:
    """No text is a path that can't be followed."""
    subject = Subject({}, Source("a", 3), lines={"a": (4, [(5, None)])})
    assert subject.source_of(path) in (Source("a", 3), Source("a", 4), Source("a", 5))


def test_names_of_odd_objects() -> None:
    """An object is named by what it has, whatever its shape; a generated name counts as one."""
    assert ref_of({}) == ObjectRef("", "", "", "")
    assert ref_of({"apiVersion": 1, "kind": None, "metadata": []}) == ObjectRef("", "", "", "")
    named = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-", "namespace": "b"}}
    assert str(ref_of(named)) == "Pod b/a-"
    assert str(ref_of({"kind": "Queue", "metadata": {"name": "q"}})) == "Queue q"
