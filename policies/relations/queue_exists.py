"""The queue of a group, or that an LWS asks for, exists."""

from collections.abc import Iterator

from gangs import intents
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, VOLCANO_QUEUE, Group, LeaderWorkerSet, Thing
from policies.snapshot import group_kind
from schedulers.registry import all_providers, usual_schedulers
from schedulers.volcano import PROVIDER


def check(case: Case) -> Iterator[Breach]:
    """Look up what the object names; a file set without any queue says nothing about them."""
    known = case.snapshot.knows(VOLCANO_QUEUE)
    if not known and not case.snapshot.has_any(VOLCANO_QUEUE):
        return
    for path, queue in _named(case.thing):
        if case.snapshot.get(VOLCANO_QUEUE, Thing, "", queue) is None:
            yield breach(path, f"name a {VOLCANO_QUEUE} that exists", f'"{queue}"', certain=known)


def _named(thing: Thing) -> Iterator[tuple[str, str]]:
    if isinstance(thing, Group):
        queue = thing.spec.get("queue")
        if isinstance(queue, str) and queue:
            yield "spec.queue", queue
    elif isinstance(thing, LeaderWorkerSet):
        scheduler = thing.leader_template.scheduler
        if usual_schedulers(all_providers()).get(scheduler) == PROVIDER.name:
            for where, one in {"": thing, **thing.templates}.items():
                level = intents.Level(where, one.annotations, one.labels)
                told = intents.said(level, intents.QUEUE, PROVIDER.own_keys)
                yield from ((path.removeprefix("."), queue) for path, queue in told)


RULE = relation(
    __name__,
    title="The queue of a group exists",
    why="Volcano leaves a group whose queue is missing out of its work, without an event",
    severity=ERROR,
    blind="Whether the queue is open; in files, queues that only the cluster has",
    kinds=[group_kind(PROVIDER), LEADER_WORKER_SET],
    check=check,
)
