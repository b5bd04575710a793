"""Wakes gangs that their scheduler has miscounted: seen on Koordinator 1.6, in two starts of thirty.

It counts a gang's pods in one place and looks at them in another. When the last pod is looked at before it is
counted, all pods of the gang are left out until the group object is written; and the members of a group object that
was deleted are forgotten until they are written themselves. Nothing shows either. So a replica that is complete and
waits is written about: its group at once and then ever more rarely, its pods once for each group object.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.actions import Action, LookAgain, PatchGroup, PatchPod
from reconciler.objects import GroupObject, Pod
from reconciler.replicas import Sight, real_size
from reconciler.rolls import Roll, waits
from schedulers.abilities import LosesMembers, MissesMembers
from schedulers.contract import GroupKind, Provider

FIRST: Final = 1.0
LONGEST_APART: Final = 32.0
"""Seconds of a leader's age at which the first write is repeated, doubled each time, and the most between two."""

SOON: Final = 4.0
"""Seconds of a leader's age before which pods are left alone: most replicas are placed by then."""


def call_out(sight: Sight, provider: Provider, roll: Roll, kind: GroupKind) -> Iterator[Action]:
    """Write about a replica that is complete and waits, for a scheduler that needs it."""
    live = sight.group
    if live is None or len(roll.members) < real_size(sight) or not any(waits(pod) for pod in roll.members):
        return
    if isinstance(provider, MissesMembers):
        turn, next_turn = turn_at(sight.age)
        yield from _write_group(live, kind, provider.roll_call, f"{_fingerprint(roll.members)}-{turn}")
        yield LookAgain(next_turn - sight.age, "writes about a complete replica again while it waits")
    if isinstance(provider, LosesMembers) and sight.age >= SOON:
        for pod in roll.members:
            yield from _write_pod(pod, provider.regrouped, live.metadata.uid)


def turn_at(age: float) -> tuple[int, float]:
    """Give the number of the turn at an age, and the age at which the next begins."""
    turn, begins = 0, FIRST
    while begins <= age and begins < LONGEST_APART:
        turn, begins = turn + 1, begins * 2
    if begins <= age:
        more = int((age - begins) // LONGEST_APART) + 1
        turn, begins = turn + more, begins + more * LONGEST_APART
    return turn, begins


def _write_group(live: GroupObject, kind: GroupKind, annotation: str, value: str) -> Iterator[Action]:
    meta = live.metadata
    if (meta.annotations or {}).get(annotation) != value:
        body = {"metadata": {"uid": meta.uid, "annotations": {annotation: value}}}
        yield PatchGroup(kind, meta.namespace, meta.name, body)


def _write_pod(pod: Pod, annotation: str, value: str) -> Iterator[Action]:
    if pod.annotations.get(annotation) != value and not pod.leaving:
        body = {"metadata": {"uid": pod.metadata.uid, "annotations": {annotation: value}}}
        yield PatchPod(pod.metadata.namespace, pod.metadata.name, body)


def _fingerprint(members: Sequence[Pod]) -> str:
    """Name a set of pods; another pod under an old name makes another set."""
    uids = " ".join(sorted(pod.metadata.uid for pod in members))
    return hashlib.sha256(uids.encode()).hexdigest()[:10]
