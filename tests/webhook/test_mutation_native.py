"""Pods of kube-scheduler, stamped in the words of the Kubernetes version that the configuration names."""

from __future__ import annotations

import pytest

from schedulers.configuration import Configuration
from tests.builders import JsonObject, leader_pod, worker_pod
from tests.webhook.fakes import DRAWN, SCHEDULERS, admit
from webhook.mutation import Decider

GROUP = "vllm-0-b2efc632cb"
NEW = {"schedulingGroup": {"podGroupName": GROUP}}
OLD = {"workloadRef": {"name": GROUP, "podGroup": "replica", "podGroupReplicaKey": "0"}}
REFERENCES: dict[str, JsonObject] = {"schedulingGroup": NEW, "workloadRef": OLD, "both": NEW | OLD}


def configured(reference: str) -> Decider:
    """Build a decider whose configuration says how pods name their group."""
    options = {"native": frozenset({("podReference", reference)})}
    return Decider(Configuration(dict(SCHEDULERS), options=options), lambda: DRAWN)


def spelt(pod: JsonObject) -> JsonObject:
    """Give how a pod names its group."""
    return {key: value for key, value in pod["spec"].items() if key in ("schedulingGroup", "workloadRef")}


@pytest.mark.parametrize("build", [leader_pod, worker_pod], ids=["leader", "worker"])
@pytest.mark.parametrize(("reference", "expected"), REFERENCES.items(), ids=REFERENCES.keys())
def test_pods_name_their_group_as_configured(reference: str, expected: JsonObject, build: object) -> None:
    """In the words of 1.36 and later, of 1.35, or in both; leader and worker alike."""
    assert callable(build)
    decision, after = admit(build(), configured(reference))
    assert decision.outcome == "stamped"
    assert spelt(after) == expected


@pytest.mark.parametrize("kept", [NEW, OLD], ids=["1.36 drops the old words", "1.35 drops the new words"])
def test_what_the_api_server_dropped_is_not_written_again(kept: JsonObject) -> None:
    """The second pass finds one of the two references and has nothing to add."""
    decide = configured("both")
    _, after = admit(leader_pod(), decide)
    after["spec"] = {key: value for key, value in after["spec"].items() if key not in NEW | OLD} | kept
    assert admit(after, decide)[0].outcome == "unchanged"


@pytest.mark.parametrize("reference", REFERENCES)
def test_c18_a_workload_of_someone_else_is_kept(reference: str) -> None:
    """A pod of 1.35 that its user has put into a Workload, named or not, is left alone."""
    for theirs in ({"name": "mine", "podGroup": "workers"}, {"podGroup": "workers"}):
        pod = leader_pod(spec={"workloadRef": theirs})
        decision, after = admit(pod, configured(reference))
        assert (decision.outcome, after) == ("unchanged", pod)
