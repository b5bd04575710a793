"""`lockstep review`: judges manifests, or a live cluster, by every rule."""

import argparse
import datetime as dt
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from lockstep.exit_codes import BAD_CONFIGURATION, FINDINGS, WRONG_USAGE, fail
from lockstep.files import STANDARD_INPUT, WrongUsage, read_text
from policies.exceptions import NO_EXCEPTIONS, Exceptions, read_exceptions
from policies.findings import Verdict
from policies.objects import Subject
from policies.reading import Unreadable, read_objects
from policies.registry import all_rules
from policies.reports import FORMATS, Reviewed
from policies.reviewing import review, snapshot_of
from policies.snapshot import Snapshot
from policies.targets import GENERIC_WORKLOAD, NEWEST, BadTarget, Target, parse_target

MANIFESTS: Final = frozenset({".yaml", ".yml", ".json"})


class Given(msgspec.Struct, frozen=True):
    """What is to be judged."""

    subjects: Sequence[Subject]
    snapshot: Snapshot
    target: Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="manifests, YAML or JSON, or folders of them; - is standard input"
    )
    parser.add_argument("--cluster", action="store_true", help="judge the live cluster, and files as to be added to it")
    parser.add_argument("--target", metavar="VERSION", help=f"the Kubernetes that manifests are for ({NEWEST})")
    parser.add_argument("--gates", metavar="NAMES", help=f"its feature gates ({GENERIC_WORKLOAD}); -NAME is off")
    add_common_arguments(parser)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `lockstep audit` has too."""
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    parser.add_argument("--namespace", nargs="+", action="extend", default=[], metavar="NS", help="look in these only")
    parser.add_argument("--exceptions", metavar="FILE", help="findings that may pass, with owner, reason and expiry")
    parser.add_argument("--output", choices=FORMATS, default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Review, print, and give the exit code."""
    try:
        exceptions = load_exceptions(args.exceptions)
    except Unreadable as error:
        return fail(str(error), BAD_CONFIGURATION)
    try:
        given = gather(args)
    except (WrongUsage, Unreadable, BadTarget) as error:
        return fail(str(error), WRONG_USAGE)
    return given if isinstance(given, int) else conclude(given, exceptions, args.output)


def conclude(given: Given, exceptions: Exceptions, output: str) -> int:
    """Judge, print the report, and give the exit code."""
    verdict = review(given.subjects, given.snapshot, given.target, exceptions)
    write(verdict, len(given.subjects), output)
    return 0 if verdict.clean else FINDINGS


def gather(args: argparse.Namespace) -> Given | int:
    """Collect what the arguments ask for; an exit code where the cluster can't be read.

    Raises:
        WrongUsage: nothing to review.
        Unreadable: a file holds no objects.
        BadTarget: no such Kubernetes.
    """
    subjects = [subject for file in args.files for subject in read_files(file)]
    if not subjects and not args.cluster:
        named = ", ".join(args.files) or "arguments"
        raise WrongUsage(f"{named}: must hold objects, or --cluster be given, got none")
    if not args.cluster:
        target = parse_target(args.target or NEWEST, GENERIC_WORKLOAD if args.gates is None else args.gates)
        return Given(subjects, snapshot_of(subjects), target)
    if args.target is not None or args.gates is not None:
        raise WrongUsage("--target, --gates: must be left out with --cluster, which has its own, got both")
    return _with_cluster(args, subjects)


def _with_cluster(args: argparse.Namespace, subjects: Sequence[Subject]) -> Given | int:
    from lockstep.reading_cluster import read_cluster  # noqa: PLC0415 - brings the client: only who asks for it pays

    collected = read_cluster(args.kubeconfig, args.namespace)
    if isinstance(collected, int):
        return collected
    if not subjects:
        return Given(collected.subjects, collected.snapshot, collected.target)
    return Given(subjects, collected.with_objects(subjects), collected.target)


def read_files(name: str) -> list[Subject]:
    """Read the objects of a file, of standard input, or of every manifest below a folder.

    Raises:
        WrongUsage: it can't be opened.
        Unreadable: it holds no objects.
    """
    if name == STANDARD_INPUT:
        return read_objects(sys.stdin.read(), "stdin")
    path = Path(name)
    files = sorted(file for file in path.rglob("*") if file.suffix in MANIFESTS) if path.is_dir() else [path]
    return [subject for file in files for subject in read_objects(read_text(file), str(file))]


def load_exceptions(file: str | None) -> Exceptions:
    """Read the file of exceptions for today.

    Raises:
        Unreadable: it is none.
    """
    if file is None:
        return NO_EXCEPTIONS
    try:
        text = read_text(Path(file))
    except WrongUsage as error:
        raise Unreadable(file, 1, str(error).removeprefix(f"{file}: ")) from error
    return read_exceptions(text, file, str(dt.datetime.now(dt.UTC).date()), all_rules())


def write(verdict: Verdict, objects: int, output: str) -> None:
    """Print a report."""
    reviewed = Reviewed(verdict, objects, all_rules(), version("lockstep"))
    sys.stdout.write(importlib.import_module(f"policies.reports.{output}").render(reviewed))
