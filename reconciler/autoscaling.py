"""What Cluster Autoscaler and Karpenter make of a replica that waits: they make nodes for pods that are Unschedulable.

A replica that waits for room should carry that reason, and one that waits for members or for us should not. Some
schedulers don't do so (`schedulers.contract.Waiting`), and conditions go stale; so the pods are looked at.
"""

from collections.abc import Sequence
from typing import Final

from reconciler.objects import Pod
from reconciler.states import GATED, NO_GROUP, WAITS_FOR_CAPACITY, WAITS_FOR_MEMBERS
from schedulers.contract import UNSCHEDULABLE, Provider

NOT_YET: Final = "none of its pods is shown as Unschedulable"
STALE: Final = "a pod of it is shown as Unschedulable"


def misread(state: str, pods: Sequence[Pod], provider: Provider) -> str:
    """Say what an autoscaler gets wrong about a replica; empty where it sees what is so.

    Args:
        state: the replica's, one of `reconciler.states`.
        pods: its pods.
        provider: its scheduler.
    """
    asks = any(is_unschedulable(pod) for pod in pods)
    remark = provider.waiting.remark
    if state == WAITS_FOR_CAPACITY and not asks and provider.waiting.stand_ins != UNSCHEDULABLE:
        return f"no autoscaler is asked for room: {remark or NOT_YET}"
    if state in (WAITS_FOR_MEMBERS, NO_GROUP, GATED) and asks:
        return f"an autoscaler may make nodes for nothing: {remark or STALE}"
    return ""


def is_unschedulable(pod: Pod) -> bool:
    """Tell whether an autoscaler takes a pod for one that lacks room."""
    return not pod.bound and any(
        (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", UNSCHEDULABLE)
        for condition in pod.status.conditions or ()
    )
