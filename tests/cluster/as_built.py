"""Compares every version of every group object with the replica as it was really built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.recording import DELETED, Recording, Version
from tests.cluster.resources import PODS, STATEFUL_SETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cluster.resources import Json
    from tests.cluster.scenarios import Scheduler

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Numbers:
    """What a group object says: the minimum, and the GPUs of its floor, `None` where the kind has no floor."""

    minimum: int
    gpus: int | None


def numbers_of(scheduler: Scheduler, group: Json) -> Numbers:
    """Read a group object."""
    floor = group["spec"].get("minResources")
    return Numbers(scheduler.minimum_of(group), None if floor is None else int(floor[GPU]))


def minima(recording: Recording, scheduler: Scheduler) -> dict[str, list[int]]:
    """Each group's minima in turn, by name, changes only."""
    found: dict[str, list[int]] = {}
    for version in recording.of(scheduler.groups):
        turns = found.setdefault(version.name, [])
        minimum = scheduler.minimum_of(version.body)
        if turns[-1:] != [minimum]:
            turns.append(minimum)
    return found


def astray(recording: Recording, scheduler: Scheduler) -> list[str]:
    """Say which versions of group objects had other numbers than their replica as it was built then.

    A replica is its leader pod and the StatefulSet that this pod controls; without one, the leader alone. What was
    still written after the leader's end is about no replica: garbage collection takes it, and LWS 0.8.0, which hears as
    late as anybody, may make a StatefulSet for the dead leader meanwhile.
    """
    leaders = recording.by_object(PODS)
    sets = [version for version in recording.of(STATEFUL_SETS) if version.change != DELETED]
    wrong = []
    for version in recording.of(scheduler.groups):
        leader = leaders[version.owner]
        if leader[-1].change == DELETED and leader[-1].number < version.number:
            continue
        of_leader = [of for of in sets if of.owner == version.owner]
        built = _numbers_as_built(leader[0].body, _at(version, of_leader))
        said = numbers_of(scheduler, version.body)
        if said.minimum != built.minimum or said.gpus not in (None, built.gpus):
            wrong.append(f"{version.name} at {version.number}: {said}, built as {built}")
    return wrong


def _at(moment: Version, versions: list[Version]) -> Version | None:
    """Give the last of some versions up to a moment; the first where all are later."""
    until = [version for version in versions if version.number <= moment.number]
    return next(iter(until[-1:] or versions[:1]), None)


def _numbers_as_built(leader: Json, workers: Version | None) -> Numbers:
    if workers is None:
        return Numbers(1, gpus_of(leader["spec"]))
    spec = workers.body["spec"]
    return Numbers(spec["replicas"] + 1, gpus_of(leader["spec"]) + spec["replicas"] * gpus_of(spec["template"]["spec"]))


def gpus_of(spec: Json) -> int:
    """Sum up a pod's GPUs."""
    containers: Iterable[Json] = spec["containers"]
    return sum(int(container["resources"]["requests"][GPU]) for container in containers)
