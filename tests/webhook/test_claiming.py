"""The ResourceClaim of a replica, put into its pods."""

from typing import Any

import pytest

from tests.builders import JsonObject, leader_pod, operations, review, worker_pod
from tests.webhook.fakes import ALLOWED_PATHS, admit, decider, lws_webhook

ASKS = {"lockstep.dev/resource-claim-template": "imex"}
OF_ITS_OWN = {"name": "channel", "resourceClaimTemplateName": "imex"}
OTHER = {"name": "nic", "resourceClaimName": "nic-1"}
GROUP = "lockstep.dev/group"


def asking(build: Any = leader_pod, annotations: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """A pod whose template asks for a claim."""
    pod: JsonObject = build(spec=spec)
    pod["metadata"]["annotations"] |= ASKS if annotations is None else annotations
    return pod


def containers(*resources: JsonObject | None) -> list[JsonObject]:
    """Containers with these resources."""
    return [
        {"name": f"c{number}", **({} if given is None else {"resources": given})}
        for number, given in enumerate(resources)
    ]


@pytest.mark.parametrize("build", [leader_pod, worker_pod])
def test_all_pods_of_a_replica_name_one_claim(build: Any) -> None:
    """It is called as the group is; every container gets it."""
    _, after = admit(asking(build, containers=containers(None, {"limits": {"cpu": "1"}})))
    group = after["metadata"]["labels"][GROUP]
    assert after["spec"]["resourceClaims"] == [{"name": "lockstep", "resourceClaimName": group}]
    assert [container["resources"] for container in after["spec"]["containers"]] == [
        {"claims": [{"name": "lockstep"}]},
        {"limits": {"cpu": "1"}, "claims": [{"name": "lockstep"}]},
    ]


def test_an_entry_of_the_pods_own_becomes_the_shared_claim() -> None:
    """So a template says which of its containers get it; other claims stay."""
    mine = containers({"claims": [{"name": "channel"}]}, None)
    _, after = admit(asking(resourceClaims=[OTHER, OF_ITS_OWN], containers=mine))
    group = after["metadata"]["labels"][GROUP]
    assert after["spec"]["resourceClaims"] == [OTHER, {"name": "channel", "resourceClaimName": group}]
    assert after["spec"]["containers"] == mine


def test_claims_of_others_stay() -> None:
    """Ours comes beside them, in the pod and in its containers."""
    mine = containers({"claims": [{"name": "nic"}]})
    _, after = admit(asking(resourceClaims=[OTHER], containers=mine))
    assert [claim["name"] for claim in after["spec"]["resourceClaims"]] == ["nic", "lockstep"]
    assert after["spec"]["containers"][0]["resources"]["claims"] == [{"name": "nic"}, {"name": "lockstep"}]


@pytest.mark.parametrize("build", [leader_pod, worker_pod])
def test_a_second_pass_changes_nothing(build: Any) -> None:
    """The API server asks twice."""
    specs: tuple[JsonObject, ...] = ({}, {"resourceClaims": [OF_ITS_OWN]})
    for spec in specs:
        _, once = admit(asking(build, containers=containers(None), **spec))
        assert admit(once)[0].outcome == "unchanged"


@pytest.mark.parametrize("scheduler", ["someone-elses", None])
def test_without_the_word_or_a_scheduler_of_ours_there_is_no_claim(scheduler: str | None) -> None:
    """Nothing is written that nobody makes."""
    pod = asking(annotations={} if scheduler is None else ASKS, containers=containers(None))
    pod["spec"]["schedulerName"] = scheduler or "default-scheduler"
    assert "resourceClaims" not in admit(pod)[1]["spec"]


def test_a_scheduler_that_can_not_share_claims_is_told() -> None:
    """Coscheduling holds the first pod until the second is placed, and the second waits for the first's claim: seen."""
    pod = asking(containers=containers(None))
    pod["spec"]["schedulerName"] = "scheduler-plugins-scheduler"
    decision, after = admit(pod)
    assert "resourceClaims" not in after["spec"]
    told = "lockstep gives this pod no ResourceClaim: Coscheduling (scheduler-plugins) does not place pods together"
    assert told.encode() in decision.body


@pytest.mark.parametrize(
    ("annotations", "spec", "message"),
    [
        pytest.param(
            {"lockstep.dev/resource-claim-template": "Imex!"},
            {},
            'metadata.annotations[lockstep.dev/resource-claim-template]: must be a DNS subdomain, got "Imex!"',
            id="no name of an object",
        ),
        pytest.param(
            ASKS,
            {"resourceClaims": [{"name": "lockstep", "resourceClaimName": "mine"}]},
            'spec.resourceClaims: must have no other claim of the name "lockstep", got "lockstep"',
            id="the name is taken",
        ),
        pytest.param(
            ASKS,
            {"resourceClaims": {"name": "x"}},
            'spec.resourceClaims: must be a list of claims, got "Expected `array | null`, got `object`"',
            id="not a list",
        ),
    ],
)
def test_what_can_not_be_done_is_a_warning(annotations: dict[str, str], spec: JsonObject, message: str) -> None:
    """The pod is stamped all the same; the API server and LWS decide about the rest."""
    decision, after = admit(asking(annotations=annotations, **spec))
    assert GROUP in after["metadata"]["labels"]
    assert after["spec"].get("resourceClaims") == spec.get("resourceClaims")
    assert f"lockstep gives this pod no ResourceClaim: {message}".encode() in decision.body.replace(b'\\"', b'"')


def test_a_withdrawn_stamp_leaves_each_pod_a_claim_of_its_own() -> None:
    """LWS's own Volcano provider takes the pod after our first pass: nobody makes the shared claim then."""
    _, once = admit(asking(resourceClaims=[OF_ITS_OWN], containers=containers(None)))
    decision, after = admit(lws_webhook(once, "team-a", volcano=True))
    assert decision.outcome == "withdrawn"
    assert after["spec"]["resourceClaims"] == [OF_ITS_OWN]


def test_patches_with_claims_stay_in_the_allow_list() -> None:
    """No other path is written."""
    specs: tuple[JsonObject, ...] = ({}, {"resourceClaims": [OF_ITS_OWN]}, {"resourceClaims": [OTHER]})
    for spec in specs:
        pod = asking(containers=containers(None, {}, {"claims": [{"name": "nic"}]}), **spec)
        body = decider()(review(pod)).body
        assert {operation["path"] for operation in operations(body)} <= ALLOWED_PATHS
