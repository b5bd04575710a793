"""`lockstep move`: hand an LWS to another scheduler, replica by replica, by LWS's own rollout."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gangs import keys
from gangs.intents import WORDS
from lockstep import sets
from lockstep.exit_codes import FINDINGS, FINE, WRONG_USAGE, fail
from lockstep.failures import FAILURES, end_by
from lockstep.templates import PARTITION, WHERE, Json, claims_by_hand, move_patch, partition_of, scheduler_names
from lockstep.watching_rollouts import look, missing_of, wait
from reconciler.api import load_api
from reconciler.contract import Api, NotFound
from reconciler.snapshot import Snapshot
from schedulers.configuration import Configuration, load_configuration
from schedulers.contract import Provider

TIMEOUT: Final = 1800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("lws", metavar="LWS", help="the LWS, as NAME or NAMESPACE/NAME, also with lws/ before it")
    parser.add_argument("--to", required=True, metavar="SCHEDULER", help="a provider's name, or a schedulerName")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS", help="wait so long (%(default)s)")
    add_cluster_arguments(parser)


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of commands that change an LWS."""
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    parser.add_argument("--config", metavar="FILE", help="the configuration file")


def run(args: argparse.Namespace) -> int:
    """Move, wait until it is done, and give the exit code. What was begun by an earlier call goes on."""
    try:
        configuration = load_configuration(args.config)
        scheduler_name = target_of(args.to, configuration)
        return move(load_api(args.kubeconfig), configuration, args, scheduler_name)
    except LookupError as error:
        return fail(str(error.args[0]), WRONG_USAGE)
    except NotFound:
        return fail(f'lws: must be one that exists, got "{args.lws}"', WRONG_USAGE)
    except FAILURES as error:
        return end_by(error, "list, and patch leaderworkersets")


def target_of(asked: str, configuration: Configuration) -> str:
    """Find the `schedulerName` that `--to` means.

    Raises:
        LookupError: with the message.
    """
    if asked in configuration.schedulers:
        return asked
    names = sorted(name for name, provider in configuration.schedulers.items() if provider == asked)
    if len(names) == 1:
        return names[0]
    known = ", ".join(sorted({*configuration.schedulers, *configuration.schedulers.values()}))
    rule = f"be one of {', '.join(names)}" if names else f"be one of {known}"
    raise LookupError(f'--to: must {rule}, got "{asked}"')


def move(api: Api, configuration: Configuration, args: argparse.Namespace, scheduler_name: str) -> int:
    """Check, patch and wait."""
    where = sets.split(args.lws)
    provider = configuration.provider(scheduler_name)
    assert provider is not None, "the name comes from the configuration"  # noqa: S101 - tells mypy so
    lws = sets.read(api, *where)
    snapshot, entries = look(api, configuration, *where)
    problems = list(obstacles(lws, provider, configuration, snapshot))
    for problem in problems:
        fail(problem, FINDINGS)
    if problems:
        return FINDINGS
    _tell(describe(lws, scheduler_name, provider))
    if args.dry_run:
        return FINE
    sets.change(api, lws, lambda now: move_patch(now, scheduler_name))
    missing = missing_of(provider, where, scheduler_name, sum(entry.fine for entry in entries))
    left = wait(api, configuration, where, missing, seconds=args.timeout, tell=_tell)
    if left:
        return fail(f"{left}; LWS goes on with it, and the same command waits for it again", FINDINGS)
    _tell(f"all replicas are with {provider.title}, and no group of another scheduler is left")
    return FINE


def obstacles(lws: Json, provider: Provider, configuration: Configuration, snapshot: Snapshot) -> Iterator[str]:
    """Say why an LWS can't be moved."""
    if provider.kinds and snapshot.first(provider.kinds) is None:
        titles = ", ".join(kind.title for kind in provider.kinds)
        yield f"{provider.title}: must be installed, got a cluster that serves none of {titles}"
    if partition := partition_of(lws):
        yield f"{PARTITION}: must be 0, got {partition}: LWS leaves the replicas below it as they are"
    for known in configuration.providers():
        for template, claim in claims_by_hand(lws, known).items():
            yield (
                f'{WHERE}.{template}.{claim.path}: must not be written by hand, got "{claim.group}": '
                "`lockstep adopt` takes it off"
            )


def describe(lws: Json, scheduler_name: str, provider: Provider) -> str:
    """Say what a move does."""
    title = f"{lws['metadata']['namespace']}/{lws['metadata']['name']}"
    now = sorted(set(scheduler_names(lws).values()) - {scheduler_name})
    if not now:
        return f'{title}: its templates name "{scheduler_name}", {provider.title}, already'
    words = [key for key in _words(lws) if key.removeprefix(keys.WORD_PREFIX) not in provider.words]
    lost = f"; {provider.title} can't honour {', '.join(words)}" if words else ""
    return f'{title}: from "{", ".join(now)}" to "{scheduler_name}", {provider.title}, replica by replica{lost}'


def _words(lws: Json) -> list[str]:
    annotations = lws["metadata"].get("annotations") or {}
    return [keys.WORD_PREFIX + word for word in WORDS if keys.WORD_PREFIX + word in annotations]


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201
