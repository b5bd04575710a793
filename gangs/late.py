"""Late workers: replicas whose workers appear only after the leader is scheduled or ready."""

from collections.abc import Mapping
from typing import Final

from gangs import keys

LEADER_READY: Final = "LeaderReady"


def why_late(startup_policy: str, annotations: Mapping[str, str], size: int) -> str | None:
    """Say why a replica's workers come late.

    LWS makes the worker StatefulSet only once the leader is Ready (`startupPolicy: LeaderReady`) or has a node
    (annotation `exclusive-topology`, whatever the policy); a gang of the whole size could then never start.
    `subgroup-exclusive-topology` alone defers nobody. Source: kubernetes-sigs/lws `pkg/controllers/pod_controller.go`.

    Args:
        startup_policy: `spec.startupPolicy` of the LWS, empty for the default.
        annotations: annotations of the LWS.
        size: pods of the replica.

    Returns:
        The field that is the reason, or `None` when workers come with the leader.
    """
    if size == 1:
        return None
    if startup_policy == LEADER_READY:
        return "spec.startupPolicy"
    if keys.EXCLUSIVE_TOPOLOGY in annotations:
        return f"metadata.annotations[{keys.EXCLUSIVE_TOPOLOGY}]"
    return None


def minimum(size: int, *, late: bool, workers: int, arrived: bool, live: int | None) -> int:
    """Compute how many pods the group must place together.

    Args:
        size: pods of the replica.
        late: whether its workers come late.
        workers: workers of this incarnation that exist.
        arrived: whether all workers have arrived, in the sense of the scheduler (exist, or are bound).
        live: the minimum the group object has now, `None` when there is no object.

    Returns:
        The size; 1 while workers are late. Once raised it stays so while any worker is there, so that a worker
        replaced in place does not lower and raise it again.
    """
    if not late or arrived or (live == size and workers > 0):
        return size
    return 1
