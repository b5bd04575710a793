"""Alerts fire when they should and are silent when all is well, as promtool evaluates them."""

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.manifests.built import tool
from tests.manifests.documents import Json
from tests.manifests.monitoring import ALERTS, RUNBOOK, anchor, prometheus_rule

DAY = 86400


class Case(NamedTuple):
    """An alert's evidence.

    Attributes:
        ill: series under which it fires.
        well: series under which it is silent.
        labels: of the alert that fires, beside its severity.
        after: how long until it fires.
        summary: what it says then, where that depends on the series.
    """

    ill: dict[str, str]
    well: dict[str, str]
    labels: dict[str, str]
    after: str
    summary: str = ""


CASES = {
    "LockstepWebhookDown": Case({}, {"lockstep_webhook_requests_in_flight": "0x60"}, {}, "5m"),
    "LockstepWebhookSlow": Case(
        {
            'lockstep_webhook_request_seconds_bucket{le="0.1"}': "0+1x60",
            'lockstep_webhook_request_seconds_bucket{le="0.5"}': "0+10x60",
            'lockstep_webhook_request_seconds_bucket{le="+Inf"}': "0+10x60",
        },
        {
            'lockstep_webhook_request_seconds_bucket{le="0.1"}': "0+10x60",
            'lockstep_webhook_request_seconds_bucket{le="+Inf"}': "0+10x60",
        },
        {},
        "30m",
    ),
    "LockstepWebhookErrors": Case(
        {'lockstep_webhook_requests_total{outcome="refused"}': "0+1x60"},
        {'lockstep_webhook_requests_total{outcome="refused"}': "7x60"},
        {},
        "30m",
    ),
    "LockstepReconcilerDown": Case({}, {"lockstep_leader": "0x60"}, {}, "10m"),
    "LockstepNoLeader": Case(
        {'lockstep_leader{pod="a"}': "0x60", 'lockstep_leader{pod="b"}': "0x60"},
        {'lockstep_leader{pod="a"}': "0x60", 'lockstep_leader{pod="b"}': "1x60"},
        {},
        "5m",
    ),
    "LockstepCacheStale": Case(
        {'lockstep_watch_age_seconds{resource="pods"}': "1000x60"},
        {'lockstep_watch_age_seconds{resource="pods"}': "300x60"},
        {"resource": "pods"},
        "10m",
        "A watch of pods has heard nothing for long: what is known of them is old",
    ),
    "LockstepPodsUnstamped": Case(
        {'lockstep_unstamped_pods{provider="native"}': "3x60", 'lockstep_dropped_stamps{provider="native"}': "0x60"},
        {'lockstep_unstamped_pods{provider="native"}': "0x60", 'lockstep_dropped_stamps{provider="native"}': "0x60"},
        {"provider": "native"},
        "20m",
        "3 pods of native are without their group",
    ),
    "LockstepReplicasWaiting": Case(
        {'lockstep_waiting_replicas{provider="volcano"}': "2x120"},
        {'lockstep_waiting_replicas{provider="volcano"}': "0x120"},
        {"provider": "volcano"},
        "90m",
        "2 replicas of volcano wait; mostly for room, and rightly",
    ),
    "LockstepCertificateExpires": Case(
        {'lockstep_certificate_not_after_seconds{role="leaf"}': f"{7 * DAY + 7200}x120"},
        {
            "lockstep_certificate_not_after_seconds": f"{30 * DAY}x120",
            # Nothing known yet, and an authority that ends when it should.
            'lockstep_certificate_not_after_seconds{role="leaf"}': "0x120",
            'lockstep_certificate_not_after_seconds{role="current"}': f"{2 * DAY}x120",
        },
        {},
        "120m",
        "The served certificate ends in 7d 0h 0m 0s and was not renewed in time",
    ),
    "LockstepCertificateTrouble": Case(
        {'lockstep_certificate_trouble{kind="refused"}': "1x60"},
        {'lockstep_certificate_trouble{kind="refused"}': "0x60"},
        {"kind": "refused"},
        "20m",
        "Certificates can't be renewed: refused",
    ),
    "LockstepBundleOutOfSync": Case(
        {'lockstep_certificate_bundle_in_sync{pod="a"}': "0x60"},
        # Who does not lead shows nothing of it.
        {
            'lockstep_certificate_bundle_in_sync{pod="a"}': "0x60",
            'lockstep_certificate_bundle_in_sync{pod="b"}': "1x60",
        },
        {},
        "20m",
    ),
    "LockstepPolicyDown": Case({}, {"lockstep_policy_requests_in_flight": "0x60"}, {}, "10m"),
    "LockstepLogLinesDropped": Case(
        {"lockstep_log_lines_dropped": "0+5x60"}, {"lockstep_log_lines_dropped": "5x60"}, {}, "40m"
    ),
}


def test_every_alert_has_its_case() -> None:
    """A rule without one could be silent for ever."""
    assert CASES.keys() == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("rules", [prometheus_rule()["spec"]["groups"]], ids=["rules"])
def test_alerts_fire_and_are_silent(rules: list[Json], tmp_path: Path) -> None:
    """All of them, in one run of promtool."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rules}))
    tests = [
        test for name, case in CASES.items() for test in (_test(name, case, ill=True), _test(name, case, ill=False))
    ]
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    command = [str(tool("promtool", "promtool")), "test", "rules", "tests.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _test(name: str, case: Case, *, ill: bool) -> Json:
    alert = next(alert for alert in ALERTS if alert.name == name)
    series = case.ill if ill else case.well
    fired = {
        "exp_labels": {"severity": alert.severity, **case.labels},
        "exp_annotations": {
            "summary": case.summary or alert.summary,
            "runbook_url": f"{RUNBOOK}#{anchor(alert)}",
        },
    }
    return {
        "name": f"{name} {'fires' if ill else 'is silent'}",
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [{"alertname": name, "eval_time": case.after, "exp_alerts": [fired] if ill else []}],
    }
