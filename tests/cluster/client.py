"""A small HTTP client for the API server, on urllib3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import urllib3

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.cluster.resources import Json, Resource

_SECONDS = 20.0
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
_MANAGER = "tests"


class ApiError(Exception):
    """The API server refused: HTTP status, the reason word of its Status object, its message."""

    def __init__(self, call: str, status: int, reason: str, message: str) -> None:
        """Keep the parts for assertions."""
        super().__init__(f"{call}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class UnreachableError(Exception):
    """No answer from the API server."""


class Client:
    """The API server as one user sees it. Usable from several threads."""

    def __init__(self, server: str, token: str, ca: Path) -> None:
        """Make a client; nothing is sent yet."""
        self._server = server
        self._pool = urllib3.PoolManager(ca_certs=str(ca), retries=False, timeout=_SECONDS, maxsize=4)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()

    def text(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, str]:
        """One request: status and body as they came.

        Raises:
            UnreachableError: no answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | {"Content-Type": content_type}
        try:
            answer = self._pool.request(method, self._server + path, body=data, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"{method} {path}: {error}") from error
        return answer.status, answer.data.decode()

    def request(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Json:
        """One request that must succeed; path with query.

        Raises:
            ApiError: the API server refused.
            UnreachableError: no answer.
        """
        status, text = self.text(method, path, body, content_type)
        try:
            answer: Json = json.loads(text)
        except ValueError:
            answer = {"message": text}
        if status >= 400:
            raise ApiError(f"{method} {path}", status, answer.get("reason", ""), answer.get("message", ""))
        return answer

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Json:
        """Get one object."""
        return self.request("GET", resource.item(name, namespace))

    def find(self, resource: Resource, name: str, namespace: str = "default") -> Json | None:
        """One object, or None when there is none of that name."""
        try:
            return self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, resource: Resource, namespace: str | None = None, selector: str = "") -> list[Json]:
        """Objects of one namespace (or of all) that match a label selector."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        found: list[Json] = self.request("GET", resource.collection(namespace) + query)["items"]
        return found

    def create(self, resource: Resource, body: Mapping[str, Any], namespace: str = "default", query: str = "") -> Json:
        """Create an object; `query` is for example `dryRun=All`."""
        where = body.get("metadata", {}).get("namespace", namespace)
        return self.request("POST", f"{resource.collection(where)}{'?' if query else ''}{query}", body)

    def apply(self, resource: Resource, body: Mapping[str, Any]) -> Json:
        """Create or change by server-side apply, taking over fields of others."""
        metadata = body["metadata"]
        path = resource.item(metadata["name"], metadata.get("namespace", "default"))
        return self.request("PATCH", f"{path}?fieldManager={_MANAGER}&force=true", body, _APPLY_PATCH)

    def merge(
        self, resource: Resource, name: str, body: Json, namespace: str = "default", subresource: str = ""
    ) -> Json:
        """Merge patch."""
        return self.request("PATCH", resource.item(name, namespace, subresource), body, _MERGE_PATCH)

    def patch(self, resource: Resource, name: str, operations: list[Json], namespace: str = "default") -> Json:
        """JSON patch (RFC 6902)."""
        return self.request("PATCH", resource.item(name, namespace), operations, _JSON_PATCH)

    def replace(self, resource: Resource, body: Mapping[str, Any]) -> Json:
        """PUT of a whole object."""
        metadata = body["metadata"]
        return self.request("PUT", resource.item(metadata["name"], metadata.get("namespace", "default")), body)

    def delete(  # noqa: PLR0913 - the words of DeleteOptions
        self,
        resource: Resource,
        name: str,
        namespace: str = "default",
        *,
        grace: int | None = None,
        propagation: str | None = None,
        uid: str | None = None,
    ) -> Json:
        """Delete one object.

        Args:
            resource: what it is.
            name: its name.
            namespace: where it is.
            grace: `gracePeriodSeconds`; None leaves the object's own.
            propagation: `Foreground`, `Background` or `Orphan`; None leaves the kind's own.
            uid: a precondition: refused with 409 when the object has another one.
        """
        options = {"gracePeriodSeconds": grace, "propagationPolicy": propagation}
        body: Json = {key: value for key, value in options.items() if value is not None}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        return self.request("DELETE", resource.item(name, namespace), body)

    def delete_all(self, resource: Resource, namespace: str = "default", *, grace: int | None = None) -> Json:
        """Delete a whole collection."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        return self.request("DELETE", resource.collection(namespace), body)
