"""The page on certificates: it names every event, trouble and metric there is, and no other."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from certs.sight import Kind
from reconciler.certificate_meters import CertificateMeters
from reconciler.certificates import EVENTS

PAGE = (Path(__file__).parents[2] / "docs" / "certificates.md").read_text()


def test_events() -> None:
    """Every event is on the page, and every word on it that looks like one is an event."""
    events = {*Kind, *EVENTS.values()}
    assert {word for word in re.findall(r"`([A-Z][A-Za-z]+)`", PAGE) if len(word) > 5} == events


def test_metrics() -> None:
    """Every metric of the writer is on the page."""
    registry = CollectorRegistry()
    CertificateMeters(registry)
    names = {metric.name for metric in registry.collect()}
    told = {name.removesuffix("_total") for name in re.findall(r"`(lockstep_certificate_\w+)", PAGE)}
    assert told - {"lockstep_certificate_reloads"} == names
