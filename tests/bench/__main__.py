"""`python -m tests.bench`: the webhook against a lean Go server, in one run; exit 1 when a bar is missed.

Both servers have the same one core and the client another. CPU time is measured in short runs in turn, latency with
both servers under the same load at once, so a noisy neighbour hits both alike; what counts are medians of the ratios.
Needs Go 1.26, which compiles the two programs.
"""

import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.decision import decision_share
from tests.bench.load import Load, Outcome, run_both_at_rate, run_load
from tests.bench.payloads import write_bodies
from tests.bench.processes import Peer, running_gopeer, running_lockstep
from tests.cluster import toolchain
from tests.webhook.serving import make_pair, write_pair

ROUNDS = 15
LEAST_ROUNDS = 5
MOST_ROUNDS = 40
QUIET_SHARE = 0.3
ROUND_SECONDS = 0.7
RATE_ROUNDS = 5
RATE_SECONDS = 3.0
RATE = 300

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bar:
    """Something measured that must not be above a limit."""

    what: str
    limit: float
    measured: float
    spread: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is met."""
        return self.measured <= self.limit

    def __str__(self) -> str:
        """One row of the table of bars."""
        verdict = "ok" if self.holds else "MISSED"
        return f"{self.what:52} {self.measured:8.2f} {self.limit:8.2f}  {verdict:6} {self.spread}"


def main() -> int:
    """Measure, print, judge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = Load(_build("goload", folder), folder / "bodies.ndjson")
        gopeer = _build("gopeer", folder)
        write_bodies(load.bodies)
        write_pair(folder, *make_pair())
        with running_lockstep(folder) as ours, running_gopeer(gopeer, folder) as theirs:
            bars = _compare(load, ours, theirs)
    decision, loads = decision_share()
    say(f"\ndecision alone {decision:.1f} µs, json.loads of the same body {loads:.1f} µs")
    bars.append(Bar("decision alone over json.loads, CPU", 0.35, decision / loads))
    say(f"\n{'bar':52} {'measured':>8} {'at most':>8}")
    for bar in bars:
        say(str(bar))
    return 0 if all(bar.holds for bar in bars) else 1


def say(line: str) -> None:
    """Print a line of the report."""
    print(line, flush=True)  # noqa: T201 - the command's output


def _build(program: str, folder: Path) -> Path:
    binary = folder / program
    toolchain.run(["build", "-o", str(binary), "."], _HERE / program, folder / f"{program}.log", program)
    return binary


def _compare(load: Load, ours: Peer, theirs: Peer) -> list[Bar]:
    for peer in (ours, theirs):
        run_load(load, peer, 1.0)  # warm
    full = _in_turn(load, ours, theirs)
    even = [tuple(run_both_at_rate(load, (ours, theirs), RATE_SECONDS, RATE)) for _ in range(RATE_ROUNDS)]
    _print_side(ours, [a for a, _ in full], [a for a, _ in even])
    _print_side(theirs, [b for _, b in full], [b for _, b in even])
    cpu = [a.cpu / b.cpu for a, b in full]
    late = [a.p99 / b.p99 for a, b in even]
    return [
        Bar("CPU of a request over lean Go's, 8 connections", 1.33, statistics.median(cpu), _spread(cpu)),
        Bar(f"p99 over lean Go's at {RATE} requests/s", 2.5, statistics.median(late), _spread(late)),
        Bar("resident memory of a worker after load, MiB", 50.0, ours.worker_mib()),
    ]


def _in_turn(load: Load, ours: Peer, theirs: Peer) -> list[tuple[Outcome, Outcome]]:
    """Pairs of neighbouring runs in quiet moments; who goes first changes from pair to pair.

    On a machine that is never quiet enough the busy pairs have to do, and the report says so.
    """
    pairs: list[tuple[Outcome, Outcome]] = []
    quiet: list[tuple[Outcome, Outcome]] = []
    while len(quiet) < ROUNDS and len(pairs) < MOST_ROUNDS:
        first, second = (ours, theirs) if len(pairs) % 2 else (theirs, ours)
        outcomes = {peer.name: run_load(load, peer, ROUND_SECONDS) for peer in (first, second)}
        pairs.append((outcomes[ours.name], outcomes[theirs.name]))
        if min(outcome.core_share for outcome in pairs[-1]) >= QUIET_SHARE:
            quiet.append(pairs[-1])
    if len(quiet) >= LEAST_ROUNDS:
        return quiet
    say(
        f"the machine is too busy: in {len(pairs)} pairs of runs the servers had little of their core; figures are high"
    )
    return pairs


def _print_side(peer: Peer, full: list[Outcome], even: list[Outcome]) -> None:
    def middle(values: list[float]) -> float:
        return statistics.median(values)

    say(
        f"{peer.name:10} CPU {middle([o.cpu for o in full]):5.0f} µs a request, "
        f"{middle([o.requests_per_second for o in full]):6.0f} requests/s as fast as answers come; "
        f"at {RATE}/s p50 {middle([o.p50 for o in even]):5.0f} µs, p99 {middle([o.p99 for o in even]):6.0f} µs; "
        f"{peer.worker_mib():4.1f} MiB"
    )


def _spread(ratios: list[float]) -> str:
    return f"from {min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds"


if __name__ == "__main__":
    sys.exit(main())
