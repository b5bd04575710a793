"""The webhook is reached, and stamps an LWS pod."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.probing import Probe
from lockstep.doctoring.seeing import Seen

NAME: Final = "answering"
WHY_SILENT: Final = "LWS pods are admitted without a group and placed one by one"
WHY_REFUSED: Final = "no replica of this scheduler can start"
WHY_UNREACHED: Final = "the API server can't reach it either, or not this replica of it"


def find(seen: Seen) -> Iterator[Finding]:
    """Judge dry runs and handshakes."""
    for probe in seen.probes:
        yield from _of_probe(probe, seen)
    for hand in seen.handshakes:
        if hand.silence:
            what = f'{hand.place} entry "{hand.entry}": must be reachable as "{hand.name}", got "{hand.silence}"'
            yield Finding(NAME, ERROR, what, WHY_UNREACHED, _look(seen))
    if not seen.endpoints:
        what = f'Service "{seen.namespace}/lockstep-webhook": must have a ready address, got none'
        yield Finding(NAME, ERROR, what, WHY_SILENT, _look(seen))


def _of_probe(probe: Probe, seen: Seen) -> Iterator[Finding]:
    title = f'an LWS pod of scheduler "{probe.scheduler}" (dry run)'
    if probe.pod is None:
        yield Finding(
            NAME,
            ERROR,
            f'{title}: must be admitted, got "{probe.refused}"',
            WHY_REFUSED,
            "lockstep breakglass on --reason TEXT",
        )
    elif not probe.group:
        what = f"{title}: must get label lockstep.dev/group, got none"
        yield Finding(NAME, ERROR, what, WHY_SILENT, _look(seen))


def _look(seen: Seen) -> str:
    return f"kubectl -n {seen.namespace} logs deployment/lockstep-webhook -c webhook --tail=20"
