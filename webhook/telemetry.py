"""What the webhook says about itself: metrics, and one log line for each decision.

Label values come from small fixed sets; no name of a pod, a group or a user is one, and no part of a payload is logged.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from webhook.logs import LineWriter

BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0)
METRICS_TYPE = CONTENT_TYPE_PLAIN_0_0_4


@dataclass(frozen=True, slots=True)
class Handled:
    """One handled request, as metrics and log see it."""

    status: int
    outcome: str
    provider: str
    uid: str
    seconds: float


class Telemetry:
    """The metrics of one process and the writer of its log.

    Attributes:
        in_flight: requests to /mutate that are being handled.
    """

    def __init__(self, writer: LineWriter) -> None:
        """Count from zero in a registry of its own; log to `writer`."""
        self.in_flight = 0
        self.writer = writer
        self.registry = CollectorRegistry()
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
        self.reloads = Counter(
            "lockstep_certificate_reloads",
            "Changes of the certificate files, by result: loaded or refused.",
            ["result"],
            registry=self.registry,
        )
        self.not_after = Gauge(
            "lockstep_certificate_not_after_seconds",
            "Unix time at which the served certificate expires.",
            registry=self.registry,
        )
        self.watch("lockstep_webhook_requests_in_flight", "Requests to /mutate in flight.", lambda: self.in_flight)
        self.watch("lockstep_log_lines_dropped", "Log lines dropped: nobody read them.", lambda: writer.dropped)
        ProcessCollector(registry=self.registry)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read when someone asks."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def record(self, handled: Handled) -> None:
        """Count one handled request and log it."""
        key = (handled.outcome, handled.provider)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._requests.labels(*key)
        counter.inc()
        self._seconds.observe(handled.seconds)
        self.writer.write(
            {
                "level": "info",
                "message": "admission",
                "uid": handled.uid,
                "outcome": handled.outcome,
                "provider": handled.provider,
                "status": handled.status,
                "milliseconds": round(handled.seconds * 1000, 3),
            }
        )

    def render(self) -> bytes:
        """Give the metrics in Prometheus' text format."""
        return generate_latest(self.registry)
