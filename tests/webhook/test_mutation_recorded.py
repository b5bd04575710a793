"""Every recorded review, decided: the patch word for word, and what follows from it."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.builders import LWS, JsonObject, operations, patched, response, review
from tests.webhook.fakes import ALLOWED_PATHS, DRAWN, REVIEWS, decider, lws_webhook, recorded, recorded_pod

PATCHES: dict[str, list[JsonObject]] = json.loads(Path(__file__).with_name("expected_patches.json").read_text())
STAMPED = sorted(name for name, patch in PATCHES.items() if patch)
FIRST_PASSES = sorted(name for name in STAMPED if name.startswith("mutate-") and f"{name}-2" in PATCHES)


def test_the_table_covers_every_recorded_review() -> None:
    """A new recording needs an expectation."""
    assert {path.stem for path in REVIEWS.glob("*.json") if not path.stem.startswith("objects-")} == set(PATCHES)


@pytest.mark.parametrize("name", PATCHES)
def test_a_recorded_review_gets_its_patch(name: str) -> None:
    """LWS pods of kube-scheduler and YuniKorn are stamped; all else is left alone."""
    decision = decider()(recorded(name))
    assert decision.status == 200
    assert response(decision.body)["allowed"] is True
    assert response(decision.body)["uid"] == json.loads(recorded(name))["request"]["uid"]
    assert operations(decision.body) == PATCHES[name]
    assert decision.outcome == ("stamped" if PATCHES[name] else "unchanged")
    assert decision.provider == (provider_of(name) if PATCHES[name] else "")


def provider_of(name: str) -> str:
    """Give the provider of a recorded pod."""
    return "yunikorn" if "-yuni-" in name else "native"


@pytest.mark.parametrize("name", STAMPED)
def test_the_group_follows_the_documented_formula(name: str) -> None:
    """Name, index, and ten digits of SHA-256 over namespace, name, index, revision and key."""
    request = json.loads(recorded(name))["request"]
    pod = patched(request["object"], PATCHES[name])
    labels = pod["metadata"]["labels"]
    lws, key = labels[f"{LWS}name"], labels[f"{LWS}group-key"]
    index = labels.get(f"{LWS}group-index", pod["metadata"]["name"].rpartition("-")[2])
    parts = (request["namespace"], lws, index, labels[f"{LWS}template-revision-hash"], key)
    group = f"{lws}-{index}-{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:10]}"
    assert labels["lockstep.dev/group"] == group
    if provider_of(name) == "native":
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group}
    else:
        assert labels["yunikorn.apache.org/app-id"] == group


@pytest.mark.parametrize("name", STAMPED)
def test_a_stamped_pod_gets_no_second_patch(name: str) -> None:
    """Admitted twice is admitted once; nothing outside the allow-list is ever touched."""
    decide = decider()
    first = decide(recorded(name))
    assert {operation["path"] for operation in operations(first.body)} <= ALLOWED_PATHS
    pod = patched(recorded_pod(name), operations(first.body))
    second = decide(review(pod, namespace="default"))
    assert (second.outcome, operations(second.body)) == ("unchanged", [])


@pytest.mark.parametrize("name", STAMPED)
def test_the_same_review_gives_the_same_bytes(name: str) -> None:
    """A dry run too: the decision has no side effect that a dry run would have to leave out."""
    body = recorded(name)
    dry = json.dumps({**json.loads(body), "request": {**json.loads(body)["request"], "dryRun": True}}).encode()
    assert decider()(body) == decider()(body) == decider()(dry)


@pytest.mark.parametrize("name", FIRST_PASSES)
def test_c57_both_orders_of_the_webhooks_give_the_same_pod(name: str) -> None:
    """Ours, LWS's, ours again gives what LWS's, ours gives: the recorded second pass, stamped."""
    second = recorded_pod(f"{name}-2")
    key = second["metadata"]["labels"][f"{LWS}group-key"]
    decide = decider(key=key)
    ours = patched(recorded_pod(name), operations(decide(recorded(name)).body))
    both = _with_what_lws_adds(lws_webhook(ours, "default"), second)
    again = decide(review(both, namespace="default"))
    assert operations(again.body) == []
    theirs_first = patched(second, operations(decide(review(second, namespace="default")).body))
    assert both == theirs_first


def _with_what_lws_adds(pod: JsonObject, second: JsonObject) -> JsonObject:
    """Give a pod what LWS's webhook writes beside the keys that concern us: environment and subgroup labels."""
    metadata, spec = pod["metadata"], pod["spec"]
    labels = {**second["metadata"]["labels"], **metadata["labels"]}
    annotations = {**second["metadata"]["annotations"], **metadata["annotations"]}
    ours = {key: value for key, value in spec.items() if key in ("schedulingGroup", "schedulingGates")}
    return {
        **second,
        "metadata": {**second["metadata"], "labels": labels, "annotations": annotations},
        "spec": {**second["spec"], "affinity": spec["affinity"], **ours}
        if "affinity" in spec
        else second["spec"] | ours,
    }


def test_c57_a_drawn_key_survives_lws_and_reaches_every_member() -> None:
    """LWS keeps a leader's key and writes it into affinity terms and the worker's template: all agree on the group."""
    decide = decider()
    first = patched(recorded_pod("mutate-create-topo-leader"), PATCHES["mutate-create-topo-leader"])
    second = lws_webhook(first, "default")
    assert operations(decide(review(second, namespace="default")).body) == []
    assert DRAWN in json.dumps(second["spec"]["affinity"])
    worker = recorded_pod("mutate-create-vllm-worker")
    leader = patched(recorded_pod("mutate-create-vllm-leader"), PATCHES["mutate-create-vllm-leader"])
    worker["metadata"]["labels"][f"{LWS}group-key"] = leader["metadata"]["labels"][f"{LWS}group-key"]
    stamped = patched(worker, operations(decide(review(worker, namespace="default")).body))
    assert stamped["spec"]["schedulingGroup"] == leader["spec"]["schedulingGroup"]


def test_c14_affinity_is_left_to_lws() -> None:
    """A leader with LWS's affinity terms keeps them byte for byte, however often it is admitted."""
    decide, pod = decider(), recorded_pod("mutate-create-topo-leader-2")
    affinity = json.dumps(pod["spec"]["affinity"])
    for _ in range(3):
        patch = operations(decide(review(pod, namespace="default")).body)
        assert not [operation for operation in patch if operation["path"].startswith("/spec/affinity")]
        pod = patched(pod, patch)
        assert json.dumps(pod["spec"]["affinity"]) == affinity
