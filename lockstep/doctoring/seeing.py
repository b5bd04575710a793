"""What the doctor looks at, read once. Nothing is stored in the cluster: pods are created as dry runs only."""

import base64
import binascii
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.doctoring.places import CONFIGURATION, CONFIGURATION_KEY, LEASE, SECRET, WEBHOOK, Json, Place, place_of
from lockstep.doctoring.probing import Handshake, Probe, handshakes, probe
from policies.exceptions import Exceptions
from reconciler.api import own_namespace
from reconciler.cache import Cache
from reconciler.contract import Api, Forbidden, NotFound
from reconciler.discovery import serves
from reconciler.overview import Entry, replica_entries
from reconciler.snapshot import Snapshot, take_snapshot
from schedulers.checking import check_document
from schedulers.configuration import Configuration, Misconfigured, configuration_of, default_configuration
from schedulers.contract import Provider
from schedulers.registry import all_providers

ADMISSION: Final = "admissionregistration.k8s.io/v1"
RBAC: Final = "rbac.authorization.k8s.io/v1"
EXTENSIONS: Final = "apiextensions.k8s.io/v1"
LWS_KIND: Final = "leaderworkersets.leaderworkerset.x-k8s.io"
LWS_DEPLOYMENT: Final = "lws-controller-manager"
LWS_CONFIGURATION: Final = "lws-manager-config"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment.

    Attributes:
        now: when.
        ours: version of this command.
        cluster: version of the API server.
        namespace: where Lockstep is installed.
        shipped: every object as it was shipped.
        live: the same objects as they are; `None` where there is none.
        unseen: what this user may not look at.
        mutating: every mutating webhook configuration.
        bindings: every ClusterRoleBinding and RoleBinding.
        pods: pods in Lockstep's namespace.
        endpoints: ready addresses of the webhook's Service.
        lease: the Lease of the writer.
        lws_deployments: the Deployments of LWS.
        lws_configurations: text of LWS's configurations.
        lws_served: whether the API server knows LeaderWorkerSets.
        configuration: what is configured, or the default where that can't be read.
        misconfigured: why it can't be read, empty when it can.
        served: names of the providers whose kind of group the cluster serves.
        probes: what became of an LWS pod, by scheduler.
        handshakes: what the webhooks serve, by entry.
        snapshot: replicas and groups.
        entries: every replica with its state.
        exceptions: the file of exceptions that was given.
    """

    now: dt.datetime
    ours: str
    cluster: str
    namespace: str
    shipped: Sequence[Json]
    live: Mapping[Place, Json | None]
    unseen: Sequence[str] = ()
    mutating: Sequence[Json] = ()
    bindings: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    endpoints: int = 0
    lease: Json | None = None
    lws_deployments: Sequence[Json] = ()
    lws_configurations: Sequence[str] = ()
    lws_served: bool = True
    configuration: Configuration
    misconfigured: str = ""
    served: frozenset[str] = frozenset()
    probes: Sequence[Probe] = ()
    handshakes: Sequence[Handshake] = ()
    snapshot: Snapshot
    entries: Sequence[Entry] = ()
    exceptions: Exceptions

    def get(self, kind: str, name: str, *, cluster: bool = False) -> Json | None:
        """Find one of our objects as it is."""
        return self.live.get(Place(kind, "" if cluster else self.namespace, name))


class Reader:
    """Reads objects as they are."""

    def __init__(self, api: Api) -> None:
        """Read through `api`."""
        self._api = api
        self.unseen: list[str] = []

    def get(self, content: Json) -> Json | None:
        """Read the live object of a manifest's."""
        place = place_of(content)
        path = f"{_collection(content['apiVersion'], place.kind, place.namespace)}/{place.name}"
        try:
            return self._json(path)
        except NotFound:
            return None
        except Forbidden:
            if place.kind != SECRET:
                raise
            self.unseen.append(str(place))
            return None

    def items(self, api_version: str, kind: str, namespace: str = "", **query: str) -> list[Json]:
        """List objects; none where the kind is not served."""
        try:
            found: list[Json] = self._json(_collection(api_version, kind, namespace), query)["items"]
        except NotFound:
            return []
        return found

    def version(self) -> str:
        """Read the API server's version."""
        return str(self._json("/version")["gitVersion"])

    def _json(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(self._api.request("GET", path, query or {}).body)
        return content


def look(  # noqa: PLR0913 - what the command's options say
    api: Api,
    shipped: Sequence[Json],
    *,
    ours: str,
    now: dt.datetime,
    exceptions: Exceptions,
    probe_namespace: str,
) -> Seen:
    """Read everything once.

    Raises:
        CallFailed: the server did not answer, or refused what can't be done without.
        ValueError: no pod of the probe namespace is stamped.
    """
    reader = Reader(api)
    namespace = next((content["metadata"]["name"] for content in shipped if content["kind"] == "Namespace"), "")
    if probe_namespace in (namespace, "kube-system"):
        raise ValueError(f'--probe-namespace: must be one whose pods are stamped, got "{probe_namespace}"')
    live = {place_of(content): reader.get(content) for content in shipped}
    configuration, misconfigured = _configuration(live.get(Place("ConfigMap", namespace, CONFIGURATION)))
    providers = all_providers()
    served = frozenset(name for name, provider in providers.items() if _is_served(api, provider))
    lws_served = bool(reader.items(EXTENSIONS, "CustomResourceDefinition", fieldSelector=f"metadata.name={LWS_KIND}"))
    snapshot = take_snapshot(api, providers.values()) if lws_served else Snapshot(Cache(), frozenset(), None, {})
    return Seen(
        now=now,
        ours=ours,
        cluster=reader.version(),
        namespace=namespace,
        shipped=shipped,
        live=live,
        mutating=reader.items(ADMISSION, "MutatingWebhookConfiguration"),
        bindings=[*reader.items(RBAC, "ClusterRoleBinding"), *reader.items(RBAC, "RoleBinding")],
        pods=reader.items("v1", "Pod", namespace),
        endpoints=_ready_addresses(reader, namespace),
        lease=reader.get(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"namespace": namespace, "name": LEASE},
            }
        ),
        lws_deployments=reader.items("apps/v1", "Deployment", fieldSelector=f"metadata.name={LWS_DEPLOYMENT}"),
        lws_configurations=_texts(reader.items("v1", "ConfigMap", fieldSelector=f"metadata.name={LWS_CONFIGURATION}")),
        lws_served=lws_served,
        configuration=configuration,
        misconfigured=misconfigured,
        served=served,
        probes=list(_probes(api, configuration, served, probe_namespace, reader.unseen)),
        handshakes=handshakes(live, inside=own_namespace() is not None),
        snapshot=snapshot,
        entries=replica_entries(snapshot, configuration),
        exceptions=exceptions,
        unseen=tuple(reader.unseen),
    )


def secret_data(secret: Json | None, key: str) -> bytes:
    """Read one key of a Secret; empty where there is none, or none that can be read."""
    try:
        return base64.b64decode(((secret or {}).get("data") or {}).get(key, ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _collection(api_version: str, kind: str, namespace: str) -> str:
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{inside}/{plural_of(kind)}"


def plural_of(kind: str) -> str:
    """Name the resource of a kind, as every kind that an installation consists of has it."""
    lower = kind.lower()
    if lower.endswith("y"):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith("s") else f"{lower}s"


def _configuration(config_map: Json | None) -> tuple[Configuration, str]:
    if config_map is None:
        return default_configuration(), ""
    text = str((config_map.get("data") or {}).get(CONFIGURATION_KEY, ""))
    try:
        return configuration_of(check_document(CONFIGURATION_KEY, text)), ""
    except Misconfigured as error:
        return default_configuration(), " ".join(str(error).split())


def _probes(
    api: Api, configuration: Configuration, served: frozenset[str], namespace: str, unseen: list[str]
) -> Iterator[Probe]:
    """Try a pod of each scheduler whose groups are served; of any, where none are."""
    schedulers = sorted(configuration.schedulers.items())
    for scheduler, provider in [pair for pair in schedulers if pair[1] in served] or schedulers[:1]:
        outcome = probe(api, namespace, scheduler, provider, unseen)
        if outcome is None:
            return
        yield outcome


def _is_served(api: Api, provider: Provider) -> bool:
    return any(serves(api, kind) for kind in provider.kinds)


def _ready_addresses(reader: Reader, namespace: str) -> int:
    selector = f"kubernetes.io/service-name={WEBHOOK}"
    slices = reader.items("discovery.k8s.io/v1", "EndpointSlice", namespace, labelSelector=selector)
    points = [point for one in slices for point in one.get("endpoints") or ()]
    return sum(len(point.get("addresses", ())) for point in points if (point.get("conditions") or {}).get("ready"))


def _texts(config_maps: Sequence[Json]) -> list[str]:
    return [text for one in config_maps for text in (one.get("data") or {}).values()]
