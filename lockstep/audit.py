"""`lockstep audit`: judges the live cluster by every rule, and keeps PolicyReports of it if asked to."""

import argparse
import sys
from typing import Final

from lockstep.collecting import Collected
from lockstep.exit_codes import BAD_CONFIGURATION, FINDINGS, NOT_REACHABLE, fail
from lockstep.reading_cluster import collected_from, connect
from lockstep.review import (
    add_common_arguments,
    load_exceptions,
    write,
)
from policies.exceptions import Exceptions
from policies.findings import Verdict
from policies.reading import Unreadable
from policies.registry import all_rules
from policies.reports.policy_reports import KINDS, policy_reports
from policies.reviewing import review
from reconciler.api import HttpApi
from reconciler.contract import CallFailed
from reconciler.discovery import serves
from reconciler.report_objects import keep_reports

NOT_SERVED: Final = "policyreports.wgpolicyk8s.io/v1alpha2: must be served to write reports, got no such kind"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_common_arguments(parser)
    parser.add_argument(
        "--write-reports", action="store_true", help="keep PolicyReports of the findings in the cluster"
    )


def run(args: argparse.Namespace) -> int:
    """Audit, print, and give the exit code."""
    try:
        exceptions = load_exceptions(args.exceptions)
    except Unreadable as error:
        return fail(str(error), BAD_CONFIGURATION)
    api = connect(args.kubeconfig)
    if isinstance(api, int):
        return api
    collected = collected_from(api, args.namespace)
    if isinstance(collected, int):
        return collected
    verdict = audit(collected, exceptions)
    write(verdict, len(collected.subjects), args.output)
    code = _keep(api, verdict) if args.write_reports else 0
    return code or (0 if verdict.clean else FINDINGS)


def audit(collected: Collected, exceptions: Exceptions) -> Verdict:
    """Judge a cluster."""
    return review(collected.subjects, collected.snapshot, collected.target, exceptions)


def _keep(api: HttpApi, verdict: Verdict) -> int:
    try:
        served = [kind for kind in KINDS if serves(api, kind)]
        if not served:
            return fail(NOT_SERVED, BAD_CONFIGURATION)
        writes = keep_reports(api, served, policy_reports(verdict.findings, all_rules()))
    except CallFailed as error:
        return fail(f"api server: must let us write reports, got {error}", NOT_REACHABLE)
    print(f"{writes} reports written", file=sys.stderr)  # noqa: T201
    return 0
