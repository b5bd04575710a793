"""Every LWS pod of a configured scheduler carries its group."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import WARNING, Finding
from lockstep.doctoring.seeing import Seen
from reconciler.states import STAMP_DROPPED, UNSTAMPED

NAME: Final = "pods"
WHY: Final = "this replica is placed pod by pod; it was made while the webhook was away"


def find(seen: Seen) -> Iterator[Finding]:
    """Find replicas without a stamp."""
    for entry in seen.entries:
        if entry.state in (UNSTAMPED, STAMP_DROPPED):
            title = f'replica "{entry.namespace}/{entry.lws}-{entry.index}"'
            what = f"{title}: must be in a group, got {entry.state}: {entry.reason}"
            mend = f"kubectl -n {entry.namespace} delete pod {entry.lws}-{entry.index}"
            yield Finding(NAME, WARNING, what, WHY, mend)
