"""What the policy service says about itself. Labels come from small fixed sets; no part of a payload is logged."""

from prometheus_client import Counter, Histogram

from policies.findings import Verdict
from serving.logs import LineWriter
from serving.metrics import Metrics

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0)


class Telemetry(Metrics):
    """The metrics of one process and the writer of its log.

    Attributes:
        in_flight: reviews that are being answered.
    """

    def __init__(self, writer: LineWriter) -> None:
        """Count from zero; log to `writer`."""
        super().__init__(writer, "lockstep_policy")
        self.in_flight = 0
        self._requests = Counter(
            "lockstep_policy_requests", "Reviews by route and status.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lockstep_policy_request_seconds",
            "Time from a review's whole body to its answer.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._findings = Counter(
            "lockstep_policy_findings", "Findings by rule.", ["rule", "severity"], registry=self.registry
        )
        self.watch("lockstep_policy_requests_in_flight", "Reviews in flight.", lambda: self.in_flight)

    def count(self, verdict: Verdict) -> None:
        """Count what was found."""
        for finding in verdict.findings:
            self._findings.labels(finding.rule, finding.severity).inc()

    def record(self, route: str, status: int, seconds: float) -> None:
        """Count and log one answer that took `seconds`."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        fields = {"level": "info", "message": "review", "route": route, "status": status}
        self.writer.write({**fields, "milliseconds": round(seconds * 1000, 3)})
