"""Alerts and the dashboard, rendered from one table each; every alert has its section in docs/runbook.md."""

import json
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

RUNBOOK: Final = "docs/runbook.md"


class Alert(NamedTuple):
    """One alert: its name is the runbook's heading."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str


class Panel(NamedTuple):
    """One panel: queries with their legends, and the unit of all of them."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


ALERTS: Final = (
    Alert(
        "LockstepWebhookDown",
        "absent(lockstep_webhook_requests_in_flight)",
        "2m",
        "critical",
        "No webhook is scraped: LWS pods are admitted without their group, or refused with fail-closed",
    ),
    Alert(
        "LockstepWebhookSlow",
        "histogram_quantile(0.99, sum by (le) (rate(lockstep_webhook_request_seconds_bucket[5m]))) > 0.2",
        "10m",
        "warning",
        "One review in a hundred takes longer than a tenth of the webhook's time-out",
    ),
    Alert(
        "LockstepWebhookErrors",
        'sum(rate(lockstep_webhook_requests_total{outcome="refused"}[5m])) > 0',
        "10m",
        "warning",
        "Somebody sends the webhook what no API server sends",
    ),
    Alert(
        "LockstepReconcilerDown",
        "absent(lockstep_leader)",
        "5m",
        "critical",
        "No reconciler is scraped: groups are not made, certificates not renewed",
    ),
    Alert("LockstepNoLeader", "sum(lockstep_leader) < 1", "1m", "critical", "Reconcilers run and none of them leads"),
    Alert(
        "LockstepCacheStale",
        "max by (resource) (lockstep_watch_age_seconds) > 900",
        "5m",
        "warning",
        "A watch of {{ $labels.resource }} has heard nothing for long: what is known of them is old",
    ),
    Alert(
        "LockstepPodsUnstamped",
        "sum by (provider) (lockstep_unstamped_pods) + sum by (provider) (lockstep_dropped_stamps) > 0",
        "10m",
        "warning",
        "{{ $value }} pods of {{ $labels.provider }} are without their group",
    ),
    Alert(
        "LockstepReplicasWaiting",
        "sum by (provider) (lockstep_waiting_replicas) > 0",
        "1h",
        "info",
        "{{ $value }} replicas of {{ $labels.provider }} wait; mostly for room, and rightly",
    ),
    Alert(
        "LockstepCertificateExpires",
        'min(lockstep_certificate_not_after_seconds{role=~"|leaf"} > 0) - time() < 7.5 * 86400',
        "1h",
        "critical",
        "The served certificate ends in {{ $value | humanizeDuration }} and was not renewed in time",
    ),
    Alert(
        "LockstepCertificateTrouble",
        "max by (kind) (lockstep_certificate_trouble) > 0",
        "10m",
        "warning",
        "Certificates can't be renewed: {{ $labels.kind }}",
    ),
    Alert(
        "LockstepBundleOutOfSync",
        "max(lockstep_certificate_bundle_in_sync) < 1",
        "10m",
        "critical",
        "A webhook configuration has another bundle than the published one",
    ),
    Alert(
        "LockstepPolicyDown",
        "absent(lockstep_policy_requests_in_flight)",
        "5m",
        "warning",
        "No policy service is scraped: rules across objects are told to nobody",
    ),
    Alert(
        "LockstepLogLinesDropped",
        "sum(delta(lockstep_log_lines_dropped[15m])) > 0",
        "15m",
        "info",
        "Log lines are dropped because nobody reads them",
    ),
)

PANELS: Final = (
    Panel("Replicas", "short", (("sum by (provider) (lockstep_replicas)", "{{provider}}"),)),
    Panel("Replicas that wait", "short", (("sum by (provider) (lockstep_waiting_replicas)", "{{provider}}"),)),
    Panel(
        "Pods without their group",
        "short",
        (
            ("sum by (provider) (lockstep_unstamped_pods)", "unstamped, {{provider}}"),
            ("sum by (provider) (lockstep_dropped_stamps)", "dropped, {{provider}}"),
        ),
    ),
    Panel(
        "Reviews by outcome",
        "reqps",
        (("sum by (outcome) (rate(lockstep_webhook_requests_total[5m]))", "{{outcome}}"),),
    ),
    Panel(
        "Time of a review",
        "s",
        (
            ("histogram_quantile(0.5, sum by (le) (rate(lockstep_webhook_request_seconds_bucket[5m])))", "half"),
            ("histogram_quantile(0.99, sum by (le) (rate(lockstep_webhook_request_seconds_bucket[5m])))", "99 %"),
        ),
    ),
    Panel(
        "Connections of the servers",
        "short",
        (("sum(lockstep_webhook_connections)", "webhook"), ("sum(lockstep_policy_connections)", "policy service")),
    ),
    Panel("Leaders", "short", (("sum(lockstep_leader)", "leading"),)),
    Panel(
        "Writes",
        "ops",
        (("sum by (verb, kind, outcome) (rate(lockstep_writes_total[5m]))", "{{verb}} {{kind}}: {{outcome}}"),),
    ),
    Panel(
        "Work queue",
        "short",
        (("sum(lockstep_queue_depth)", "waiting"), ("max(lockstep_queue_oldest_seconds)", "oldest, seconds")),
    ),
    Panel("Age of what is known", "s", (("max by (resource) (lockstep_watch_age_seconds)", "{{resource}}"),)),
    Panel(
        "Time left on certificates",
        "s",
        (("min by (role) (lockstep_certificate_not_after_seconds > 0) - time()", "{{role}}"),),
    ),
    Panel(
        "Findings of the policy service",
        "short",
        (("sum by (rule) (increase(lockstep_policy_findings_total[1h]))", "{{rule}}"),),
    ),
)


def prometheus_rule() -> Json:
    """Give the alerts as the Prometheus operator takes them."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "lockstep", "namespace": "lockstep-system"},
        "spec": {"groups": [{"name": "lockstep", "rules": [_rule(alert) for alert in ALERTS]}]},
    }


def dashboard() -> str:
    """Give the dashboard as Grafana imports it."""
    content = {
        "title": "Lockstep",
        "uid": "lockstep",
        "tags": ["lockstep"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(content, indent=1) + "\n"


def anchor(alert: Alert) -> str:
    """Give the anchor of an alert's section as Markdown renderers make it."""
    return alert.name.lower()


def expressions() -> list[str]:
    """List every query of alerts and panels."""
    return [alert.expression for alert in ALERTS] + [query for panel in PANELS for query, _ in panel.queries]


def _rule(alert: Alert) -> Json:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook_url": f"{RUNBOOK}#{anchor(alert)}"},
    }


def _panel(number: int, panel: Panel) -> Json:
    across, width, height = 3, 8, 7
    row, column = divmod(number, across)
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "timeseries",
        "datasource": source,
        "gridPos": {"x": column * width, "y": row * height, "w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": source, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.queries)
        ],
    }
