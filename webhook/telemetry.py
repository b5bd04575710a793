"""What the webhook says about itself: metrics, and one log line for each decision.

Label values come from small fixed sets; no name of a pod, a group or a user is one, and no part of a payload is logged.
"""

import time

from prometheus_client import Counter, Histogram

from serving.logs import LineWriter, make_line
from serving.metrics import Metrics
from webhook.reviews import Decision

BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0)

MOST_PENDING = 32
"""Answers that are counted and logged together at most; half a millisecond of work."""


class Telemetry(Metrics):
    """The metrics of one process and the writer of its log.

    Attributes:
        in_flight: requests to /mutate that are being handled.
    """

    def __init__(self, writer: LineWriter) -> None:
        """Count from zero in a registry of its own; log to `writer`."""
        super().__init__(writer, "lockstep_webhook")
        self._pending: list[tuple[float, Decision, float]] = []
        self.in_flight = 0
        self._requests = Counter(
            "lockstep_webhook_requests",
            "Requests to /mutate by outcome and provider.",
            ["outcome", "provider"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "lockstep_webhook_request_seconds",
            "Time from a request's head to its answer.",
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._counters: dict[tuple[str, str], Counter] = {}
        self.watch("lockstep_webhook_requests_in_flight", "Requests to /mutate in flight.", lambda: self.in_flight)

    def record(self, decision: Decision, seconds: float) -> None:
        """Count and log one answer that took `seconds`.

        The work is put off and done for several at once: one after the other it costs half as much as spread between
        requests, when the processor's caches hold other code.
        """
        pending = self._pending
        pending.append((time.time(), decision, seconds))
        if len(pending) == 1:
            self._later(self.flush)
        elif len(pending) >= MOST_PENDING:
            self.flush()

    def flush(self) -> None:
        """Count and log what was put off."""
        pending, self._pending = self._pending, []
        for _, decision, seconds in pending:
            self._counter(decision.outcome, decision.provider).inc()
            self._seconds.observe(seconds)
        self.writer.write_all([_line_of(*answer) for answer in pending])

    def _counter(self, outcome: str, provider: str) -> Counter:
        """The counter of a label pair; looking it up in the library each time costs more than counting."""
        counter = self._counters.get((outcome, provider))
        if counter is None:
            counter = self._counters[outcome, provider] = self._requests.labels(outcome, provider)
        return counter


def _line_of(at: float, decision: Decision, seconds: float) -> bytes:
    """The log line of one answer."""
    return make_line(
        at,
        {
            "level": "info",
            "message": "admission",
            "uid": decision.uid,
            "outcome": decision.outcome,
            "provider": decision.provider,
            "status": decision.status,
            "milliseconds": round(seconds * 1000, 3),
        },
    )
