"""The strict reader: what it reads, where things stand, and what it refuses."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.findings import Source
from policies.reading import LIMITS, Limits, Unreadable, read_objects

TWO = """\
# a comment
apiVersion: v1
kind: Pod
metadata:
  name: a
  labels: {x: "1"}
spec:
  containers:
  - name: main
    image: "registry.example/x:1"
---
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: b}
- apiVersion: v1
  kind: Pod
  metadata:
    name: c
"""


def test_objects_and_lines() -> None:
    """Every object has the line it begins at, members of a list too, and every field its own."""
    subjects = read_objects(TWO, "two.yaml")
    assert [(subject.ref.name, subject.source) for subject in subjects] == [
        ("a", Source("two.yaml", 2)),
        ("b", Source("two.yaml", 16)),
        ("c", Source("two.yaml", 19)),
    ]
    lines = {"metadata.labels[x]": 6, "spec.containers[0].image": 10, "spec.containers[7].image": 8, "nowhere": 2}
    assert {path: _line(subjects[0].source_of(path)) for path in lines} == lines
    assert _line(subjects[2].source_of("metadata.name")) == 22


def _line(source: Source | None) -> int:
    assert source is not None
    return source.line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", True),
        ("a: 'yes'", "yes"),
        ("a: ~", None),
        ("a: -12", -12),
        ("a: 0.5", 0.5),
        ("a: 1e3", "1e3"),
        ("a: 2026-11-30", "2026-11-30"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 1_000", "1_000"),
        ("a: !!str 5", "5"),
        ("a: =", "="),
        ('{"a": "\\ud83d\\ude00"}', "\N{GRINNING FACE}"),
        ("\ufeffa: b", "b"),
        ("a: b\r\n", "b"),
    ],
)
def test_values(text: str, value: object) -> None:
    """Plain values are read as Kubernetes' own reader reads them; dates and times stay texts."""
    assert read_objects(text, "a.yaml")[0].content == {"a": value}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x 1\nb: *x", 'a.yaml:2: must hold no YAML alias, got "*x"'),
        ("a: 1\nb: 2\na: 3", 'a.yaml:3: must hold each key once, got "a" twice'),
        (
            "a: !!python/object:os.system x",
            'a.yaml:1: must hold no YAML tag, got "tag:yaml.org,2002:python/object:os.syst...',
        ),
        ("? [a]\n: b", "a.yaml:1: must have strings as keys, got a mapping or list"),
        ("1: a", 'a.yaml:1: must have strings as keys, got "1"'),
        ("a: .inf", 'a.yaml:1: must hold plain decimal numbers, got ".inf"'),
        ("a: 0x1f", 'a.yaml:1: must hold plain decimal numbers, got "0x1f"'),
        ("a: 1.0e+400", 'a.yaml:1: must hold numbers that JSON has, got "1.0e+400"'),
        ("- a", "a.yaml:1: must hold objects, got a list"),
        ("word", 'a.yaml:1: must hold objects, got "word"'),
        ("kind: List\nitems: [3]", "a.yaml:2: must hold objects, got 3"),
        ("a: [", "a.yaml:2: must be YAML, got did not find expected node content"),
        ("a: \x00", "a.yaml:1: must be YAML, got a character that it does not allow"),
        ("\ud800", "a.yaml:1: must be YAML, got a character that it does not allow"),
        ('{"a": "\\ud83d\\ude00", "a": 1}', 'a.yaml:1: must hold each key once, got "a" twice'),
        ('{"a": "\\ud83d\\ude00", "b": NaN}', "a.yaml:1: must hold numbers that JSON has, got NaN"),
        ('{"a": "\\ud83d\\ude00"', "a.yaml:1: must be JSON, got expecting ',' delimiter"),
    ],
    ids=str,
)
def test_refused(text: str, problem: str) -> None:
    """What is no plain document is refused with its line."""
    with pytest.raises(Unreadable) as refused:
        read_objects(text, "a.yaml")
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: " + "[" * 200 + "]" * 200, id="deep list"),
        pytest.param("[" * 100_000, id="very deep list"),
        pytest.param("{" * 100_000, id="very deep map"),
        pytest.param('{"x":"\\ud83d\\ude00","a":' + '{"a":' * 100_000, id="very deep JSON"),
        pytest.param("a: &a [x,x]\n" + "\n".join(f"a{i}: &a{i} [*a,*a]" for i in range(30)), id="bomb"),
        pytest.param("\n".join(f"---\nkind: {i}" for i in range(60)), id="many documents"),
        pytest.param("kind: List\nitems:\n" + "- kind: x\n" * 60, id="long list"),
        pytest.param("a: " + "x" * 300_000, id="long text"),
        pytest.param('{"x":"\\ud83d\\ude00","a":' + "9" * 5000 + "}", id="long number"),
    ],
)
def test_attacks_are_refused(text: str) -> None:
    """Deep, long and self-referring documents are refused, and cost no more than the limits allow."""
    with pytest.raises(Unreadable):
        read_objects(text, "a.yaml", limits=Limits(characters=1 << 20 if len(text) < 300_000 else 250_000, objects=50))


@given(st.text(st.characters(codec="utf-8"), max_size=80) | st.text("{}[]:,-&*!?|>'\"#% \n\tab01.~", max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text, the reader gives objects or says why not."""
    try:
        subjects = read_objects(text, "a.yaml")
    except Unreadable as error:
        assert error.problem.startswith("must ")  # noqa: PT017 - either way is fine
    else:
        assert all(isinstance(subject.content, dict) for subject in subjects)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("abc/.", max_size=4), below, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), JSON, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read(content: dict[str, object]) -> None:
    """JSON and YAML of an object give the object back."""
    for text in (json.dumps(content), yaml.safe_dump(content)):
        assert [subject.content for subject in read_objects(text, "a", limits=LIMITS)] == [content]
