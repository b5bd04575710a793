"""What Lockstep wrote and said, as the cluster shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.lockstep import USER
from tests.cluster.resources import EVENTS

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.resources import Json


def writes(plane: ControlPlane, since: int, user: str = USER) -> list[Json]:
    """Everything a reconciler tried to write since an offset of the audit log, but for its Lease and dry runs."""
    events = plane.audit.events(user=user, since=since)
    return [event for event in events if target(event) != "leases"]


def target(event: Json) -> str:
    """Plural of what an audit event is about."""
    return str(event["objectRef"]["resource"])


def name_of(event: Json) -> str:
    """Name of what an audit event is about; that of a creation stands in its body alone, unless that was cut off."""
    return str(event["objectRef"].get("name") or event["requestObject"]["metadata"].get("name", ""))


def code(event: Json) -> int:
    """HTTP status that the API server answered with."""
    return int(event["responseStatus"]["code"])


def said(plane: ControlPlane, reason: str, lws: str = "vllm", namespace: str = "default") -> list[str]:
    """Messages of the events with one reason about an LWS, each as often as it was written."""
    return [
        event["message"]
        for event in plane.api.items(EVENTS, namespace)
        if event["reason"] == reason
        and event["involvedObject"]["kind"] == "LeaderWorkerSet"
        and event["involvedObject"]["name"] == lws
    ]
