"""One reconciler leads, and keeps saying so."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import LEASE
from lockstep.doctoring.seeing import Seen

NAME: Final = "lease"
PATIENCE: Final = 3
"""Leases missed: another reconciler would have taken it over by then."""

WHY: Final = "nobody keeps groups: new replicas wait for one, and certificates are not renewed"


def find(seen: Seen) -> Iterator[Finding]:
    """Look at holder and age."""
    title, mend = (
        f'Lease "{seen.namespace}/{LEASE}"',
        f"kubectl -n {seen.namespace} logs deployment/lockstep-webhook -c reconciler",
    )
    spec = (seen.lease or {}).get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        yield Finding(NAME, ERROR, f"{title}: must have a holder, got none", WHY, mend)
        return
    renewed = dt.datetime.fromisoformat(spec["renewTime"])
    age = (seen.now - renewed).total_seconds()
    if age > PATIENCE * spec.get("leaseDurationSeconds", 15):
        what = f'{title}: must be renewed, got none for {age:.0f} s from "{spec["holderIdentity"]}"'
        yield Finding(NAME, ERROR, what, WHY, mend)
