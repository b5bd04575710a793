"""`lockstep adopt`: bring the replicas of an LWS into groups of ours that were there before, or are someone else's."""

import argparse
from collections.abc import Sequence
from typing import Final

from lockstep import sets
from lockstep.adopting import BY_HAND, Foundling, describe, foundlings
from lockstep.exit_codes import FINDINGS, FINE, WRONG_USAGE, fail
from lockstep.failures import FAILURES, end_by
from lockstep.move import add_cluster_arguments
from lockstep.templates import PARTITION, partition_of, release_patch, scheduler_names
from lockstep.watching_rollouts import Judge, look, missing_of, wait
from reconciler.api import load_api
from reconciler.contract import Api
from reconciler.overview import Entry
from reconciler.snapshot import Snapshot, take_snapshot
from schedulers.configuration import Configuration, load_configuration
from schedulers.registry import all_providers

TIMEOUT: Final = 1800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("lws", nargs="*", metavar="LWS", help="the sets to adopt, as NAME or NAMESPACE/NAME")
    parser.add_argument("--all", action="store_true", help="adopt every LWS that is listed")
    parser.add_argument("--dry-run", action="store_true", help="list what there is to adopt, change nothing")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help="for a replica (%(default)s)")
    add_cluster_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Adopt, or list; give the exit code. What was begun by an earlier call goes on."""
    if not (args.lws or args.all or args.dry_run):
        return fail("lws: must be named, or --all or --dry-run given, got none of them", WRONG_USAGE)
    try:
        configuration = load_configuration(args.config)
        return adopt(load_api(args.kubeconfig), configuration, args)
    except FAILURES as error:
        return end_by(error, "list, patch leaderworkersets and delete pods")


def adopt(api: Api, configuration: Configuration, args: argparse.Namespace) -> int:
    """List what there is, and adopt what was asked for, one LWS after the other."""
    asked = {sets.split(name) for name in args.lws}
    snapshot = take_snapshot(api, all_providers().values(), sorted({namespace for namespace, _ in asked}), room=False)
    found = {lws: of for lws, of in foundlings(snapshot, configuration).items() if not asked or lws in asked}
    for lws in sorted(asked - set(found)):
        print(f"{'/'.join(lws)}: has no replica to adopt")  # noqa: T201
    for lws, replicas in found.items():
        print("\n".join(describe(lws, replicas)), flush=True)  # noqa: T201
        if args.dry_run:
            continue
        problem = adopt_set(api, configuration, lws, replicas, args.timeout)
        if problem:
            return fail(f"{'/'.join(lws)}: {problem}", FINDINGS)
        print(f"{'/'.join(lws)}: all its replicas are in groups of ours", flush=True)  # noqa: T201
    return FINE


def adopt_set(
    api: Api, configuration: Configuration, lws: tuple[str, str], replicas: Sequence[Foundling], seconds: float
) -> str:
    """Adopt the replicas of one LWS; says what went wrong, empty when nothing did."""
    whole = sets.read(api, *lws)
    provider = all_providers()[replicas[0].provider]
    if any(one.why == BY_HAND for one in replicas) and release_patch(whole, provider) is not None:
        if partition := partition_of(whole):
            return f"{PARTITION}: must be 0, got {partition}: LWS leaves the replicas below it as they are"
        sets.change(api, whole, lambda now: release_patch(now, provider))
        name = scheduler_names(whole)["workerTemplate"]
        wanted = missing_of(provider, lws, name, sum(one.whole for one in replicas))
        return wait(api, configuration, lws, wanted, seconds=seconds, tell=_tell)
    for one in replicas:
        sets.delete_leader(api, lws[0], one.leader, one.uid)
        problem = wait(api, configuration, lws, _missing_of_one(one), seconds=seconds, tell=_tell)
        if not problem:
            problem = _still_astray(api, configuration, lws, one)
        if problem:
            return problem
    return ""


def _missing_of_one(one: Foundling) -> Judge:
    """Make the judge of a replica that is made anew: over when it is whole as before, in whosever group."""

    def judge(snapshot: Snapshot, entries: Sequence[Entry]) -> str:
        leader = snapshot.cache.pods.get(entries[0].namespace, one.leader) if entries else None
        if leader is None or leader.metadata.uid == one.uid:
            return f"{one.leader}: is to be made anew"
        states = [entry.state for entry in entries if one.whole and entry.index == one.index and not entry.fine]
        return f"{one.leader}: {', '.join(states)}" if states else ""

    return judge


def _still_astray(api: Api, configuration: Configuration, lws: tuple[str, str], one: Foundling) -> str:
    """Say when a replica came back as it was: then the next ones would, too."""
    snapshot, _ = look(api, configuration, *lws)
    again = [other for other in foundlings(snapshot, configuration).get(lws, ()) if other.index == one.index]
    return f"{one.leader}: came back {again[0].why}; the other replicas are left as they are" if again else ""


def _tell(line: str) -> None:
    print(f"  {line}", flush=True)  # noqa: T201
