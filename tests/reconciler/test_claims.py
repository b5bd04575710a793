"""The ResourceClaim of each incarnation."""

from typing import Any

from reconciler.actions import CreateGroup
from reconciler.decisions import decide
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.sights import LEADER, Plan, World, replica, said, serve_nothing, writes_of

ASKS: JsonObject = {"annotations": {"lockstep.dev/resource-claim-template": "imex"}}
TEMPLATE: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "imex", "namespace": NAMESPACE},
    "spec": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": "imex"}}]}},
    },
}


def asking(**difference: Any) -> World:
    """A replica whose pods ask for a claim and name it, as the webhook makes them."""
    plan = Plan(**difference)
    claim = {"name": "lockstep", "resourceClaimName": plan.group}
    asks: JsonObject = {"metadata": ASKS, "spec": {"resourceClaims": [claim]}}
    return World(*replica(**vars(plan) | {"changes": {"vllm-0": asks, "vllm-0-1": asks}}))


def test_a_replica_gets_one_claim_of_the_template() -> None:
    """Named for its group, owned by its leader, with what the template says, labels and annotations included."""
    world = asking()
    world.put(TEMPLATE)
    world.settle()
    (claim,) = world.of_kind("ResourceClaim")
    leader = world.objects["Pod", *LEADER]
    assert claim["spec"] == TEMPLATE["spec"]["spec"]
    metadata = claim["metadata"]
    assert metadata["name"] == leader["spec"]["resourceClaims"][0]["resourceClaimName"]
    assert metadata["labels"] == {
        "team": "a",
        "lockstep.dev/group": metadata["name"],
        "leaderworkerset.sigs.k8s.io/name": "vllm",
    }
    assert metadata["annotations"] == {"note": "b"}
    assert metadata["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": leader["metadata"]["uid"], "controller": True}
    ]


def test_the_native_group_names_the_claim() -> None:
    """So that kube-scheduler reserves it for the group (gate DRAWorkloadResourceClaims)."""
    world = asking()
    world.put(TEMPLATE)
    world.settle()
    (group,) = world.of_kind("PodGroup")
    name = group["metadata"]["name"]
    assert group["spec"]["resourceClaims"] == [{"name": "lockstep", "resourceClaimName": name}]


def test_without_its_template_the_replica_waits_and_it_is_told() -> None:
    """The group is made meanwhile; the claim comes with the template."""
    world = asking()
    world.settle()
    assert world.of_kind("ResourceClaim") == []
    assert said(world.decide().actions) == [
        (
            "ClaimTemplateMissing",
            'resourceclaimtemplate "imex": must exist, got none: the replica waits for its ResourceClaim',
        )
    ]
    world.put(TEMPLATE)
    assert [action.kind.kind for action in world.settle() if isinstance(action, CreateGroup)] == ["ResourceClaim"]


def test_a_claim_of_someone_else_is_left_alone() -> None:
    """Its name is ours by accident, or by intent: it is told, and not written to."""
    world = asking()
    name = world.sight().member.group
    claim: JsonObject = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    world.put(TEMPLATE, claim | {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {}})
    world.settle()
    assert said(world.decide().actions) == [
        ("ClaimOwnedByOther", f'resourceclaim "{name}": is not ours, and is left as it is')
    ]


def test_pods_that_name_no_claim_of_ours_get_none() -> None:
    """They were admitted while the webhook was away, and what they name can't be changed."""
    world = World(*replica(changes={"vllm-0": {"metadata": ASKS}}))
    world.put(TEMPLATE)
    world.settle()
    assert world.of_kind("ResourceClaim") == []


def test_a_cluster_without_claims_is_told() -> None:
    """Dynamic resource allocation came with Kubernetes 1.34; the group does not depend on it."""
    world = asking()
    outcome = decide(world.sight(), world.configuration, serve_nothing)
    told = ("ClaimKindNotServed", "the cluster serves no resource.k8s.io: no ResourceClaim is made")
    assert told in said(outcome.actions)
    assert writes_of(outcome.actions) == []
