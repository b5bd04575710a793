"""The queue of a group, or that an LWS asks for, exists."""

from collections.abc import Iterator

from gangs import intents
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, Group, LeaderWorkerSet, Thing
from policies.snapshot import Snapshot, group_kind, provider_of_kind, queue_kinds
from schedulers.contract import Provider
from schedulers.registry import all_providers, usual_schedulers

WITH_QUEUES = [provider for provider in all_providers().values() if queue_kinds([provider])]


def check(case: Case) -> Iterator[Breach]:
    """Look up what the object names; a file set without any queue says nothing about them."""
    thing = case.thing
    if isinstance(thing, Group):
        provider, queue = provider_of_kind(case.subject.kind), thing.spec.get("queue")
        named = [("spec.queue", queue)] if isinstance(queue, str) and queue else []
    else:
        assert isinstance(thing, LeaderWorkerSet)  # noqa: S101 - the rule's kinds
        name = usual_schedulers(all_providers()).get(thing.leader_template.scheduler)
        provider = None if name is None else all_providers()[name]
        named = [] if provider is None else list(_asked(thing, provider))
    for kind in queue_kinds([] if provider is None else [provider]):
        yield from _missing(case.snapshot, kind, named)


def _asked(lws: LeaderWorkerSet, provider: Provider) -> Iterator[tuple[str, str]]:
    for where, one in {"": lws, **lws.templates}.items():
        level = intents.Level(where, one.annotations, one.labels)
        for path, queue in intents.said(level, intents.QUEUE, provider.own_keys):
            yield path.removeprefix("."), queue


def _missing(snapshot: Snapshot, kind: str, named: list[tuple[str, str]]) -> Iterator[Breach]:
    known = snapshot.knows(kind)
    if not known and not snapshot.has_any(kind):
        return
    for path, queue in named:
        if snapshot.get(kind, Thing, "", queue) is None:
            yield breach(path, f"name a {kind} that exists", f'"{queue}"', certain=known)


RULE = relation(
    __name__,
    title="The queue of a group exists",
    why="Volcano and KAI leave a group whose queue is missing out of their work, without an event",
    severity=ERROR,
    blind="Whether the queue is open; in files, queues that only the cluster has",
    kinds=[*(group_kind(provider) for provider in WITH_QUEUES), LEADER_WORKER_SET],
    check=check,
)
