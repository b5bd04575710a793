"""Pods of others: a recorded review without what makes its pod an LWS pod, as plain pods, Jobs and JobSets send them.

Keys of JobSets: kubernetes-sigs/jobset `api/jobset/v1alpha2/jobset_types.go`, `pkg/constants`; of Jobs: kubernetes/api
`batch/v1/types.go`.
"""

import copy
import json
from pathlib import Path
from typing import Final

import pytest

from schedulers.contract import Provider
from schedulers.registry import all_providers, usual_schedulers
from tests.builders import JsonObject, response
from tests.webhook.fakes import decider

RECORDED: Final = Path(__file__).parents[1] / "data" / "reviews" / "mutate-create-vllm-worker.json"
PROVIDERS: Final = list(all_providers().values())
OURS: Final = usual_schedulers(all_providers())
JOB: Final = {
    "batch.kubernetes.io/job-name": "train-workers-0",
    "batch.kubernetes.io/controller-uid": "2f5b0a9c-65a4-4a8e-8b5a-3c1f0f6e2d11",
    "batch.kubernetes.io/job-completion-index": "0",
    "job-name": "train-workers-0",
}
JOBSET: Final = {
    f"jobset.sigs.k8s.io/{key}": value
    for key, value in {
        "jobset-name": "train",
        "jobset-uid": "6d1f6d0e-0a4b-4f2f-9d57-0b1b4e0c8f55",
        "replicatedjob-name": "workers",
        "replicatedjob-replicas": "4",
        "job-index": "0",
        "job-global-index": "0",
        "job-key": "3a7bd3e2360a3d29eea436fcfb7e44c735d117c4",
        "restart-attempt": "0",
        "group-name": "default",
    }.items()
}
EXCLUSIVE: Final = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "topology.kubernetes.io/zone"}
OTHERS: Final[dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    "a plain pod": ({}, {}),
    "a pod of a Deployment": ({"app": "web", "pod-template-hash": "69fbc5554"}, {}),
    "a pod of a Job": (JOB, {}),
    "a pod of a JobSet": ({**JOB, **JOBSET}, JOBSET),
    "a pod of a JobSet with a topology of its own": ({**JOB, **JOBSET}, {**JOBSET, **EXCLUSIVE}),
    "a pod of a StatefulSet": ({"apps.kubernetes.io/pod-index": "0", "statefulset.kubernetes.io/pod-name": "db-0"}, {}),
}


def recorded_of(labels: dict[str, str], annotations: dict[str, str], scheduler: str) -> JsonObject:
    """Take LWS's keys off a recorded review's pod and put others' on."""
    review: JsonObject = copy.deepcopy(json.loads(RECORDED.read_text()))
    pod = review["request"]["object"]
    metadata = pod["metadata"]
    for where, others in (("labels", labels), ("annotations", annotations)):
        kept = {key: value for key, value in metadata.get(where, {}).items() if "leaderworkerset" not in key}
        metadata[where] = {**kept, **others}
    pod["spec"]["schedulerName"] = scheduler
    return review


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
@pytest.mark.parametrize(("labels", "annotations"), OTHERS.values(), ids=OTHERS.keys())
def test_pods_of_others_are_left_as_they_are(
    labels: dict[str, str], annotations: dict[str, str], provider: Provider
) -> None:
    """Admitted without a patch and without a warning, whichever of our schedulers they name."""
    for scheduler in provider.scheduler_names:
        review = recorded_of(labels, annotations, scheduler)
        answer = response(decider(OURS)(json.dumps(review).encode()).body)
        assert answer == {"uid": review["request"]["uid"], "allowed": True}


def test_the_recorded_review_is_of_a_pod_that_would_be_stamped() -> None:
    """What the others are made of is a worker's creation: with LWS's keys it gets a patch."""
    answer = response(decider()(RECORDED.read_bytes()).body)
    assert "patch" in answer
