"""What the real API server's ValidatingAdmissionPolicies say about an object, asked by dry runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3

from tests.cluster.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.resources import Json

POLICIES = Resource(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)

_WARNING = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']*)' with binding '[^']*': (.*)", re.DOTALL
)
_DENIAL = re.compile(r"ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: (.*)", re.DOTALL)
_HEADER = re.compile(r'299 - "((?:\\.|[^"\\])*)"')

Complaint = tuple[str, str]
"""Name of the policy and its message."""


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        reached: whether the request got as far as the policies.
        complaints: of the policies that warn.
        denial: of the policy that refused, if one did.
        why: the API server's own words when it refused before.
    """

    reached: bool
    complaints: frozenset[Complaint] = frozenset()
    denial: Complaint | None = None
    why: str = ""


class Asker:
    """Asks one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        """Take the administrator's token."""
        self._server = plane.server
        self._pool = urllib3.PoolManager(ca_certs=str(plane.certificates.ca), retries=False, timeout=20)
        self._headers = {"Authorization": f"Bearer {plane.users['admin'].token}", "Content-Type": "application/json"}

    def create(self, resource: Resource, content: Mapping[str, Any]) -> Answer:
        """Ask about a creation."""
        path = resource.collection(content["metadata"].get("namespace"))
        return self._asked("POST", path, content)

    def update(self, resource: Resource, content: Mapping[str, Any]) -> Answer:
        """Ask about an update of an object that is there."""
        metadata = content["metadata"]
        path = resource.item(metadata["name"], metadata.get("namespace", ""))
        stored = self._pool.request("GET", f"{self._server}{path}", headers=self._headers).json()
        version = {"resourceVersion": stored.get("metadata", {}).get("resourceVersion", "")}
        return self._asked("PUT", path, {**content, "metadata": {**metadata, **version}})

    def _asked(self, method: str, path: str, content: Mapping[str, Any]) -> Answer:
        body = json.dumps(content).encode()
        url = f"{self._server}{path}?dryRun=All"
        answer = self._pool.request(method, url, body=body, headers=self._headers)
        warnings = [text for value in answer.headers.getlist("Warning") for text in _HEADER.findall(value)]
        told = frozenset((found[1], found[2]) for text in warnings if (found := _WARNING.fullmatch(_unquoted(text))))
        if answer.status < 300:
            return Answer(reached=True, complaints=told)
        message = json.loads(answer.data)["message"]
        found = _DENIAL.search(message)
        return Answer(found is not None, told, (found[1], found[2]) if found else None, message)


def install(plane: ControlPlane, documents: Iterable[Json], actions: list[str]) -> None:
    """Create or replace policies and bindings, the bindings with these actions."""
    for document in documents:
        resource = POLICIES if document["kind"] == POLICIES.kind else BINDINGS
        wanted = (
            document
            if resource is POLICIES
            else {**document, "spec": {**document["spec"], "validationActions": actions}}
        )
        plane.api.apply(resource, wanted)


def type_checked(plane: ControlPlane, name: str) -> list[str]:
    """Give the type checker's warnings about a policy, which the controller manager has looked at."""
    policy = plane.api.get(POLICIES, name)
    status = policy["status"]
    assert status["observedGeneration"] == policy["metadata"]["generation"]
    return [warning["warning"] for warning in status["typeChecking"].get("expressionWarnings", [])]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
