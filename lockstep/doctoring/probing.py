"""Tries the webhook out: an LWS pod as a dry run, and a handshake with what is registered."""

import base64
import binascii
import socket
import ssl
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gangs import keys
from lockstep.doctoring.places import MUTATING, VALIDATING, Json, Place
from reconciler.contract import Api, ApiError

NAME: Final = "lockstep-doctor"
SECONDS: Final = 5.0
NOT_ALLOWED: Final = "cannot create resource"
"""What RBAC says, unlike admission, which refuses with 403 too."""


class Probe(msgspec.Struct, frozen=True):
    """What became of one LWS pod.

    Attributes:
        scheduler: its `spec.schedulerName`.
        provider: whose scheduler that is.
        pod: the pod as it would have been stored, `None` when it was refused.
        refused: why it was refused.
    """

    scheduler: str
    provider: str
    pod: Json | None = None
    refused: str = ""

    @property
    def group(self) -> str:
        """The group that it was given, empty for none."""
        return str(((self.pod or {}).get("metadata", {}).get("labels") or {}).get(keys.LOCKSTEP_GROUP, ""))


class Handshake(msgspec.Struct, frozen=True):
    """What one webhook entry's server shows.

    Attributes:
        place: the configuration.
        entry: the entry's name.
        bundle: its authorities, PEM.
        names: the DNS name or address that the API server asks for.
        distrust: why it would not trust what is served, empty when it would.
        silence: why there was no connection, empty when there was one.
        tried: whether that can be tried from here.
    """

    place: Place
    entry: str
    bundle: bytes
    name: str
    distrust: str = ""
    silence: str = ""
    tried: bool = False


def leader_pod(namespace: str, scheduler: str) -> Json:
    """Write a leader pod as the StatefulSet of an LWS does, which any Pod Security level takes."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod_security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": str(uuid.uuid4()), "controller": True}
    labels = {keys.LWS_NAME: NAME, keys.WORKER_INDEX: "0", keys.REVISION: "doctor"}
    container = {"name": "probe", "image": "lockstep.invalid/probe:1", "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{NAME}-0",
            "namespace": namespace,
            "labels": labels,
            "annotations": {keys.SIZE: "2"},
            "ownerReferences": [owner],
        },
        "spec": {"schedulerName": scheduler, "containers": [container], "securityContext": pod_security},
    }


def probe(api: Api, namespace: str, scheduler: str, provider: str, unseen: list[str]) -> Probe | None:
    """Send one pod through admission as a dry run; `None` where this user may not, which is added to `unseen`."""
    body = msgspec.json.encode(leader_pod(namespace, scheduler))
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        answer = api.request("POST", path, {"dryRun": "All"}, body=body, timeout=30.0)
    except ApiError as error:
        if NOT_ALLOWED in error.message:
            unseen.append(f'dry runs of pods in namespace "{namespace}"')
            return None
        return Probe(scheduler, provider, refused=error.message)
    return Probe(scheduler, provider, pod=msgspec.json.decode(answer.body))


def handshakes(live: Mapping[Place, Json | None], *, inside: bool) -> list[Handshake]:
    """Connect to every entry of our configurations as the API server does, where that is possible from here.

    Args:
        live: our objects.
        inside: whether this is a pod of the cluster, where the name of a Service means that Service.
    """
    return [
        _shake_hands(place, entry, inside=inside)
        for place, content in live.items()
        if place.kind in (MUTATING, VALIDATING) and content is not None
        for entry in content.get("webhooks") or ()
    ]


def _shake_hands(place: Place, entry: Json, *, inside: bool) -> Handshake:
    client = entry.get("clientConfig") or {}
    host, port = _address(client)
    try:
        bundle = base64.b64decode(client.get("caBundle") or "", validate=True)
    except binascii.Error:
        bundle = b""
    known = Handshake(place, str(entry["name"]), bundle, host)
    if not bundle or not (inside or "url" in client):
        return known
    return _tried(known, host, port)


def _tried(known: Handshake, host: str, port: int) -> Handshake:
    try:
        context = ssl.create_default_context(cadata=known.bundle.decode("ascii"))
        with socket.create_connection((host, port), timeout=SECONDS) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except (ssl.SSLError, ValueError) as error:
        return msgspec.structs.replace(known, distrust=_text(error), tried=True)
    except OSError as error:
        return msgspec.structs.replace(known, silence=_text(error), tried=True)
    return msgspec.structs.replace(known, tried=True)


def _address(client: Mapping[str, Any]) -> tuple[str, int]:
    if "url" in client:
        parts = urlsplit(client["url"])
        return str(parts.hostname), parts.port or 443
    service = client["service"]
    return f"{service['name']}.{service['namespace']}.svc", int(service.get("port", 443))


def _text(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".").lower()
    return str(getattr(error, "strerror", None) or error).lower()
