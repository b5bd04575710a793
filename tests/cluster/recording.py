"""Every version of every object of some kinds, in the order in which the API server stored them."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.resources import Json, Resource

ADDED = "ADDED"
DELETED = "DELETED"


@dataclass(frozen=True)
class Version:
    """One version of an object; of a deleted one the last.

    Attributes:
        moment: when it was seen, by the monotonic clock.
        change: `ADDED`, `MODIFIED` or `DELETED`.
        body: the object.
    """

    moment: float
    change: str
    body: Json

    @property
    def number(self) -> int:
        """Its resource version: one count for all kinds of a cluster."""
        return int(self.body["metadata"]["resourceVersion"])

    @property
    def name(self) -> str:
        """Its object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Its object's UID."""
        return str(self.body["metadata"]["uid"])

    @property
    def owner(self) -> str:
        """UID of the object's controller, empty for none."""
        owners = self.body["metadata"].get("ownerReferences", ())
        return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


class Recording:
    """Watches kinds until its end. Objects that are there at the start count as added then."""

    def __init__(self, plane: ControlPlane, *resources: Resource) -> None:
        """Prepare to watch `resources` in all namespaces."""
        self._plane, self._resources = plane, resources
        self._versions: dict[Resource, list[Version]] = {resource: [] for resource in resources}
        self._connections: list[http.client.HTTPSConnection] = []
        self._threads: list[threading.Thread] = []
        self._lost: list[str] = []
        self._over = False

    def __enter__(self) -> Self:
        """List and watch."""
        for resource in self._resources:
            answer = self._plane.api.request("GET", resource.collection())
            self._versions[resource] += [Version(time.monotonic(), ADDED, body) for body in answer["items"]]
            arguments = (resource, answer["metadata"]["resourceVersion"])
            self._threads.append(threading.Thread(target=self._watch, args=arguments, daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the watches."""
        self._over = True
        for connection in self._connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def of(self, resource: Resource) -> list[Version]:
        """All versions so far of one kind; fails when a watch was lost, as its recording has a hole then."""
        assert not self._lost, self._lost
        return list(self._versions[resource])

    def by_object(self, resource: Resource) -> dict[str, list[Version]]:
        """The same by the object's UID."""
        found: dict[str, list[Version]] = defaultdict(list)
        for version in self.of(resource):
            found[version.uid].append(version)
        return dict(found)

    def caught_up(self) -> bool:
        """Has everything been seen that the API server has now?"""
        return all(self._live(resource) == self._listed(resource) for resource in self._resources)

    def _live(self, resource: Resource) -> dict[str, int]:
        last = {uid: versions[-1] for uid, versions in self.by_object(resource).items()}
        return {uid: version.number for uid, version in last.items() if version.change != DELETED}

    def _listed(self, resource: Resource) -> dict[str, int]:
        metadata = [body["metadata"] for body in self._plane.api.items(resource)]
        return {of["uid"]: int(of["resourceVersion"]) for of in metadata}

    def _watch(self, resource: Resource, since: str) -> None:
        server = urlsplit(self._plane.server)
        trust = ssl.create_default_context(cafile=str(self._plane.certificates.ca))
        connection = http.client.HTTPSConnection(server.hostname or "", server.port, context=trust)
        self._connections.append(connection)
        path = f"{resource.collection()}?watch=1&resourceVersion={since}&timeoutSeconds=600"
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._plane.users['admin'].token}"})
            for line in connection.getresponse():
                event = json.loads(line)
                self._versions[resource].append(Version(time.monotonic(), event["type"], event["object"]))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._end(resource, str(error))
        else:
            self._end(resource, "it ended")
        finally:
            connection.close()

    def _end(self, resource: Resource, reason: str) -> None:
        if not self._over:
            self._lost.append(f"watch of {resource.plural}: {reason}")
