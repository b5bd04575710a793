"""Plays fixtures of rules against the API server, as dry runs, and reads what its policies say to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import urllib3

from policies.objects import UPDATE, Subject
from tests.cluster.resources import Resource

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane

_QUOTED: Final = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_POLICY: Final = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']+)' with binding '[^']+': (.*)", re.DOTALL
)
_PLURALS: Final = {"Pod": "pods", "PodGroup": "podgroups", "Workload": "workloads"} | {
    "LeaderWorkerSet": "leaderworkersets"
}


@dataclass(frozen=True)
class Answer:
    """What the API server says to one object.

    Attributes:
        status: HTTP's.
        messages: policy -> what it warns of.
        body: the whole answer.
    """

    status: int
    messages: dict[str, list[str]]
    body: str

    @property
    def accepted(self) -> bool:
        """Whether it would have been stored."""
        return self.status < 300


class Replayer:
    """Sends objects as an administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        """Make a client of its own: warnings stand in headers."""
        ca = str(plane.certificates.ca)
        self._pool = urllib3.PoolManager(ca_certs=ca, retries=False, timeout=20.0)
        self._headers = {"Authorization": f"Bearer {plane.users['admin'].token}", "Content-Type": "application/json"}
        self._server = plane.server

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()

    def play(self, subject: Subject) -> Answer:
        """Create or update an object as a dry run."""
        resource = resource_of(subject.content)
        metadata = subject.content["metadata"]
        where = resource.collection(metadata["namespace"])
        if subject.operation != UPDATE:
            return self._send("POST", f"{where}?dryRun=All", subject.content)
        assert subject.old is not None
        # An object whose owner isn't there would be collected between the two calls.
        stored = self._send("POST", where, _without_owners(subject.old))
        assert stored.accepted, stored.body
        place = resource.item(metadata["name"], metadata["namespace"])
        try:
            return self._send(
                "PATCH",
                f"{place}?dryRun=All",
                _difference(_without_owners(subject.old), _without_owners(subject.content)),
            )
        finally:
            self._send("DELETE", place, {"gracePeriodSeconds": 0})

    def _send(self, method: str, path: str, body: Any) -> Answer:
        kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        answer = self._pool.request(method, self._server + path, json=body, headers=self._headers | kind)
        return Answer(answer.status, _warnings(answer.headers.getlist("Warning")), answer.data.decode())


def resource_of(content: Any) -> Resource:
    """Give the resource of an object of the fixtures."""
    return Resource(content["apiVersion"], _PLURALS[content["kind"]], content["kind"])


def _without_owners(content: Any) -> Any:
    metadata = {key: value for key, value in content["metadata"].items() if key != "ownerReferences"}
    return {**content, "metadata": metadata}


def _difference(old: Any, new: Any) -> Any:
    """Give the merge patch (RFC 7386) from `old` to `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key in old if key not in new}
    return gone | {key: _difference(old.get(key), value) for key, value in new.items() if old.get(key) != value}


def _warnings(headers: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for header in headers:
        for text in _QUOTED.findall(header):
            plain = text.replace('\\"', '"').replace("\\\\", "\\")
            match = _POLICY.fullmatch(plain)
            if match:
                found.setdefault(match[1], []).append(match[2])
    return found
