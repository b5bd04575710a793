"""Metrics of what was found out about each replica."""

from prometheus_client import CollectorRegistry

from reconciler.decisions import Outcome
from reconciler.gauges import Findings

NAMES = ("lockstep_replicas", "lockstep_waiting_replicas", "lockstep_unstamped_pods", "lockstep_dropped_stamps")


def values(registry: CollectorRegistry, provider: str) -> list[float | None]:
    """Read the metrics of a provider."""
    return [registry.get_sample_value(name, {"provider": provider}) for name in NAMES]


def test_outcomes_are_summed_up_by_provider() -> None:
    """The latest of each leader; pods of no provider are not counted."""
    registry = CollectorRegistry()
    findings = Findings(registry)
    assert values(registry, "native") == [None] * 4
    findings.note(("a", "x-0"), Outcome(provider="native", unstamped=2))
    findings.note(("a", "x-0"), Outcome(provider="native", unstamped=1, waiting=True))
    findings.note(("b", "x-0"), Outcome(provider="native", dropped=3))
    findings.note(("a", "y-0"), Outcome(provider="volcano"))
    findings.note(("a", "z-0"), Outcome())
    assert values(registry, "native") == [2, 1, 1, 3]
    assert values(registry, "volcano") == [1, 0, 0, 0]
    assert values(registry, "") == [None] * 4


def test_a_leader_that_is_gone_is_counted_no_more() -> None:
    """Nor one that never was there."""
    registry = CollectorRegistry()
    findings = Findings(registry)
    findings.note(("a", "x-0"), Outcome(provider="native"))
    findings.note(("a", "x-0"), None)
    findings.note(("a", "never"), None)
    assert values(registry, "native") == [None] * 4


def test_outcomes_are_copied_out() -> None:
    """Whoever reads them can't change them."""
    findings = Findings(CollectorRegistry())
    findings.note(("a", "x-0"), Outcome(provider="native"))
    findings.outcomes().clear()
    assert findings.outcomes() == {("a", "x-0"): Outcome(provider="native")}


def test_a_process_that_leads_no_longer_reports_nothing() -> None:
    """Two processes must not both count the same pods."""
    registry = CollectorRegistry()
    findings = Findings(registry)
    findings.note(("a", "x-0"), Outcome(provider="native", unstamped=2))
    findings.clear()
    assert values(registry, "native") == [None] * 4
