"""Names of groups."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs import names
from tests.builders import KEY

LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
lws_names = st.from_regex(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
indexes = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        pytest.param(("team-a", "vllm", 0, "69fbc5554", KEY), "vllm-0-b2efc632cb", id="a usual name"),
        pytest.param(("team-b", "vllm", 0, "69fbc5554", KEY), "vllm-0-0ed8a7eb6d", id="another namespace"),
        pytest.param(("team-a", "vllm", 1, "69fbc5554", KEY), "vllm-1-f8594b3a62", id="another index"),
        pytest.param(("team-a", "vllm", 0, "78686fc9f9", KEY), "vllm-0-8fd6e0cd47", id="another revision"),
        pytest.param(("team-a", "vllm", 0, "69fbc5554", "0" * 40), "vllm-0-4bf23f01d3", id="another key"),
        pytest.param(("team-a", "m" * 63, 2147483647, "r", "k"), "m" * 41 + "-2147483647-f6f7594baf", id="the longest"),
        pytest.param(("team-a", "m" * 49 + "-xyz", 0, "r", "k"), "m" * 49 + "-0-ce8867d7bd", id="cut at a dash"),
    ],
)
def test_names_stay_what_they_are(identity: tuple[str, str, int, str, str], name: str) -> None:
    """Pods of a living cluster hold these names: the formula may never change."""
    assert names.group_name(*identity) == name


@given(lws=lws_names, index=indexes, revision=st.text(), key=st.text())
def test_a_name_is_a_dns_label_and_follows_the_formula(lws: str, index: int, revision: str, key: str) -> None:
    """Whatever the parts, the name fits a label value and an object name, and anyone can compute it."""
    name = names.group_name("team-a", lws, index, revision, key)
    digest = hashlib.sha256("/".join(("team-a", lws, str(index), revision, key)).encode("utf-8")).hexdigest()
    assert LABEL.fullmatch(name)
    assert name.endswith(f"-{index}-{digest[:10]}")
    assert lws.startswith(name.removesuffix(f"-{index}-{digest[:10]}"))


@given(lws=lws_names, parts=st.lists(st.tuples(indexes, st.uuids(), st.uuids()), unique=True, max_size=20))
def test_no_two_incarnations_share_a_name(lws: str, parts: list[tuple[int, object, object]]) -> None:
    """Index, revision and key each make another name, also where the LWS's name is cut."""
    made = {names.group_name("team-a", lws, index, str(revision), str(key)) for index, revision, key in parts}
    assert len(made) == len(parts)


def test_lws_own_key_and_group_name_are_those_that_lws_writes() -> None:
    """Both stand on recorded pods: of `default/vllm-0`, and of LWS's Volcano provider."""
    assert names.key_of_lws("default", "vllm-0") == "3026934fa959105a39223221cf76941a46fb01bb"
    assert names.key_of_lws("default", "topo-0") == "a5b5ac81037914bba5825622ab1055353705aed5"
    assert names.lws_volcano_group_name("vllm", 0, "f846f4466") == "vllm-0-f846f4466"


def test_shared_objects_have_names_of_their_own() -> None:
    """Each owner and purpose another; a label of at most 63 characters, whatever the owner is called."""
    one = names.shared_name("team-a", "vllm", "workload", "69fbc5554")
    assert one == names.shared_name("team-a", "vllm", "workload", "69fbc5554")
    assert one.startswith("vllm-")
    others = [("team-b", "vllm", "workload"), ("team-a", "vllm", "roles"), ("team-a", "other", "workload")]
    assert len({one, *(names.shared_name(*parts, "69fbc5554") for parts in others)}) == 4
    for owner in ("m" * 253, "a." * 40, "a-" * 40):
        assert names.DNS_LABEL.fullmatch(names.shared_name("n" * 63, owner, "workload", "r").replace(".", "-"))
        assert len(names.shared_name("n" * 63, owner, "r")) <= 63


@pytest.mark.parametrize("lws", ["vllm", "a-1-b-2", "m" * 63])
@pytest.mark.parametrize("index", [0, 7, 2**31 - 1])
def test_the_index_is_read_back_from_a_name(lws: str, index: int) -> None:
    """Pods of Kubernetes 1.35 name their replica beside its group."""
    assert names.index_in(names.group_name("team-a", lws, index, "r", "k")) == str(index)
