"""Keeps PolicyReports of the cluster while a reconciler leads: audits at intervals, in a process of its own.

The audit runs apart because it reads and judges the whole cluster at once: its memory goes with it, and the
reconciler's threads never wait for it. It only reads; what is written goes through the reconciler's fence.
"""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lockstep.exit_codes import FINDINGS
from policies.findings import Finding
from policies.registry import all_rules
from policies.reports.policy_reports import KINDS, policy_reports
from reconciler.contract import Api, CallFailed
from reconciler.discovery import serves
from reconciler.fence import NotLeader
from reconciler.report_objects import keep_reports

log = logging.getLogger(__name__)

LONGEST_AUDIT: Final = 240.0


class _Audit(msgspec.Struct, frozen=True):
    findings: list[Finding] = []


class Reporter:
    """Audits and writes from a thread of its own."""

    def __init__(self, api: Api, arguments: Sequence[str], every: float, *, leads: Callable[[], bool]) -> None:
        """Prepare.

        Args:
            api: a fenced `Api`: its writes stop when another process leads.
            arguments: options of `lockstep audit` that name cluster and namespaces.
            every: seconds between audits.
            leads: tells whether this process leads; only then is there an audit.
        """
        self._api, self._arguments, self._every, self._leads = api, tuple(arguments), every, leads
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Begin; the first audit comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """End; an audit under way is waited for no longer than a moment, its process ends with ours."""
        self._stopping.set()
        self._thread.join(5.0)

    def report(self) -> int:
        """Audit once and bring the reports up to date; gives the number of writes, 0 where no such kind is served.

        Raises:
            CallFailed: the API server did not answer, or refused.
            NotLeader: another process leads.
        """
        served = [kind for kind in KINDS if serves(self._api, kind)]
        if not served:
            return 0
        findings = self._audit()
        return 0 if findings is None else keep_reports(self._api, served, policy_reports(findings, all_rules()))

    def _audit(self) -> list[Finding] | None:
        """Run `lockstep audit`; `None` when it did not come to a verdict."""
        command = [sys.executable, "-m", "lockstep", "audit", "--output", "json", *self._arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=LONGEST_AUDIT, check=False)
        except subprocess.TimeoutExpired:
            log.warning("audit: must end within %.0f s", LONGEST_AUDIT)
            return None
        if done.returncode not in (0, FINDINGS):
            log.warning("audit: ended with %d: %s", done.returncode, done.stderr.decode(errors="replace")[-1000:])
            return None
        return msgspec.json.decode(done.stdout, type=_Audit).findings

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            try:
                writes = self.report() if self._leads() else 0
            except NotLeader:
                continue
            except CallFailed as error:
                log.warning("reports: %s", error)
                continue
            if writes:
                log.info("reports: %d written", writes)


def audit_arguments(kubeconfig: Path | None, namespaces: Sequence[str]) -> list[str]:
    """Give the options of `lockstep audit` for the same cluster and namespaces."""
    where = [] if kubeconfig is None else ["--kubeconfig", str(kubeconfig)]
    return where + (["--namespace", *namespaces] if namespaces else [])
