"""The store and its indexes, compared with a plain dictionary."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from reconciler.store import Entry, Store

Value = tuple[int, int]
"""Version and index value."""


def by_remainder(value: Value) -> list[int]:
    return [value[1] % 3, value[1] % 3] if value[1] else []


KEY = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"]))
VALUE = st.tuples(st.integers(1, 3), st.integers(0, 5))


class Step(NamedTuple):
    """One change; the parts that a kind of change does not need are ignored."""

    what: str
    key: tuple[str, str]
    value: Value
    namespace: str
    found: dict[tuple[str, str], Value]


STEP = st.builds(
    Step,
    st.sampled_from(["put", "drop", "replace"]),
    KEY,
    VALUE,
    st.sampled_from(["", "a"]),
    st.dictionaries(KEY, VALUE),
)


@given(steps=st.lists(STEP, max_size=30))
def test_store_is_a_dictionary_with_indexes(steps: list[Step]) -> None:
    """After any run of changes the store and each of its indexes are what a dictionary says."""
    store: Store[Value] = Store({"remainder": by_remainder})
    model: dict[tuple[str, str], Value] = {}
    for what, key, value, namespace, found in steps:
        if what == "put":
            assert store.put(key, store.make_entry("u", str(value[0]), value)) == model.get(key)
            model[key] = value
        elif what == "drop":
            assert store.drop(key) == model.pop(key, None)
        else:
            replace(store, model, namespace, {k: v for k, v in found.items() if namespace in ("", k[0])})
        assert sorted(store.objects()) == sorted(model.values())
        for remainder in range(3):
            wanted = sorted(value for value in model.values() if remainder in by_remainder(value))
            assert sorted(store.by_index("remainder", remainder)) == wanted
        assert set(store.index_values("remainder")) == {value[1] % 3 for value in model.values() if value[1]}


def replace(
    store: Store[Value], model: dict[tuple[str, str], Value], namespace: str, found: dict[tuple[str, str], Value]
) -> None:
    """Replace in both, and check that the changes told lead from the one to the other."""
    entries = {key: store.make_entry("u", str(value[0]), value) for key, value in found.items()}
    before = dict(model)
    changes = store.replace(entries, namespace)
    for key in [key for key in model if namespace in ("", key[0])]:
        if key not in found:
            del model[key]
    for key, value in found.items():
        # The same version is the same object, whatever it holds.
        if key not in model or model[key][0] != value[0]:
            model[key] = value
    wanted = [(before.get(key), model.get(key)) for key in before.keys() | model.keys()]
    assert sorted(map(str, changes)) == sorted(str(pair) for pair in wanted if pair[0] is not pair[1])


def test_a_new_life_of_the_same_version_is_a_change() -> None:
    """Another uid under the same name is another object."""
    store: Store[str] = Store()
    store.put(("n", "a"), Entry("uid-1", "5", "old"))
    assert store.replace({("n", "a"): Entry("uid-2", "5", "new")}) == [("old", "new")]
    assert store.get("n", "a") == "new"


def test_objects_without_version_are_always_news() -> None:
    """Where a server gives no version, equality can't be known."""
    store: Store[str] = Store()
    store.put(("n", "a"), Entry("u", "", "old"))
    assert store.replace({("n", "a"): Entry("u", "", "new")}) == [("old", "new")]
