"""Every object that was shipped is there."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import Place, place_of
from lockstep.doctoring.seeing import Seen

NAME: Final = "installed"
WHY: Final = "a part of Lockstep is missing, and with it what it does: stamping, rights, or a guard"


def find(seen: Seen) -> Iterator[Finding]:
    """Find objects that are missing, but for those of schedulers that the cluster does not have."""
    namespace = Place("Namespace", "", seen.namespace)
    if seen.live.get(namespace) is None:
        yield _finding(namespace)
        return
    unseen = set(seen.unseen)
    for content in seen.shipped:
        place = place_of(content)
        if seen.live[place] is None and str(place) not in unseen and not _of_absent_scheduler(place, seen):
            yield _finding(place)


def _of_absent_scheduler(place: Place, seen: Seen) -> bool:
    _, _, last = place.name.rpartition("-")
    return last in set(seen.configuration.schedulers.values()) and last not in seen.served


def _finding(place: Place) -> Finding:
    return Finding(NAME, ERROR, f"{place}: must be there, got nothing", WHY, "kubectl apply -f install.yaml")
