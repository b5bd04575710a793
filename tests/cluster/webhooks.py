"""Webhook configurations by loopback URL: LWS's own, and those under test."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

from tests.cluster.lws import NAME_LABEL
from tests.cluster.resources import MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS, Json, Resource

if TYPE_CHECKING:
    from tests.cluster.client import Client
    from tests.cluster.waiting import Waiter

_SELECTOR = {"matchExpressions": [{"key": NAME_LABEL, "operator": "Exists"}]}


class _Hook(NamedTuple):
    name: str
    path: str
    group: str
    resource: str
    operations: tuple[str, ...]


_LWS = "leaderworkerset.x-k8s.io"
_LWS_PATH = "leaderworkerset-x-k8s-io-v1-leaderworkerset"
_LWS_HOOKS = {
    ("lws-mutating-webhook-configuration", MUTATING_WEBHOOKS): (
        _Hook("mleaderworkerset.kb.io", f"/mutate-{_LWS_PATH}", _LWS, "leaderworkersets", ("CREATE", "UPDATE")),
        _Hook("mpod.kb.io", "/mutate--v1-pod", "", "pods", ("CREATE",)),
    ),
    ("lws-validating-webhook-configuration", VALIDATING_WEBHOOKS): (
        _Hook("vleaderworkerset.kb.io", f"/validate-{_LWS_PATH}", _LWS, "leaderworkersets", ("CREATE", "UPDATE")),
        _Hook("vpod.kb.io", "/validate--v1-pod", "", "pods", ("CREATE", "UPDATE")),
    ),
}


def _webhook(hook: _Hook, url: str, ca_pem: bytes) -> Json:
    rule = {"apiGroups": [hook.group], "apiVersions": ["v1"], "resources": [hook.resource]}
    return {
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": url + hook.path, "caBundle": base64.b64encode(ca_pem).decode()},
        "rules": [rule | {"operations": list(hook.operations)}],
    } | ({"objectSelector": _SELECTOR} if hook.resource == "pods" else {})


class Webhooks:
    """The webhook configurations of one control plane."""

    def __init__(self, api: Client, waiter: Waiter) -> None:
        """Act through `api`."""
        self._api = api
        self._waiter = waiter

    def register_lws(self, url: str, ca_pem: bytes) -> None:
        """LWS's four webhooks under the names of its default install."""
        for (name, resource), hooks in _LWS_HOOKS.items():
            self._api.apply(resource, resource.make(name, webhooks=[_webhook(hook, url, ca_pem) for hook in hooks]))

    def register_mutating(  # noqa: PLR0913 - the words of a webhook configuration
        self,
        name: str,
        url: str,
        ca_pem: bytes,
        *,
        path: str = "/mutate",
        reinvocation: str = "IfNeeded",
        failure_policy: str = "Ignore",
        timeout: int = 2,
        namespace_selector: Json | None = None,
        called: bool = True,
    ) -> None:
        """Register (or change) a mutating webhook for the creation of LWS pods.

        Args:
            name: of the configuration; the API server calls configurations in the order of their names.
            url: `https://127.0.0.1:PORT`.
            ca_pem: whom the API server trusts there.
            path: behind the URL.
            reinvocation: `IfNeeded` or `Never`.
            failure_policy: `Ignore` or `Fail`.
            timeout: seconds.
            namespace_selector: which namespaces.
            called: wait until the API server calls it (it takes a moment to notice a configuration).
        """
        hook = _Hook(f"{name}.lockstep.dev", path, "", "pods", ("CREATE",))
        webhook = _webhook(hook, url, ca_pem) | {
            "failurePolicy": failure_policy,
            "reinvocationPolicy": reinvocation,
            "timeoutSeconds": timeout,
        }
        if namespace_selector is not None:
            webhook["namespaceSelector"] = namespace_selector
        before = self.calls(hook.name)
        self._api.apply(MUTATING_WEBHOOKS, MUTATING_WEBHOOKS.make(name, webhooks=[webhook]))
        if called:
            self._waiter.wait(f"API server calls webhook {name}", lambda: self._probe(hook.name) > before)

    def unregister_mutating(self, name: str) -> None:
        """Remove a configuration."""
        self._api.delete(MUTATING_WEBHOOKS, name)

    def calls(self, webhook: str) -> int:
        """How often the API server has called a webhook, by its own metrics, failures included."""
        _, text = self._api.text("GET", "/metrics")
        wanted = f'name="{webhook}"'
        metric = "apiserver_admission_webhook_admission_duration_seconds_count{"
        lines = (line for line in text.splitlines() if line.startswith(metric) and wanted in line)
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)

    def _probe(self, webhook: str) -> int:
        # A dry run reaches the webhooks (they declare no side effects) and stores nothing. The answer does not matter.
        pod: Json = PODS.make("probe", metadata={"labels": {NAME_LABEL: "probe"}})
        pod["spec"] = {"containers": [{"name": "probe", "image": "registry.example/probe:1"}]}
        self._api.text("POST", f"{PODS.collection('default')}?dryRun=All", pod)
        return self.calls(webhook)


def names(api: Client, resource: Resource) -> list[str]:
    """Names of the configurations of one kind, in the order in which the API server calls them."""
    return sorted(item["metadata"]["name"] for item in api.items(resource))
