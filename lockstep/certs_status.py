"""`lockstep certs status`: both chains, their ages, the next step and its reason. Only looks."""

import argparse
import datetime as dt
import sys
from collections.abc import Iterator
from typing import Final

import msgspec
from cryptography import x509

from certs.authority import HEAD_START
from certs.flaws import find_authority_flaw, find_leaf_flaw, signed_by
from certs.lives import Lives, due_at, made_at
from certs.renewal import decide
from certs.sight import Rest, Sight
from certs.store import Slot
from lockstep.certificate_options import names_of
from lockstep.exit_codes import FINDINGS, WRONG_USAGE, fail
from lockstep.failures import FAILURES, end_by
from lockstep.tables import table
from reconciler.api import load_api
from reconciler.certificate_objects import MARK, Cluster, Names, find_troubles, read_cluster

HEADINGS: Final = ("ROLE", "SERIAL", "SIGNED BY", "AGE", "ENDS IN", "DUE", "STATE")


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """One certificate.

    Attributes:
        role: `leaf`, `current`, `next` or `previous`.
        serial: in hex, empty where the certificate can't be read.
        signed_by: role of the authority that signed it, empty where it is none of these.
        age_seconds: since it was made.
        not_after: its end.
        due: when it is to be replaced; of a previous authority, when it leaves the bundle.
        problem: what is wrong with it, empty when nothing is.
    """

    role: str
    serial: str = ""
    signed_by: str = ""
    age_seconds: int = 0
    not_after: dt.datetime | None = None
    due: dt.datetime | None = None
    problem: str = ""


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    """One webhook configuration: how many entries it has, how many of them carry the bundle beside the leaf."""

    resource: str
    name: str
    exists: bool
    entries: int
    in_step: int


class Next(msgspec.Struct, frozen=True):
    """The next step, when it comes, and why it is not done now; `at` is empty where it could be done now."""

    step: str
    at: dt.datetime | None
    reason: str


class Report(msgspec.Struct, frozen=True):
    """All that is known.

    Attributes:
        certificates: those that are stored.
        configurations: both webhook configurations.
        next: the next step.
        last: Secret -> time, step and reason of its last write.
        findings: what somebody has to look at, empty when all is well.
    """

    certificates: tuple[Record, ...]
    configurations: tuple[Configuration, ...]
    next: Next
    last: dict[str, str]
    findings: tuple[str, ...]


def run(args: argparse.Namespace) -> int:
    """Print what is there; give the exit code."""
    try:
        names = names_of(args)
    except ValueError as error:
        return fail(str(error), WRONG_USAGE)
    now = dt.datetime.now(dt.UTC)
    try:
        report = report_on(read_cluster(load_api(args.kubeconfig), names), names, now)
    except FAILURES as error:
        return end_by(error, "get both secrets and both configurations")
    sys.stdout.write(write_json(report) if args.output == "json" else write_text(report, now))
    return FINDINGS if report.findings else 0


def report_on(cluster: Cluster, names: Names, now: dt.datetime, lives: Lives | None = None) -> Report:
    """Judge what was read."""
    sight = cluster.sight(names.hosts)
    troubles = [trouble.text for trouble in find_troubles(cluster, names, now, HEAD_START)]
    records = tuple(_records(sight, now))
    decision = decide(sight, now, lives or Lives())
    resting = isinstance(decision, Rest)
    coming = Next(decision.kind, decision.until if isinstance(decision, Rest) else None, decision.reason)
    pending = [f"{decision.kind}: must be done, {decision.reason}"] if decision.amiss or not resting else []
    flaws = [f"{record.role}: {record.problem}" for record in records if record.problem]
    secrets = {names.leaf: cluster.leaf, names.authorities: cluster.authorities}
    return Report(
        certificates=records,
        configurations=tuple(_configurations(cluster, sight)),
        next=coming,
        last={name: secret.metadata.word(MARK) for name, secret in secrets.items() if secret is not None},
        findings=tuple(dict.fromkeys([*troubles, *flaws, *pending])),
    )


def write_json(report: Report) -> str:
    """Render one JSON object."""
    return msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"


def write_text(report: Report, now: dt.datetime) -> str:
    """Render for people."""
    lines = list(table([HEADINGS, *(_row(record, now) for record in report.certificates)]))
    for one in report.configurations:
        state = f"{one.in_step} of {one.entries} entries have the bundle" if one.exists else "is not there"
        lines.append(f"{one.resource} {one.name}: {state}")
    lines += [f"last: {name}: {mark}" for name, mark in report.last.items() if mark]
    at = f" at {report.next.at:%Y-%m-%dT%H:%M:%SZ}" if report.next.at else " now"
    lines.append(f"next: {report.next.step}{at}: {report.next.reason}")
    lines += [f"finding: {finding}" for finding in report.findings]
    return "".join(f"{line}\n" for line in lines)


def _records(sight: Sight, now: dt.datetime) -> Iterator[Record]:
    stored = sight.stored
    authorities = {"current": stored.current.certificate, "next": stored.next.certificate}
    leaf = stored.leaf.certificate
    flaw = find_leaf_flaw(leaf, sight.hosts, now) if leaf is not None else ""
    yield _record("leaf", stored.leaf, authorities, now, flaw)
    for role, slot in (("current", stored.current), ("next", stored.next)):
        flaw = find_authority_flaw(slot.certificate, now) if slot.certificate is not None else ""
        yield _record(role, slot, authorities, now, flaw)
    for one in stored.retired:
        serial = f"{one.certificate.serial_number:x}"
        end = one.certificate.not_valid_after_utc
        yield Record("previous", serial, "previous", _age(one.certificate, now), end, one.until)


def _record(
    role: str, slot: Slot, authorities: dict[str, x509.Certificate | None], now: dt.datetime, flaw: str
) -> Record:
    certificate = slot.certificate
    problem = slot.damage or ("is missing" if slot.empty else flaw)
    if certificate is None:
        return Record(role, problem=problem)
    signer = next((name for name, one in authorities.items() if one is not None and signed_by(certificate, one)), "")
    end, due = certificate.not_valid_after_utc, due_at(certificate)
    return Record(role, f"{certificate.serial_number:x}", signer, _age(certificate, now), end, due, problem)


def _age(certificate: x509.Certificate, now: dt.datetime) -> int:
    return int((now - made_at(certificate)).total_seconds())


def _configurations(cluster: Cluster, sight: Sight) -> Iterator[Configuration]:
    for (kind, name), found in cluster.configurations.items():
        entries = () if found is None else found.entries
        in_step = sum(entry.bundle == sight.stored.bundle for entry in entries)
        yield Configuration(kind.plural, name, found is not None, len(entries), in_step)


def _row(record: Record, now: dt.datetime) -> tuple[str, ...]:
    if record.not_after is None or record.due is None:
        return (record.role, "-", "-", "-", "-", "-", record.problem)
    left = record.not_after - now
    return (
        record.role,
        record.serial[:16],
        record.signed_by or "none of ours",
        _span(dt.timedelta(seconds=record.age_seconds)),
        _span(left),
        f"{record.due:%Y-%m-%dT%H:%M:%SZ}",
        record.problem or "fine",
    )


def _span(time: dt.timedelta) -> str:
    """A time in days, or in hours and minutes where it is less than two."""
    if abs(time) >= dt.timedelta(days=2):
        return f"{time.total_seconds() / 86400:.0f} d"
    minutes = round(time.total_seconds() / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 0 else f"-{-minutes // 60} h {-minutes % 60} min"
