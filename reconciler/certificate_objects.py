"""The four objects that carry certificates, as they are read from an API server, and patches for them."""

import base64
import datetime as dt
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import msgspec

from certs.sight import Sight, Step
from certs.store import OF_AUTHORITIES, OF_LEAF, Change, Data, read_stored
from reconciler.contract import Api, CallFailed, NotFound, object_path
from schedulers.contract import GroupKind

SECRETS: Final = GroupKind("", "v1", "Secret", "secrets")
MUTATING: Final = GroupKind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
)
VALIDATING: Final = GroupKind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
)

MARK: Final = "lockstep.dev/certificates"
"""Annotation on a Secret that we wrote: time, step and reason of the last write."""

REVOKED: Final = "lockstep.dev/revoked"
"""Annotation on the authorities' Secret: serial numbers in hex, with commas or blanks between."""

CERT_MANAGER: Final = "cert-manager.io/certificate-name"
INJECTED: Final = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
LONGEST_SERIAL: Final = 40

T = TypeVar("T")


class Names(msgspec.Struct, frozen=True):
    """Where the certificates are and what they are for.

    Attributes:
        namespace: of both Secrets.
        leaf: Secret that the servers mount.
        authorities: Secret with the authorities' keys.
        mutating: name of the MutatingWebhookConfiguration.
        validating: name of the ValidatingWebhookConfiguration.
        hosts: DNS names and addresses that the leaf is good for.
    """

    namespace: str = "lockstep-system"
    leaf: str = "lockstep-tls"
    authorities: str = "lockstep-ca"
    mutating: str = "lockstep-mutating"
    validating: str = "lockstep-policies"
    hosts: tuple[str, ...] = ()

    @property
    def configurations(self) -> tuple[tuple[GroupKind, str], ...]:
        """Kind and name of each webhook configuration."""
        return (MUTATING, self.mutating), (VALIDATING, self.validating)


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of metadata that count here."""

    resource_version: str = ""
    uid: str = ""
    annotations: Mapping[str, str] | None = None

    def word(self, annotation: str) -> str:
        """Give an annotation, empty where it isn't there."""
        return (self.annotations or {}).get(annotation, "")


class Secret(msgspec.Struct, frozen=True):
    """A Secret."""

    metadata: Meta = Meta()
    data: dict[str, bytes] | None = None

    @property
    def content(self) -> Data:
        """Its data, decoded."""
        return self.data or {}


class ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Whom an entry calls, and whom the API server believes there."""

    ca_bundle: bytes | None = None


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One webhook of a configuration."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()

    @property
    def bundle(self) -> bytes:
        """The bundle, empty where there is none."""
        return self.client_config.ca_bundle or b""


class Webhooks(msgspec.Struct, frozen=True):
    """A webhook configuration of either kind."""

    metadata: Meta = Meta()
    webhooks: tuple[Entry, ...] | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its entries."""
        return self.webhooks or ()


class Trouble(msgspec.Struct, frozen=True):
    """Something that somebody has to mend.

    Attributes:
        kind: one word for metrics.
        text: what must be, and what was found.
        blocks: whether nothing is written as long as it lasts.
    """

    kind: str
    text: str
    blocks: bool = True


class Cluster(msgspec.Struct, frozen=True):
    """What there is at one moment; `None` for an object that is not there.

    Attributes:
        leaf: the Secret that servers mount.
        authorities: the Secret with the authorities' keys.
        configurations: by kind and name.
        date: the API server's own time, where it told.
    """

    leaf: Secret | None
    authorities: Secret | None
    configurations: Mapping[tuple[GroupKind, str], Webhooks | None]
    date: dt.datetime | None = None

    def sight(self, hosts: tuple[str, ...]) -> Sight:
        """Give what renewal decides from; objects that are not there count as empty."""
        leaf, authorities = self.leaf or Secret(), self.authorities or Secret()
        present = [found for found in self.configurations.values() if found is not None]
        return Sight(
            stored=read_stored(authorities.content, leaf.content),
            published=tuple(entry.bundle for found in present for entry in found.entries),
            hosts=hosts,
            revoked=revoked_serials(authorities.metadata.word(REVOKED)),
        )


def read_cluster(api: Api, names: Names) -> Cluster:
    """Get the four objects.

    Raises:
        CallFailed: the API server did not answer, or refused.
    """
    leaf, date = _get(api, object_path(SECRETS, names.namespace, names.leaf), Secret)
    authorities, _ = _get(api, object_path(SECRETS, names.namespace, names.authorities), Secret)
    configurations = {
        (kind, name): _get(api, object_path(kind, name=name), Webhooks)[0] for kind, name in names.configurations
    }
    return Cluster(leaf, authorities, configurations, date)


def find_troubles(cluster: Cluster, names: Names, now: dt.datetime, most_skew: dt.timedelta) -> list[Trouble]:
    """Find what keeps us from writing, or from being of use.

    Args:
        cluster: what there is.
        names: which objects.
        now: the wall clock here.
        most_skew: by how much the API server's may differ: certificates made by a wrong clock are of no use to it.
    """
    secrets = ((names.leaf, cluster.leaf, OF_LEAF), (names.authorities, cluster.authorities, OF_AUTHORITIES))
    found = [trouble for name, secret, ours in secrets if (trouble := _of_secret(names.namespace, name, secret, ours))]
    for (kind, name), configuration in cluster.configurations.items():
        where = f"{kind.plural} {name}"
        if configuration is None and kind is MUTATING:
            found.append(Trouble("missing-configuration", f"{where}: must exist, got none", blocks=False))
        elif configuration is not None and any(configuration.metadata.word(word) for word in INJECTED):
            rule = "must not have cert-manager's annotation too, or lockstep run with --certificates off"
            found.append(Trouble("foreign-configuration", f"{where}: {rule}"))
    if cluster.date is not None and abs(cluster.date - now) > most_skew:
        rule = f"must be within {most_skew.total_seconds():.0f} s of the API server's {cluster.date:%Y-%m-%dT%H:%M:%SZ}"
        found.append(Trouble("clock-skew", f"clock: {rule}, got {now:%Y-%m-%dT%H:%M:%SZ}"))
    return found


def _of_secret(namespace: str, name: str, secret: Secret | None, ours: Iterable[str]) -> Trouble | None:
    where = f"secret {namespace}/{name}"
    if secret is None:
        return Trouble("missing-secret", f"{where}: must exist, got none: apply the manifests again")
    reason = _foreign(secret, ours)
    return Trouble("foreign-secret", f"{where}: must be empty or written by lockstep, got {reason}") if reason else None


def revoked_serials(text: str) -> frozenset[int]:
    """Read the annotation; words that are no serial number count as not there."""
    words = [word.removeprefix("0x") for word in text.lower().replace(",", " ").replace(":", "").split()]
    return frozenset(int(word, 16) for word in words if len(word) <= LONGEST_SERIAL and _is_hex(word))


def secret_patch(secret: Secret, change: Change, mark: str) -> dict[str, object]:
    """Build a merge patch that sets or removes keys and says so, on top of the version that was seen."""
    data = {key: None if value is None else base64.b64encode(value).decode() for key, value in change.items()}
    metadata = {"resourceVersion": secret.metadata.resource_version, "annotations": {MARK: mark}}
    return {"metadata": metadata, "data": data}


def bundle_patch(found: Webhooks, bundle: bytes) -> list[dict[str, object]]:
    """Build a JSON patch that gives every entry the bundle, on top of the version seen; empty where all have it."""
    text = base64.b64encode(bundle).decode()
    changes: list[dict[str, object]] = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": text}
        for index, entry in enumerate(found.entries)
        if entry.bundle != bundle
    ]
    version: dict[str, object] = {
        "op": "replace",
        "path": "/metadata/resourceVersion",
        "value": found.metadata.resource_version,
    }
    return [version, *changes] if changes else []


def mark_of(step: Step, now: dt.datetime) -> str:
    """Say in one line what a step did, when and why."""
    return f"{now:%Y-%m-%dT%H:%M:%SZ} {step.kind}: {step.reason}"


def _get(api: Api, path: str, kind: type[T]) -> tuple[T | None, dt.datetime | None]:
    try:
        answer = api.request("GET", path)
    except NotFound:
        return None, None
    try:
        return msgspec.json.decode(answer.body, type=kind), _date(answer.headers.get("date", ""))
    except msgspec.MsgspecError as error:
        raise CallFailed(f"{path}: must be readable, got {error}") from error


def _date(text: str) -> dt.datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None


def _foreign(secret: Secret, ours: Iterable[str]) -> str:
    """Say whose a Secret is if not ours; nothing that we did not write is ever overwritten."""
    if secret.metadata.word(CERT_MANAGER):
        return "one that cert-manager keeps"
    filled = [key for key in ours if secret.content.get(key, b"").strip()]
    return f'"{filled[0]}" of someone else' if filled and not secret.metadata.word(MARK) else ""


def _is_hex(word: str) -> bool:
    return bool(word) and all(letter in "0123456789abcdef" for letter in word)
