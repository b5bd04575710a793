"""Both Deployments run whole, and one failed node does not end them."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.places import DEPLOYMENT, Json, Place
from lockstep.doctoring.seeing import Seen

NAME: Final = "replicas"
LEAST: Final = 2
WHY_NONE: Final = "this process is away"
WHY_FEWER: Final = "one more failure and this process is away"


def find(seen: Seen) -> Iterator[Finding]:
    """Compare what is ready with what is asked for."""
    for place, content in seen.live.items():
        if place.kind == DEPLOYMENT and content is not None:
            yield from _of_deployment(place, content)


def _of_deployment(place: Place, content: Json) -> Iterator[Finding]:
    wanted, status = content["spec"].get("replicas", 1), content.get("status") or {}
    ready, updated = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    look = f"kubectl describe {place.for_kubectl}"
    if not ready:
        yield Finding(NAME, ERROR, f"{place}: must have ready replicas, got none of {wanted}", WHY_NONE, look)
    elif min(ready, updated) < wanted:
        what = f"{place}: must have {wanted} ready replicas of its latest template, got {min(ready, updated)}"
        yield Finding(NAME, WARNING, what, WHY_FEWER, look)
    if wanted < LEAST:
        mend = f"kubectl scale {place.for_kubectl} --replicas={LEAST}"
        yield Finding(NAME, WARNING, f"{place} spec.replicas: must be at least {LEAST}, got {wanted}", WHY_FEWER, mend)
