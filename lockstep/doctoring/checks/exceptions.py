"""No exception is about to end unnoticed."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.seeing import Seen

NAME: Final = "exceptions"
NOTICE: Final = dt.timedelta(days=14)
WHY_ENDED: Final = "what it let pass is refused, or reported, from now on"
WHY_SOON: Final = "what it lets pass is refused, or reported, from that day on"
MEND: Final = "mend what it is for, or have its owner extend it in the reviewed file"


def find(seen: Seen) -> Iterator[Finding]:
    """Compare last days with today."""
    today = seen.now.date()
    for entry in seen.exceptions.entries:
        exemption = entry.exemption
        last = dt.date.fromisoformat(exemption.expiry)
        title = f'{entry.path} ("{entry.id}" on {entry.object}, owner "{exemption.owner}")'
        if last < today:
            yield Finding(NAME, ERROR, f"{title}: must not be past, got {last}", WHY_ENDED, MEND)
        elif last - today <= NOTICE:
            yield Finding(NAME, WARNING, f"{title}: must last for {NOTICE.days} days, got {last}", WHY_SOON, MEND)
