"""What a scheduler has of its own: settings that are read, annotations of its group objects that are kept."""

from typing import Any, Final

import pytest

from schedulers.kai import PREEMPTIBILITY, TOPOLOGY
from schedulers.koordinator import ALONE, MATCH_POLICY, WHOLE
from schedulers.registry import all_providers
from tests.builders import JsonObject
from tests.reconciler.sights import Plan, World, group, merged, replica

KAI: Final = all_providers()["kai"]
KOORDINATOR: Final = all_providers()["koordinator"]


def spec_of_kai(**difference: Any) -> JsonObject:
    """Give the spec of the group that is made for a replica of KAI's."""
    world = World(*replica(provider=KAI, **difference))
    world.settle()
    spec: JsonObject = world.of_kind("PodGroup")[0]["spec"]
    return spec


def test_settings_are_read_from_pod_and_set_the_pods_first() -> None:
    """As annotations or labels, whichever the scheduler's users write."""
    within: dict[str, str] = {TOPOLOGY: "gpu-hall", "lockstep.dev/topology": "rack", PREEMPTIBILITY: "preemptible"}
    assert spec_of_kai(lws_annotations=within) == {
        "minMember": 2,
        "queue": "default-queue",
        "preemptibility": "preemptible",
        "topologyConstraint": {"topology": "gpu-hall", "requiredTopologyLevel": "rack"},
    }
    labelled: JsonObject = {"metadata": {"labels": {PREEMPTIBILITY: "non-preemptible"}}}
    found = spec_of_kai(lws_annotations=within, changes={"vllm-0": labelled})
    assert found["preemptibility"] == "non-preemptible"


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        pytest.param({}, WHOLE, id="no pod has a node"),
        pytest.param({"vllm-0": {"spec": {"nodeName": "n1"}}}, ALONE, id="a pod has a node"),
    ],
)
@pytest.mark.parametrize("edit", [None, "only-waiting"], ids=["taken off", "changed by hand"])
def test_an_annotation_of_the_group_is_kept_as_it_should_be(
    changes: dict[str, JsonObject], policy: str, edit: str | None
) -> None:
    """It is repaired like a field, and follows the replica; annotations of others stay."""
    made = group(Plan(provider=KOORDINATOR))
    assert made["metadata"]["annotations"] == {MATCH_POLICY: WHOLE}
    live = merged(made, {"metadata": {"annotations": {MATCH_POLICY: edit, "example.com/note": "b"}}})
    world = World(*replica(provider=KOORDINATOR, changes=changes), live)
    world.settle()
    found = world.of_kind("PodGroup")[0]["metadata"]["annotations"]
    assert found[MATCH_POLICY] == policy
    assert found["example.com/note"] == "b"
