"""`lockstep uninstall`: what stays behind when Lockstep is taken away, and what would be stuck. Changes nothing."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from gangs import keys
from lockstep.exit_codes import FINDINGS, FINE
from lockstep.failures import FAILURES, end_by
from lockstep.move import add_cluster_arguments
from reconciler.api import load_api
from reconciler.overview import Entry, replica_entries
from reconciler.snapshot import Snapshot, take_snapshot
from reconciler.states import NO_GROUP
from schedulers.configuration import load_configuration
from schedulers.registry import all_providers

OURS_ALONE: Final = keys.LOCKSTEP_GROUP
"""The gate that nobody but the reconciler takes off."""

WAY_OUT: Final = "let it start before, or make it anew afterwards"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_cluster_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Look once and say what stays; 1 when something would be stuck without us."""
    try:
        configuration = load_configuration(args.config)
        snapshot = take_snapshot(load_api(args.kubeconfig), all_providers().values(), room=False)
    except FAILURES as error:
        return end_by(error)
    entries = [entry for entry in replica_entries(snapshot, configuration) if entry.group]
    stuck = list(what_is_stuck(entries))
    sys.stdout.write("".join(f"{line}\n" for line in (*what_stays(snapshot, entries), *stuck)))
    return FINDINGS if stuck else FINE


def what_stays(snapshot: Snapshot, entries: Sequence[Entry]) -> Iterator[str]:
    """Say what is left as it is."""
    running = sum(entry.fine for entry in entries)
    yield f"{running} of {len(entries)} replicas in groups of ours run, and go on running"
    for kind, store in snapshot.cache.groups.items():
        ours = [group for group in store.objects() if keys.LOCKSTEP_GROUP in (group.metadata.labels or {})]
        if ours:
            yield f"{kind.title}: {len(ours)} stay, each until its leader pod is gone; then garbage collection takes it"
    yield f"labels and annotations stay on the pods, such as {keys.LOCKSTEP_GROUP}; new pods have none"
    yield "replicas that are made anew, or added, are placed pod by pod from then on"


def what_is_stuck(entries: Sequence[Entry]) -> Iterator[str]:
    """Say which replicas would wait for us for ever."""
    for entry in entries:
        title = f"{entry.namespace}/{entry.lws}-{entry.index}"
        if OURS_ALONE in entry.gates:
            yield f'stuck: {title}: waits for gate "{OURS_ALONE}", which nobody takes off then: {WAY_OUT}'
        elif entry.state == NO_GROUP:
            yield f"stuck: {title}: {entry.reason}, and nobody makes it then: {WAY_OUT}"
