"""Metrics of the machinery."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest


class Meters:
    """What the machinery counts, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the metrics."""
        self.registry = r = registry or CollectorRegistry()
        self._watch_age = Gauge(
            "lockstep_watch_age_seconds", "Since the last sign of life of a watch", ["resource"], registry=r
        )
        self._relists = Counter(
            "lockstep_watch_relists_total", "Lists made anew, by reason", ["resource", "reason"], registry=r
        )
        self._watch_failures = Counter("lockstep_watch_failures_total", "Failed attempts", ["resource"], registry=r)
        self._bad_items = Counter("lockstep_bad_items_total", "Objects that were skipped", ["resource"], registry=r)
        self._queue_depth = Gauge("lockstep_queue_depth", "Keys that wait for a worker", registry=r)
        self._queue_wait = Gauge("lockstep_queue_oldest_seconds", "Wait of the longest waiting key", registry=r)
        self._retries = Counter("lockstep_retries_total", "Keys put back after a failure", registry=r)
        self._leader = Gauge("lockstep_leader", "1 while this process may write", registry=r)
        self._writes = Counter(
            "lockstep_writes_total", "Writes by verb, kind and outcome", ["verb", "kind", "outcome"], registry=r
        )
        self._events = Counter("lockstep_events_total", "Events by outcome", ["outcome"], registry=r)
        self._reconciles = Histogram("lockstep_reconcile_seconds", "Duration of a reconcile", ["outcome"], registry=r)

    def watch_age(self, resource: str, age: Callable[[], float]) -> None:
        """Ask `age` at every scrape."""
        self._watch_age.labels(resource).set_function(age)

    def relisted(self, resource: str, reason: str) -> None:
        """Count a list made anew."""
        self._relists.labels(resource, reason).inc()

    def watch_failed(self, resource: str) -> None:
        """Count a failed attempt to list or watch."""
        self._watch_failures.labels(resource).inc()

    def bad_item(self, resource: str) -> None:
        """Count an object that could not be used."""
        self._bad_items.labels(resource).inc()

    def queue(self, depth: Callable[[], float], oldest: Callable[[], float]) -> None:
        """Ask the queue at every scrape."""
        self._queue_depth.set_function(depth)
        self._queue_wait.set_function(oldest)

    def retried(self) -> None:
        """Count a key put back after a failure."""
        self._retries.inc()

    def leading(self, held: Callable[[], bool]) -> None:
        """Ask at every scrape whether this process leads."""
        self._leader.set_function(held)

    def wrote(self, verb: str, kind: str, outcome: str) -> None:
        """Count a write."""
        self._writes.labels(verb, kind, outcome).inc()

    def event(self, outcome: str) -> None:
        """Count an Event by what became of it."""
        self._events.labels(outcome).inc()

    def reconciled(self, seconds: float, outcome: str) -> None:
        """Count a reconcile and its duration."""
        self._reconciles.labels(outcome).observe(seconds)

    def render(self) -> bytes:
        """Render all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
