"""`lockstep doctor`: what is wrong with an installation. Only looks."""

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

from lockstep.doctoring.examining import examine
from lockstep.doctoring.findings import write_json, write_text
from lockstep.doctoring.seeing import look
from lockstep.exit_codes import FINDINGS, FINE, WRONG_USAGE, fail
from lockstep.failures import FAILURES, end_by
from lockstep.review import load_exceptions
from manifests.shipped import install_objects
from policies.reading import Unreadable
from reconciler.api import load_api

PROBE_NAMESPACE: Final = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; without it the pod's own account is used")
    parser.add_argument(
        "--manifests",
        type=Path,
        metavar="FILE",
        help="what was applied, rendered (kubectl kustomize); by default the install.yaml of this version",
    )
    parser.add_argument("--exceptions", metavar="FILE", help="the reviewed exceptions, to find those about to end")
    parser.add_argument(
        "--probe-namespace",
        default=PROBE_NAMESPACE,
        metavar="NS",
        help=f"where LWS pods are tried out, as dry runs ({PROBE_NAMESPACE})",
    )
    parser.add_argument("--output", choices=("text", "json"), default="text", help="format (text)")


def run(args: argparse.Namespace) -> int:
    """Look once, print, and give the exit code."""
    try:
        shipped = read_manifests(args.manifests)
        exceptions = load_exceptions(args.exceptions)
    except (OSError, ValueError, Unreadable) as error:
        return fail(str(error), WRONG_USAGE)
    now, ours = dt.datetime.now(dt.UTC), version("lockstep")
    try:
        api = load_api(args.kubeconfig)
        seen = look(api, shipped, ours=ours, now=now, exceptions=exceptions, probe_namespace=args.probe_namespace)
    except FAILURES as error:
        return end_by(error)
    except ValueError as error:
        return fail(str(error), WRONG_USAGE)
    report = examine(seen)
    sys.stdout.write(write_json(report) if args.output == "json" else write_text(report))
    return FINDINGS if report.findings else FINE


def read_manifests(file: Path | None) -> Sequence[dict[str, Any]]:
    """Read what was applied.

    Raises:
        OSError: the file can't be read.
        ValueError: it holds no manifests.
    """
    if file is None:
        return install_objects()
    try:
        documents = [each for each in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader) if each is not None]
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: must be YAML, {' '.join(str(error).split())}") from error
    if not all(isinstance(each, dict) and {"apiVersion", "kind", "metadata"} <= each.keys() for each in documents):
        raise ValueError(f"{file}: must hold Kubernetes objects only")
    return documents
