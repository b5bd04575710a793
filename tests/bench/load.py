"""Load from the Go client, and what it did to the server and to the callers."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.processes import CLIENT_CORE, Peer, on_core

CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Load:
    """The client's program and its bodies."""

    binary: Path
    bodies: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of load: CPU of the server in µs a request (0 where it was not measured), latencies in µs.

    `core_share` is how much of its core the server had: at full load a small share means that others had the rest.
    """

    requests_per_second: float
    core_share: float
    cpu: float
    p50: int
    p99: int


def run_load(load: Load, peer: Peer, seconds: float) -> Outcome:
    """Call `peer` for so long, as fast as it answers.

    Raises:
        RuntimeError: a request failed; such a run measures nothing.
    """
    before = peer.cpu_seconds()
    report = _finish(peer, _start(load, peer, seconds, rate=0))
    spent = peer.cpu_seconds() - before
    seconds, requests = report["seconds"], report["requests"]
    return Outcome(requests / seconds, spent / seconds, spent / requests * 1e6, report["p50"], report["p99"])


def run_both_at_rate(load: Load, peers: Sequence[Peer], seconds: float, rate: int) -> list[Outcome]:
    """Call all `peers` at the same time, each at `rate` requests a second.

    A late answer is more often the machine's doing than the server's; so whatever the machine does, it does to all.

    Raises:
        RuntimeError: a request failed.
    """
    clients = [_start(load, peer, seconds, rate) for peer in peers]
    reports = [_finish(peer, client) for peer, client in zip(peers, clients, strict=True)]
    return [Outcome(rate, 0.0, 0.0, report["p50"], report["p99"]) for report in reports]


def _start(load: Load, peer: Peer, seconds: float, rate: int) -> "subprocess.Popen[str]":
    options = ["-url", peer.url, "-payloads", str(load.bodies), "-conns", str(CONNECTIONS), "-d", f"{seconds}s"]
    with on_core(CLIENT_CORE):
        return subprocess.Popen([str(load.binary), *options, "-rate", str(rate)], stdout=subprocess.PIPE, text=True)


def _finish(peer: Peer, client: "subprocess.Popen[str]") -> dict[str, Any]:
    with client:
        said, _ = client.communicate()
    report: dict[str, Any] = json.loads(said)
    if report["failed"] or not report["requests"]:
        raise RuntimeError(f"{peer.name}: {report['failed']} requests failed, {report['last_error']}")
    return report
