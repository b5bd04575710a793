"""Waits until all replicas of an LWS are what they should be, and says meanwhile what they are."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from gangs import keys
from reconciler.contract import Api, CallFailed, Forbidden, Unauthorized
from reconciler.overview import Entry, replica_entries
from reconciler.snapshot import Snapshot, take_snapshot
from schedulers.configuration import Configuration
from schedulers.contract import Provider
from schedulers.registry import all_providers

EVERY: Final = 2.0
LONGEST_SILENCE: Final = 60.0
"""Seconds for which a server that does not answer is asked again."""

Judge = Callable[[Snapshot, Sequence[Entry]], str]
"""Says what is still missing, empty when nothing is."""


def look(api: Api, configuration: Configuration, namespace: str, name: str) -> tuple[Snapshot, list[Entry]]:
    """List an LWS's namespace once.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused.
    """
    snapshot = take_snapshot(api, all_providers().values(), [namespace], room=False)
    return snapshot, [entry for entry in replica_entries(snapshot, configuration) if entry.lws == name]


def wait(  # noqa: PLR0913 - what waiting needs
    api: Api,
    configuration: Configuration,
    lws: tuple[str, str],
    missing: Judge,
    *,
    seconds: float,
    tell: Callable[[str], None],
) -> str:
    """Wait until nothing is missing; gives what was missing when the time was over, empty for nothing.

    Args:
        api: whom to ask.
        configuration: which schedulers are ours.
        lws: namespace and name.
        missing: the judge.
        seconds: how long at most.
        tell: called with a line whenever there is something new to say.

    Raises:
        reconciler.contract.CallFailed: the server refused, or has not answered for a minute.
    """
    begun = heard = time.monotonic()
    told = ""
    while True:
        try:
            said = missing(*look(api, configuration, *lws))
            heard = time.monotonic()
        except (Forbidden, Unauthorized):
            raise
        except CallFailed as error:
            if time.monotonic() - heard > LONGEST_SILENCE:
                raise
            said = f"the API server does not answer: {error}"
        if not said or time.monotonic() - begun > seconds:
            return said
        if said != told:
            tell(said)
            told = said
        time.sleep(EVERY)


def missing_of(provider: Provider, lws: tuple[str, str], scheduler_name: str, whole: int) -> Judge:
    """Make the judge of a rollout after which all replicas are in groups of ours under one scheduler.

    Args:
        provider: the scheduler's provider.
        lws: namespace and name.
        scheduler_name: the scheduler's name.
        whole: how many replicas are to be whole at least; others may wait for capacity, as they did before.
    """

    def judge(snapshot: Snapshot, entries: Sequence[Entry]) -> str:
        names = scheduler_names(snapshot)
        there = [entry for entry in entries if names.get((entry.namespace, entry.group)) == scheduler_name]
        fine = [entry for entry in there if entry.fine]
        waiting = [entry for entry in entries if entry not in fine]
        if len(there) < len(entries) or len(fine) < whole:
            states = Counter(entry.state if entry in there else f"{entry.state} as before" for entry in waiting)
            others = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            return f"{len(fine)} of {len(entries)} replicas are whole under {provider.title}; the others: {others}"
        left = groups_left(snapshot, provider, lws)
        return f"groups of another scheduler are left: {', '.join(left)}" if left else ""

    return judge


def scheduler_names(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """Give the scheduler that each group's leader names, by namespace and group."""
    leaders = [pod for pod in snapshot.cache.leader_pods() if keys.LOCKSTEP_GROUP in pod.labels]
    return {(pod.metadata.namespace, pod.labels[keys.LOCKSTEP_GROUP]): pod.spec.scheduler_name for pod in leaders}


def groups_left(snapshot: Snapshot, provider: Provider, lws: tuple[str, str]) -> list[str]:
    """List our groups of an LWS of all kinds but a scheduler's."""
    return sorted(
        f"{kind.title} {group.metadata.name}"
        for kind, store in snapshot.cache.groups.items()
        if kind not in provider.kinds
        for group in store.objects()
        if (group.metadata.namespace, (group.metadata.labels or {}).get(keys.LWS_NAME)) == lws
        and keys.LOCKSTEP_GROUP in (group.metadata.labels or {})
    )
