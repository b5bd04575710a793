"""Changes to the templates of an LWS, without a cluster."""

from typing import Any

import pytest

from lockstep.templates import claims_by_hand, move_patch, partition_of, release_patch, scheduler_names
from schedulers.registry import all_providers
from tests.reconciler.sights import merged

Json = dict[str, Any]

PROVIDERS = all_providers()
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"


def lws(worker: Json, leader: Json | None = None) -> Json:
    """An LWS with these templates."""
    templates: Json = {"workerTemplate": worker, "size": 2, **({} if leader is None else {"leaderTemplate": leader})}
    metadata = {"name": "vllm", "namespace": "team-a", "resourceVersion": "7"}
    return {"metadata": metadata, "spec": {"leaderWorkerTemplate": templates}}


def template(scheduler: str | None = None, **metadata: Json) -> Json:
    """A pod template."""
    spec: Json = {"containers": []} | ({} if scheduler is None else {"schedulerName": scheduler})
    return {"metadata": metadata, "spec": spec}


def test_both_templates_are_moved_in_one_patch() -> None:
    """A leader and workers of two schedulers would never start; the patch holds for the version that was read."""
    assert move_patch(lws(template(), template("volcano")), "koord-scheduler") == {
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "leaderWorkerTemplate": {
                "leaderTemplate": {"spec": {"schedulerName": "koord-scheduler"}},
                "workerTemplate": {"spec": {"schedulerName": "koord-scheduler"}},
            }
        },
    }


def test_a_template_that_is_there_already_is_left_alone() -> None:
    """So an interrupted move can be called again."""
    patch = move_patch(lws(template("volcano"), template()), "volcano")
    assert patch is not None
    assert list(patch["spec"]["leaderWorkerTemplate"]) == ["leaderTemplate"]
    assert move_patch(lws(template("volcano")), "volcano") is None


def test_no_name_means_the_default_scheduler() -> None:
    """As the API server fills it in."""
    assert scheduler_names(lws(template(), template("volcano"))) == {
        "leaderTemplate": "volcano",
        "workerTemplate": "default-scheduler",
    }
    assert move_patch(lws(template()), "default-scheduler") is None


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_every_schedulers_keys_come_off(name: str) -> None:
    """Whatever a provider stamps on a pod, it finds and takes off a template; keys of others stay."""
    provider = PROVIDERS[name]
    stamp = provider.stamp("mine", leader=True)
    by_hand = template(labels={"app": "x", **stamp.labels}, annotations={"note": "y", **stamp.annotations})
    if stamp.scheduling_group is not None:
        by_hand["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    found = lws(by_hand)
    assert claims_by_hand(found, provider)["workerTemplate"].group == "mine"
    patch = release_patch(found, provider)
    assert patch is not None
    after = merged(found, patch)
    assert claims_by_hand(after, provider) == {}
    assert after["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["labels"]["app"] == "x"
    assert after["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"]["note"] == "y"
    assert release_patch(after, provider) is None


@pytest.mark.parametrize(
    ("strategy", "partition"),
    [
        pytest.param({}, 0, id="no strategy"),
        pytest.param({"rolloutStrategy": {"type": "RollingUpdate"}}, 0, id="no configuration"),
        pytest.param({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 3}}}, 3, id="three are left out"),
    ],
)
def test_the_partition_is_read(strategy: Json, partition: int) -> None:
    """LWS leaves the replicas below it as they are."""
    found = lws(template())
    found["spec"] |= strategy
    assert partition_of(found) == partition
