"""What holds for every pod and every body."""

import json
import string
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import LWS, NAMESPACE, JsonObject, operations, patched, response, review
from tests.webhook.fakes import ALLOWED_PATHS, SCHEDULERS, decider, lws_webhook
from webhook.reviews import Decision

OUTCOMES = {"stamped", "unchanged", "withdrawn", "warned"}

texts = st.text(max_size=12) | st.sampled_from(["0", "1", "00", "-1", "2", "vllm", "vllm-0-r", "off", "x" * 70])
schedulers = st.sampled_from([None, *SCHEDULERS, "bespoke"]) | st.text(max_size=5)
lws_keys = st.sampled_from(
    [
        *(LWS + key for key in ("name", "group-index", "worker-index", "group-key", "template-revision-hash")),
        *(LWS + key for key in ("size", "leader-name", "exclusive-topology")),
        *("lockstep.dev/group", "lockstep.dev/gang"),
        *("scheduling.k8s.io/group-name", "volcano.sh/task-spec", "scheduling.x-k8s.io/pod-group"),
        *("yunikorn.apache.org/app-id", "yunikorn.apache.org/task-group-name"),
    ]
)
any_keys = lws_keys | st.text(max_size=8)
maps = st.dictionaries(any_keys, texts, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
groups = st.none() | st.fixed_dictionaries({}, optional={"podGroupName": st.none() | texts, "other": texts})
gates = st.none() | st.lists(
    st.sampled_from(["lockstep.dev/group", "theirs"]).map(lambda name: {"name": name}), max_size=2
)
dns = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=63)


@st.composite
def wild_pods(draw: st.DrawFn) -> JsonObject:
    """Draw a pod with any labels and annotations, LWS's and ours among them."""
    metadata = {"name": draw(texts), "labels": draw(st.none() | maps), "annotations": draw(st.none() | maps)}
    spec = {"schedulerName": draw(schedulers), "schedulingGroup": draw(groups), "other": draw(json_values)}
    spec["schedulingGates"] = draw(gates)
    kept = {key: value for key, value in metadata.items() if value is not None or draw(st.booleans())}
    return {"metadata": kept, "spec": spec}


@st.composite
def lws_pods(draw: st.DrawFn) -> JsonObject:
    """Draw a pod as LWS makes it, on its first or second pass, with labels and annotations of others."""
    index, leader = draw(st.integers(0, 2**31 - 1)), draw(st.booleans())
    lws = draw(dns.filter(lambda name: name.strip("-") == name))
    labels = {**draw(st.dictionaries(st.text(max_size=8), texts, max_size=3)), f"{LWS}name": lws}
    labels[f"{LWS}template-revision-hash"] = draw(st.text(string.hexdigits, min_size=1, max_size=12))
    annotations = {**draw(st.dictionaries(st.text(max_size=8), texts, max_size=3)), f"{LWS}size": str(index + 1)}
    annotations[f"{LWS}size"] = str(draw(st.integers(1, 2**31 - 1)))
    if leader:
        labels[f"{LWS}worker-index"] = "0"
    else:
        annotations[f"{LWS}leader-name"] = f"{lws}-{index}"
        labels |= {f"{LWS}group-index": str(index), f"{LWS}group-key": draw(st.text(string.hexdigits, min_size=1))}
    name = f"{lws}-{index}" if leader else f"{lws}-{index}-{draw(st.integers(1, 99))}"
    spec = {"schedulerName": draw(st.sampled_from([None, "", *SCHEDULERS])), "affinity": draw(json_values)}
    pod = {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}
    return lws_webhook(pod, NAMESPACE) if draw(st.booleans()) else pod


def decide(pod: Any) -> Decision:
    """Decide on a pod, with what has to hold for every answer."""
    decision = decider()(review(pod))
    assert decision.status == 200
    assert decision.outcome in OUTCOMES
    assert response(decision.body)["allowed"] is True
    assert {operation["path"] for operation in operations(decision.body)} <= ALLOWED_PATHS
    return decision


@given(wild_pods())
def test_any_pod_is_admitted_and_never_overwritten(pod: JsonObject) -> None:
    """Never an exception; a stamp only adds; whatever comes out is left as it is the second time."""
    decision = decide(pod)
    after = patched(pod, operations(decision.body))
    if decision.outcome == "stamped":
        assert {operation["op"] for operation in operations(decision.body)} == {"add"}
        for where in ("labels", "annotations"):
            before = pod["metadata"].get(where) or {}
            assert before.items() <= after["metadata"][where].items()
        ours = {"schedulingGroup": None, "schedulingGates": None}
        assert {**after["spec"], **ours} == {**pod["spec"], **ours}
        held = pod["spec"]["schedulingGates"] or []
        assert after["spec"]["schedulingGates"] in (
            pod["spec"]["schedulingGates"],
            [*held, {"name": "lockstep.dev/group"}],
        )
        assert pod["spec"]["schedulingGroup"] in (None, after["spec"]["schedulingGroup"])
    elif decision.outcome == "withdrawn":
        assert "lockstep.dev/group" not in after["metadata"]["labels"]
    else:
        assert after == pod
    assert operations(decide(after).body) == []


@given(lws_pods())
def test_every_pod_of_an_lws_is_stamped_once(pod: JsonObject) -> None:
    """The usual pod of every shape is in its group after one pass, and LWS's webhook changes nothing about that."""
    decision = decide(pod)
    assert decision.outcome == "stamped"
    once = patched(pod, operations(decision.body))
    assert len(once["metadata"]["labels"]["lockstep.dev/group"]) <= 63
    assert operations(decide(once).body) == []
    assert operations(decide(lws_webhook(once, NAMESPACE)).body) == []
    assert not [operation for operation in operations(decision.body) if operation["path"].startswith("/spec/affinity")]


@given(lws_pods())
def test_a_claim_of_lws_volcano_provider_takes_every_byte_of_ours_away(pod: JsonObject) -> None:
    """Whatever the pod, our stamp followed by theirs ends as theirs alone; the key may stay in affinity terms."""
    ours = patched(pod, operations(decide(pod).body))
    theirs = lws_webhook(ours, NAMESPACE, volcano=True)
    after = patched(theirs, operations(decide(theirs).body))
    for where in ("labels", "annotations"):
        expected = lws_webhook(pod, NAMESPACE, volcano=True)["metadata"][where]
        assert after["metadata"][where] == expected
    assert not after["spec"].keys() & {"schedulingGroup", "schedulingGates"}


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "request"]), json_values) | json_values)
def test_any_json_is_answered(document: Any) -> None:
    """200 or 400, never an exception."""
    assert decider()(json.dumps(document).encode()).status in (200, 400)


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(body: bytes) -> None:
    """200 or 400, never an exception."""
    assert decider()(body).status in (200, 400)


@settings(max_examples=300)
@given(wild_pods(), st.integers(0, 10_000), st.binary(max_size=3))
def test_a_damaged_review_is_answered(pod: JsonObject, at: int, junk: bytes) -> None:
    """A review with some bytes replaced is still answered with 200 or 400."""
    body = review(pod)
    at %= len(body)
    decision = decider()(body[:at] + junk + body[at + len(junk) :])
    assert decision.status in (200, 400)
    if decision.status == 400:
        assert b": must " in decision.body
