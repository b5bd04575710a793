"""What the writer of certificates counts; only the process that leads shows any of it."""

import datetime as dt
import math
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from certs.store import Stored

TROUBLES: Final = (
    "missing-secret",
    "foreign-secret",
    "missing-configuration",
    "foreign-configuration",
    "clock-skew",
    "refused",
)


class CertificateMeters:
    """The metrics of certificates, in the registry of their process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self._ends = Gauge(
            "lockstep_certificate_not_after_seconds",
            "Unix time at which a certificate expires: leaf, current or next authority",
            ["role"],
            registry=registry,
        )
        self._steps = Counter(
            "lockstep_certificate_steps_total",
            "Steps of a renewal, by outcome: done, conflict, failed",
            ["step", "outcome"],
            registry=registry,
        )
        self._in_sync = Gauge(
            "lockstep_certificate_bundle_in_sync",
            "1 while every webhook entry has exactly the bundle of authorities",
            registry=registry,
        )
        self._troubles = Gauge(
            "lockstep_certificate_trouble",
            "1 while something keeps certificates from renewal",
            ["kind"],
            registry=registry,
        )
        self._looked = Gauge(
            "lockstep_certificate_looked_seconds", "Unix time of the last look that ended well", registry=registry
        )
        self.forget()

    def stepped(self, step: str, outcome: str) -> None:
        """Count a step."""
        self._steps.labels(step, outcome).inc()

    def troubled(self, kinds: Iterable[str]) -> None:
        """Show which troubles there are; all others are over."""
        there = frozenset(kinds)
        for kind in TROUBLES:
            self._troubles.labels(kind).set(kind in there)

    def saw(self, stored: Stored, *, in_sync: bool) -> None:
        """Show what is stored."""
        slots = {"leaf": stored.leaf, "current": stored.current, "next": stored.next}
        for role, slot in slots.items():
            end = 0.0 if slot.pair is None else slot.pair.certificate.not_valid_after_utc.timestamp()
            self._ends.labels(role).set(end)
        self._in_sync.set(in_sync)

    def looked(self, now: dt.datetime) -> None:
        """Note the end of a look."""
        self._looked.set(now.timestamp())

    def forget(self) -> None:
        """Show nothing: another process leads. A gauge without labels can't go away; it is no number then."""
        self._ends.clear()
        self._in_sync.set(math.nan)
        self._looked.set(math.nan)
        self.troubled(())
