"""What the reconciler last found out about each replica, and the metrics made of it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reconciler.decisions import Outcome
from reconciler.store import Key


class Findings(Collector):
    """The latest outcome of each replica. Safe to use from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._lock = threading.Lock()
        self._outcomes: dict[Key, Outcome] = {}
        registry.register(self)

    def note(self, key: Key, outcome: Outcome | None) -> None:
        """Note the outcome for a leader; `None` when there is no such leader any more."""
        with self._lock:
            if outcome is None:
                self._outcomes.pop(key, None)
            else:
                self._outcomes[key] = outcome

    def clear(self) -> None:
        """Forget everything: another process leads and finds out from now on."""
        with self._lock:
            self._outcomes.clear()

    def outcomes(self) -> dict[Key, Outcome]:
        """Copy the outcomes out."""
        with self._lock:
            return dict(self._outcomes)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Sum the outcomes up by provider."""
        outcomes = list(self.outcomes().values())
        yield _sums("lockstep_replicas", "Replicas of a provider", outcomes, lambda _: 1)
        yield _sums("lockstep_waiting_replicas", "Replicas that wait", outcomes, lambda outcome: outcome.waiting)
        yield _sums(
            "lockstep_unstamped_pods", "Pods admitted without their group", outcomes, lambda outcome: outcome.unstamped
        )
        yield _sums(
            "lockstep_dropped_stamps", "Pods whose stamp the API server dropped", outcomes, lambda out: out.dropped
        )


def _sums(
    name: str, documentation: str, outcomes: Iterable[Outcome], amount: Callable[[Outcome], int]
) -> GaugeMetricFamily:
    totals: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.provider:
            totals[outcome.provider] += amount(outcome)
    family = GaugeMetricFamily(name, documentation, labels=["provider"])
    for provider, total in sorted(totals.items()):
        family.add_metric([provider], total)
    return family
