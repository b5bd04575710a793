"""The policy service beside a real API server: it answers admissions, looks at the cluster, and changes nothing."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from policies.rights import cluster_role
from tests.cluster.client import ApiError
from tests.cluster.resources import NATIVE_GROUPS, PODS, VALIDATING_WEBHOOKS, Json
from tests.policies.service.processes import running_service
from tests.webhook.serving import make_pair, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane
    from tests.webhook.serving import Served

READER = "lockstep-reader"
LABEL = "lockstep.dev/group"
CONFIGURATION = "lockstep-policy"
RULE = "podgroup-labelled-with-its-name"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for loopback."""
    path = tmp_path_factory.mktemp("pair")
    write_pair(path, *make_pair())
    return path


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane, folder: Path) -> Iterator[Served]:
    """The service as a user with just the rendered rights, ready."""
    rules = cluster_role()["rules"]
    assert isinstance(rules, list)
    control_plane.access.grant("reader", rules)
    kubeconfig = str(control_plane.kubeconfig("reader"))
    with running_service(folder, "--kubeconfig", kubeconfig, "--refresh-seconds", "0.5") as served:
        control_plane.wait("the service is ready", lambda: served.ask("GET", "/readyz").status == 200)
        yield served


@pytest.fixture
def plane(control_plane: ControlPlane) -> ControlPlane:
    """An empty control plane."""
    control_plane.reset()
    return control_plane


def _webhook(service: Served, folder: Path, path: str) -> Json:
    ca = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    rule = {
        "apiGroups": ["scheduling.k8s.io"],
        "apiVersions": ["*"],
        "resources": ["podgroups"],
        "operations": ["CREATE", "UPDATE"],
    }
    hook = {
        "name": f"{CONFIGURATION}.lockstep.dev",
        "clientConfig": {"url": f"https://127.0.0.1:{service.port}{path}", "caBundle": ca},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    return VALIDATING_WEBHOOKS.make(CONFIGURATION, webhooks=[hook])


def _group(name: str, label: str) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return NATIVE_GROUPS.make(name, metadata={"labels": {LABEL: label}}, spec=spec)


def _refusal(plane: ControlPlane, content: Json) -> str:
    try:
        plane.api.create(NATIVE_GROUPS, content, query="dryRun=All")
    except ApiError as error:
        return error.message
    return ""


def test_the_api_server_refuses_what_the_service_refuses(plane: ControlPlane, service: Served, folder: Path) -> None:
    """With the rule and its sentence; what keeps the rules goes through."""
    plane.api.apply(VALIDATING_WEBHOOKS, _webhook(service, folder, "/validate"))
    try:
        message = plane.wait("the webhook is called", lambda: _refusal(plane, _group("g", "other")))
        assert f'"{CONFIGURATION}.lockstep.dev" denied the request: {RULE}: ' in message
        assert f"metadata.labels[{LABEL}]: must " in message
        assert 'got "other"' in message
        assert _refusal(plane, _group("g", "g")) == ""
    finally:
        plane.api.delete(VALIDATING_WEBHOOKS, CONFIGURATION)


def _errors(service: Served, content: Json) -> list[str]:
    body = json.dumps(content).encode()
    answer = service.ask("POST", "/v1/review?cluster=true", body, content_type="application/json")
    assert answer.status == 200
    findings = json.loads(answer.body)["findings"]
    return [finding["rule"] for finding in findings if finding["severity"] == "error"]


def test_a_review_sees_the_cluster(plane: ControlPlane, service: Served) -> None:
    """A pod whose group is not there breaks a rule, until the group is."""
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "late"}}
    pod = PODS.make("p", spec=spec)
    plane.wait("the empty cluster is seen", lambda: "pods-group-exists" in _errors(service, pod))
    plane.api.create(NATIVE_GROUPS, _group("late", "late"))
    plane.wait("the group is seen", lambda: "pods-group-exists" not in _errors(service, pod))


def test_the_service_only_looks(plane: ControlPlane, service: Served) -> None:
    """By the audit log: nothing but get and list, all of it granted."""
    since = plane.audit.offset()
    _errors(service, _group("g", "g"))
    looks = {"get", "list", "watch"}
    plane.wait("it looks", lambda: plane.audit.events(user=READER, verbs=looks, since=since))
    everything = looks | {"create", "update", "patch", "delete", "deletecollection"}
    events = plane.audit.events(user=READER, verbs=everything)
    assert {event["verb"] for event in events} <= looks
    assert {event["responseStatus"]["code"] for event in events} <= {200, 404}
