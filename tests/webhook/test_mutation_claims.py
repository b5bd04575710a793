"""Pods that someone else has put into a group."""

from itertools import product

import pytest

from tests.builders import LWS, NAMESPACE, JsonObject, leader_pod, operations, review, worker_pod
from tests.webhook.fakes import DRAWN, SCHEDULERS, admit, decider, lws_key, lws_webhook, observed_pod

ZONE = {f"{LWS}exclusive-topology": "topology.kubernetes.io/zone"}
GROUP_NAME = "scheduling.k8s.io/group-name"
POD_GROUP = "scheduling.x-k8s.io/pod-group"
PRESET: dict[str, JsonObject] = {
    "default-scheduler": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}},
    "volcano": {"annotations": {GROUP_NAME: "mine"}},
    "scheduler-plugins-scheduler": {"labels": {POD_GROUP: "mine"}},
    "yunikorn": {"labels": {"yunikorn.apache.org/app-id": "mine"}},
}


@pytest.mark.parametrize("first_pass", [True, False], ids=["first pass", "second pass"])
@pytest.mark.parametrize("build", [leader_pod, worker_pod], ids=["leader", "worker"])
@pytest.mark.parametrize("scheduler", PRESET)
def test_c18_a_group_that_the_user_has_set_is_kept(scheduler: str, build: object, *, first_pass: bool) -> None:
    """Not one byte is changed, no key is drawn."""
    assert callable(build)
    pod = build(scheduler=scheduler, first_pass=first_pass, **PRESET[scheduler])
    decision, after = admit(pod)
    assert (decision.outcome, after) == ("unchanged", pod)


@pytest.mark.parametrize("group", [{}, {"podGroupName": None}, {"podGroupName": ""}, {"newField": "x"}])
def test_a_scheduling_group_without_a_name_is_someones_too(group: JsonObject) -> None:
    """A field that we don't know is not overwritten."""
    pod = leader_pod(spec={"schedulingGroup": group})
    decision, after = admit(pod)
    assert (decision.outcome, after) == ("unchanged", pod)


def test_a_null_scheduling_group_is_none() -> None:
    """An explicit null is as good as an absent field."""
    decision, after = admit(leader_pod(spec={"schedulingGroup": None}))
    assert decision.outcome == "stamped"
    assert after["spec"]["schedulingGroup"] == {"podGroupName": "vllm-0-b2efc632cb"}


@pytest.mark.parametrize(
    ("scheduler", "keys"),
    [
        pytest.param("default-scheduler", {"labels": {POD_GROUP: "mine"}}, id="Coscheduling's label, kube-scheduler"),
        pytest.param("volcano", {"labels": {POD_GROUP: "mine"}}, id="Coscheduling's label, Volcano"),
        pytest.param(
            "scheduler-plugins-scheduler",
            {"annotations": {GROUP_NAME: "mine"}},
            id="Volcano's annotation, Coscheduling",
        ),
    ],
)
def test_keys_of_other_schedulers_claim_nothing(scheduler: str, keys: JsonObject) -> None:
    """A leftover of another scheduler doesn't keep a pod out of its gang, and stays where it is."""
    pod = leader_pod(scheduler=scheduler, **keys)
    decision, after = admit(pod)
    assert decision.outcome == "stamped"
    for where, values in keys.items():
        assert values.items() <= after["metadata"][where].items()


@pytest.mark.parametrize("annotations", [{}, ZONE], ids=["plain", "exclusive topology"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_we_stamped_is_withdrawn_once_lws_volcano_provider_has_claimed_the_pod(
    scheduler: str, annotations: dict[str, str | None]
) -> None:
    """Our pass, LWS's with its provider, our second pass: the pod is as if we had never been there.

    Only the key stays where LWS has already written it into affinity terms.
    """
    pod = leader_pod(first_pass=True, scheduler=scheduler, annotations=annotations)
    decide = decider()
    _, ours = admit(pod, decide)
    assert ours != pod
    decision, after = admit(lws_webhook(ours, NAMESPACE, volcano=True), decide)
    assert decision.outcome == "withdrawn"
    without_us = lws_webhook(pod, NAMESPACE, volcano=True)
    if annotations:
        labels = {**pod["metadata"]["labels"], f"{LWS}group-key": DRAWN}
        without_us = lws_webhook({**pod, "metadata": {**pod["metadata"], "labels": labels}}, NAMESPACE, volcano=True)
    assert after == without_us
    assert admit(after, decide)[0].outcome == "unchanged"


@pytest.mark.parametrize("scheduler", PRESET)
def test_a_group_that_another_webhook_wrote_over_ours_stays(scheduler: str) -> None:
    """Between our passes someone put the pod into a group of theirs: we leave, their key stays as they wrote it."""
    pod = leader_pod(first_pass=True, scheduler=scheduler)
    _, ours = admit(pod)
    theirs = lws_webhook(ours, NAMESPACE)
    theirs["metadata"]["labels"] |= PRESET[scheduler].get("labels", {})
    theirs["metadata"]["annotations"] |= PRESET[scheduler].get("annotations", {})
    theirs["spec"] |= PRESET[scheduler].get("spec", {})
    decision, after = admit(theirs)
    assert decision.outcome == "withdrawn"
    assert after == lws_webhook(leader_pod(first_pass=True, scheduler=scheduler, **PRESET[scheduler]), NAMESPACE)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_worker_is_withdrawn_with_its_leader(scheduler: str) -> None:
    """The worker keeps the key of its template, whoever drew it."""
    for key in (DRAWN, lws_key(NAMESPACE, "vllm-0")):
        pod = worker_pod(first_pass=True, scheduler=scheduler, key=key)
        _, ours = admit(pod)
        decision, after = admit(lws_webhook(ours, NAMESPACE, volcano=True))
        assert decision.outcome == "withdrawn"
        assert after == lws_webhook(pod, NAMESPACE, volcano=True)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_pods_that_lws_volcano_provider_had_first_are_left_alone(scheduler: str) -> None:
    """Also those of other schedulers: LWS makes its PodGroup for every LWS once its provider is on."""
    for build in (leader_pod, worker_pod):
        pod = lws_webhook(build(scheduler=scheduler), NAMESPACE, volcano=True)
        decision, after = admit(pod)
        assert (decision.outcome, after) == ("unchanged", pod)


@pytest.mark.parametrize(
    "name",
    ["lws-provider-leader-pod", "lws-provider-worker-pod", "lws-provider-exclusive-topology-leader"],
)
def test_pods_recorded_with_lws_volcano_provider_are_left_alone(name: str) -> None:
    """As real parts store them."""
    body = review(observed_pod(f"volcano/{name}"), namespace="default")
    assert (decider()(body).outcome, operations(decider()(body).body)) == ("unchanged", [])


YUNIKORN_CLAIMS: dict[str, JsonObject] = {
    "a label": {"labels": {"yunikorn.apache.org/app-id": "mine"}},
    "an annotation": {"annotations": {"yunikorn.apache.org/app-id": "mine"}},
    "the label of old": {"labels": {"applicationId": "mine"}},
    "Spark's label": {"labels": {"spark-app-selector": "mine"}},
    "task groups": {"annotations": {"yunikorn.apache.org/task-groups": "[]"}},
    "a placeholder": {"annotations": {"internal.yunikorn.apache.org/placeholder": "true"}},
}


@pytest.mark.parametrize("claim", YUNIKORN_CLAIMS.values(), ids=YUNIKORN_CLAIMS)
def test_every_way_to_name_an_application_is_a_claim(claim: JsonObject) -> None:
    """A user's own gang is left alone however it is spelt; a placeholder is nobody's member."""
    for build in (leader_pod, worker_pod):
        pod = build(scheduler="yunikorn", **claim)
        decision, after = admit(pod)
        assert (decision.outcome, after) == ("unchanged", pod)


@pytest.mark.parametrize("name", ["placeholder-pending", "plain-pending-pod", "bound-leader", "waiting-pod"])
def test_pods_recorded_with_yunikorn_are_left_alone_or_stamped(name: str) -> None:
    """Placeholders and pods of others' applications are not touched; a plain LWS pod is held back."""
    body = review(observed_pod(f"yunikorn/{name}"), namespace="default")
    assert decider()(body).outcome == ("stamped" if name == "plain-pending-pod" else "unchanged")


@pytest.mark.parametrize("app", ["yunikorn-team-a-autogen", "team-a-uniqueautogen"])
def test_an_application_that_yunikorns_own_webhook_made_up_is_none(app: str) -> None:
    """It stands for "no application": such a pod is stamped, and YuniKorn reads our label first."""
    decision, after = admit(leader_pod(scheduler="yunikorn", labels={"applicationId": app}))
    assert decision.outcome == "stamped"
    assert (
        after["metadata"]["labels"]["yunikorn.apache.org/app-id"] == after["metadata"]["labels"]["lockstep.dev/group"]
    )


def test_c20_leader_and_worker_never_get_split_decisions() -> None:
    """Over schedulers, opt-out, pre-set group and pass, both roles fare the same."""
    schedulers = ("default-scheduler", None, "volcano", "scheduler-plugins-scheduler", "yunikorn", "other")
    opt_outs: tuple[dict[str, str], ...] = ({}, {"lockstep.dev/gang": "off"})
    presets: tuple[JsonObject, ...] = ({}, *PRESET.values())
    outcomes = set()
    for scheduler, opt_out, preset, first_pass in product(schedulers, opt_outs, presets, (True, False)):
        difference = {**preset, "labels": {**preset.get("labels", {}), **opt_out}}
        leader, _ = admit(leader_pod(scheduler=scheduler, first_pass=first_pass, **difference))
        worker, _ = admit(worker_pod(scheduler=scheduler, first_pass=first_pass, **difference))
        assert (leader.outcome, leader.provider) == (worker.outcome, worker.provider)
        outcomes.add(leader.outcome)
    assert outcomes == {"stamped", "unchanged"}


def test_a_restored_pod_keeps_its_stamp() -> None:
    """A backup holds key and group together; a pod whose key was changed since keeps the group it names."""
    _, stored = admit(leader_pod())
    assert admit(stored)[0].outcome == "unchanged"
    stored["metadata"]["labels"][f"{LWS}group-key"] = "f" * 40
    decision, after = admit(stored)
    assert (decision.outcome, after) == ("unchanged", stored)
