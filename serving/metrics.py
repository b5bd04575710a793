"""What a server says about itself whatever it serves: its certificate, its connections, its process, its log."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from serving.logs import LineWriter

METRICS_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """The metrics of one process and the writer of its log.

    Attributes:
        writer: of the log.
        registry: holds every metric.
        reloads: changes of the certificate files, by result.
        not_after: end of the served certificate.
    """

    def __init__(self, writer: LineWriter, prefix: str) -> None:
        """Count from zero in a registry of its own; names of what is served begin with `prefix`."""
        self.writer = writer
        self.registry = CollectorRegistry()
        self._prefix = prefix
        self._later: Callable[[Callable[[], None]], object] = _at_once
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
        self.watch("lockstep_log_lines_dropped", "Log lines dropped: nobody read them.", lambda: writer.dropped)
        ProcessCollector(registry=self.registry)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read when someone asks."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def watch_connections(self, read: Callable[[], float]) -> None:
        """Add the gauge of open connections."""
        self.watch(f"{self._prefix}_connections", "Open connections.", read)

    def put_off(self, later: Callable[[Callable[[], None]], object]) -> None:
        """Count and log not at once but when `later` calls what it is given."""
        self._later = later

    def flush(self) -> None:
        """Count and log what was put off; here nothing is."""

    def render(self) -> bytes:
        """Give the metrics in Prometheus' text format."""
        self.flush()
        return generate_latest(self.registry)


def _at_once(work: Callable[[], None]) -> None:
    work()
