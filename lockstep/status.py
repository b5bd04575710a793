"""`lockstep status`: every replica's state with its reason. Only looks."""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lockstep.exit_codes import FINDINGS
from lockstep.failures import FAILURES, end_by
from lockstep.tables import table
from reconciler.api import load_api
from reconciler.contract import Api
from reconciler.overview import Entry, replica_entries
from reconciler.snapshot import take_snapshot
from schedulers.configuration import Configuration, load_configuration

HEADINGS: Final = ("INDEX", "REVISION", "GROUP", "STATE", "PODS", "REASON")
MOST_WORDS: Final = 160
"""Characters of a scheduler's words in the table; JSON has them all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("lws", nargs="*", metavar="LWS", help="only these, as NAME or NAMESPACE/NAME")
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    parser.add_argument("--namespace", nargs="+", action="extend", default=[], metavar="NS", help="look in these only")
    parser.add_argument("--config", metavar="FILE", help="the configuration file")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Print the states; give the exit code."""
    try:
        configuration = load_configuration(args.config)
        api = load_api(args.kubeconfig)
        entries = look(api, configuration, args.namespace)
    except FAILURES as error:
        return end_by(error)
    wanted = [entry for entry in entries if not args.lws or is_asked(entry, args.lws)]
    write = write_json if args.output == "json" else write_text
    sys.stdout.write(write(wanted))
    missing = [name for name in args.lws if not any(is_asked(entry, [name]) for entry in entries)]
    for name in missing:
        print(f'lws: must be one with replicas, got "{name}"', file=sys.stderr)  # noqa: T201
    return 0 if not missing and all(entry.fine for entry in wanted) else FINDINGS


def look(api: Api, configuration: Configuration, namespaces: Sequence[str]) -> list[Entry]:
    """List everything once and judge every replica.

    Raises:
        CallFailed: the server did not answer, or refused.
    """
    return replica_entries(take_snapshot(api, configuration.providers(), namespaces), configuration)


def is_asked(entry: Entry, names: Sequence[str]) -> bool:
    """Tell whether an entry is of one of some LWS, named `NAME` or `NAMESPACE/NAME`."""
    return entry.lws in names or f"{entry.namespace}/{entry.lws}" in names


def write_json(entries: Sequence[Entry]) -> str:
    """Render a JSON list with one record a replica."""
    return msgspec.json.format(msgspec.json.encode(entries)).decode() + "\n"


def write_text(entries: Sequence[Entry]) -> str:
    """Render a table for each LWS, with what Lockstep has warned of below it."""
    if not entries:
        return "no replicas\n"
    grouped = itertools.groupby(entries, key=lambda entry: (entry.namespace, entry.lws))
    return "\n".join("".join(f"{line}\n" for line in _of_lws(list(group))) for _, group in grouped)


def _of_lws(entries: Sequence[Entry]) -> Iterator[str]:
    first = entries[0]
    counts = Counter(entry.state for entry in entries)
    yield f"{first.namespace}/{first.lws}: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    yield from table([HEADINGS, *(_row(entry) for entry in entries)])
    yield from (f"  warned: {warning}" for warning in first.warnings)


def _row(entry: Entry) -> tuple[str, ...]:
    index = str(entry.index) if entry.index >= 0 else "?"
    said = f'; {entry.provider} says: "{_shortened(entry.words)}"' if entry.words else ""
    misread = f"; {entry.autoscaler}" if entry.autoscaler else ""
    pods = f"{entry.bound}/{entry.size}"
    return (index, entry.revision or "-", entry.group or "-", entry.state, pods, entry.reason + said + misread)


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MOST_WORDS else plain[: MOST_WORDS - 3] + "..."
