"""What Cluster Autoscaler and Karpenter make of a replica that waits."""

from typing import Final

import pytest

from reconciler.autoscaling import misread
from reconciler.objects import Pod
from reconciler.states import (
    GATED,
    IN_PART,
    NO_GROUP,
    PLACED,
    RUNNING,
    WAITS_FOR_CAPACITY,
    WAITS_FOR_MEMBERS,
)
from schedulers.contract import UNSCHEDULABLE, Provider
from schedulers.registry import all_providers
from tests.reconciler.sights import COSCHEDULING, NATIVE, Plan, decoded, merged, pods_of

PROVIDERS: Final = list(all_providers().values())
FOR_NOTHING: Final = "an autoscaler may make nodes for nothing"
UNASKED: Final = "no autoscaler is asked for room"


def pods(reason: str, node: str = "") -> list[Pod]:
    """Build the two pods of a replica that show a reason; none where it is empty."""
    conditions = [{"type": "PodScheduled", "status": "False", "reason": reason}] if reason else []
    shown = {"status": {"conditions": conditions}, "spec": {"nodeName": node}}
    return [decoded(merged(pod, shown)) for pod in pods_of(Plan())]


@pytest.mark.parametrize(
    ("state", "reason", "provider", "said"),
    [
        pytest.param(WAITS_FOR_CAPACITY, UNSCHEDULABLE, NATIVE, "", id="room is asked for where it is missing"),
        pytest.param(
            WAITS_FOR_CAPACITY,
            "",
            NATIVE,
            f"{UNASKED}: none of its pods is shown as Unschedulable",
            id="nobody knows that room is missing",
        ),
        pytest.param(
            WAITS_FOR_CAPACITY,
            "SchedulingGated",
            NATIVE,
            f"{UNASKED}: none of its pods is shown as Unschedulable",
            id="a stale gate hides that room is missing",
        ),
        pytest.param(WAITS_FOR_MEMBERS, "", NATIVE, "", id="pods that wait for others say nothing"),
        pytest.param(
            WAITS_FOR_MEMBERS,
            UNSCHEDULABLE,
            COSCHEDULING,
            f"{FOR_NOTHING}: {COSCHEDULING.waiting.remark}",
            id="pods that wait for others ask for room",
        ),
        pytest.param(
            NO_GROUP,
            UNSCHEDULABLE,
            NATIVE,
            f"{FOR_NOTHING}: a pod of it is shown as Unschedulable",
            id="an old condition outlives its group",
        ),
        pytest.param(GATED, "SchedulingGated", NATIVE, "", id="pods that wait for us say so"),
        pytest.param(PLACED, "", NATIVE, "", id="pods with nodes need no room"),
    ],
)
def test_what_is_misread_is_said(state: str, reason: str, provider: Provider, said: str) -> None:
    """In words that name what the scheduler does, where that is the cause."""
    assert misread(state, pods(reason), provider) == said


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_what_each_scheduler_shows_is_misread_exactly_where_its_table_says_so(provider: Provider) -> None:
    """The table of autoscalers and the command agree."""
    waiting = provider.waiting
    states = ((WAITS_FOR_CAPACITY, waiting.capacity), (WAITS_FOR_MEMBERS, waiting.members), (NO_GROUP, waiting.group))
    said = [misread(state, pods(reason), provider) for state, reason in states]
    assert any(said) != waiting.looks_right
    assert all(waiting.remark in one for one in said if one)


@pytest.mark.parametrize("state", [RUNNING, PLACED, IN_PART, WAITS_FOR_MEMBERS])
def test_what_a_placed_pod_once_showed_counts_for_nothing(state: str) -> None:
    """Conditions go stale; a pod with a node lacks no room."""
    assert misread(state, pods(UNSCHEDULABLE, node="n1"), NATIVE) == ""
