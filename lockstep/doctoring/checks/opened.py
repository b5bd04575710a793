"""Admission has not been left open."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import WARNING, Finding
from lockstep.doctoring.opening import read_opening
from lockstep.doctoring.seeing import Seen

NAME: Final = "breakglass"
WHY: Final = "LWS pods are admitted without a group while the webhook is away, and nobody is told"
MEND: Final = "lockstep breakglass off"


def find(seen: Seen) -> Iterator[Finding]:
    """Find marks of an opening."""
    for place, content in seen.live.items():
        try:
            opening = read_opening((content or {}).get("metadata", {}).get("annotations"))
        except ValueError as error:
            yield Finding(NAME, WARNING, f"{place} {error}", WHY, MEND)
            continue
        if opening is not None:
            what = f'{place}: must not be open, got open since {opening.since} by "{opening.who}": "{opening.reason}"'
            yield Finding(NAME, WARNING, what, WHY, MEND)
