"""An installation on a fake API server: two Secrets, two webhook configurations, a clock in hand, writers that die."""

import base64
import copy
import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import jsonpatch

from certs.lives import Lives
from certs.sight import Sight
from reconciler.certificate_meters import CertificateMeters
from reconciler.certificate_objects import Names, read_cluster
from reconciler.certificates import CertificateKeeper
from reconciler.contract import JSON, NO_QUERY, Api, Response, Stream
from reconciler.fence import Fence, FencedApi
from reconciler.pacing import TokenBucket
from reconciler.recorder import Recorder
from reconciler.telemetry import Meters
from tests.certs.model import HOSTS, NOW, drawing
from tests.reconciler.fake_api import Answer, FakeApi, InProcess, Json, Refusal

SECRETS = "/api/v1/secrets"
EVENTS = "/api/v1/events"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAMES = Names(hosts=HOSTS)
MARK = {"lockstep.dev/certificates": "2026-11-30T12:00:00Z LeafRenewed: for a test"}


class PatchingApi(FakeApi):
    """A fake server that knows JSON patches too."""

    def _patch(self, root: str, namespace: str, name: str, change: Any) -> Json:
        if not isinstance(change, list):
            return super()._patch(root, namespace, name, change)
        current = self.objects[root][namespace, name]
        wanted = jsonpatch.apply_patch(copy.deepcopy(current), change)
        if wanted["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        return self.write(root, namespace, wanted, create=False)


class Killed(BaseException):
    """The process was killed with -9: nothing of ours gets to see it."""


class MortalApi:
    """`contract.Api` whose process dies at its nth write: before it is sent, or after it was stored."""

    def __init__(self, api: Api, *, dies_at: int, stored: bool) -> None:
        """Die at write number `dies_at`, counted from 0; `stored` tells whether it still has its effect."""
        self._api, self._left, self._stored = api, dies_at, stored

    def request(  # noqa: PLR0913 - the protocol's
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 1.0,
    ) -> Response:
        """Pass on, or die."""
        dies = method == "PATCH" and self._left == 0
        self._left -= method == "PATCH"
        if dies and not self._stored:
            raise Killed
        answer = self._api.request(method, path, query, body=body, content_type=content_type, timeout=timeout)
        if dies:
            raise Killed
        return answer

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Not needed."""
        raise NotImplementedError(path, query, read_timeout)


class Installation:
    """What the manifests bring, on a fake server.

    Attributes:
        fake: the server.
        now: the time, for every writer.
        meters: of every writer.
    """

    def __init__(self, seed: str = "installation", entries: int = 2, lives: Lives | None = None) -> None:
        """Apply the manifests."""
        self.fake, self.now, self.lives = PatchingApi(), NOW, lives or Lives()
        self.draw = drawing(seed)
        self.meters = Meters()
        self._certificate_meters = CertificateMeters(self.meters.registry)
        for name in (NAMES.leaf, NAMES.authorities):
            self.fake.create(SECRETS, NAMES.namespace, name, type="Opaque")
        for root, name in ((MUTATING, NAMES.mutating), (VALIDATING, NAMES.validating)):
            hooks = [{"name": f"w{number}.lockstep.dev", "clientConfig": {"url": "x"}} for number in range(entries)]
            self.fake.create(root, "", name, webhooks=hooks)

    def keeper(self, api: Api | None = None, *, fence: Fence | None = None) -> CertificateKeeper:
        """Make a writer, which speaks to the server through `api`."""
        fenced = FencedApi(api or InProcess(self.fake), fence or Fence.always(), self.meters)
        recorder = Recorder(fenced, meters=self.meters, bucket=TokenBucket(1000, 1000))
        return CertificateKeeper(
            fenced,
            NAMES,
            recorder,
            self._certificate_meters,
            leads=lambda: True,
            lives=self.lives,
            now=lambda: self.now,
            draw=self.draw,
        )

    def advance(self, **time: float) -> None:
        """Let time pass."""
        self.now += dt.timedelta(**time)

    def live(self, days: int) -> None:
        """Let days pass, with a look every few of them."""
        for _ in range(days // 4):
            self.advance(days=4)
            self.keeper().look()
        self.advance(days=days % 4)

    @property
    def sight(self) -> Sight:
        """What a writer would see."""
        return read_cluster(InProcess(self.fake), NAMES).sight(HOSTS)

    def secret(self, name: str) -> Json:
        """A Secret as it is stored."""
        return self.fake.objects[SECRETS][NAMES.namespace, name]

    def data(self, name: str) -> dict[str, bytes]:
        """A Secret's data, decoded."""
        return {key: base64.b64decode(value) for key, value in self.secret(name).get("data", {}).items()}

    def put(self, name: str, mark: Mapping[str, str] = MARK, **data: bytes) -> None:
        """Write keys of a Secret as somebody else would, with `_` for `.` in their names."""
        old = self.secret(name)
        change = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
        metadata = old["metadata"] | {"annotations": dict(mark)}
        self.fake.write(
            SECRETS, NAMES.namespace, old | {"metadata": metadata, "data": old.get("data", {}) | change}, create=False
        )

    def set_bundles(self, bundle: bytes, root: str = MUTATING, name: str = NAMES.mutating, entries: int = 2) -> None:
        """Write a configuration as somebody else would."""
        text = base64.b64encode(bundle).decode()
        hooks = [{"name": f"w{n}.lockstep.dev", "clientConfig": {"url": "x", "caBundle": text}} for n in range(entries)]
        self.fake.update(root, "", name, webhooks=hooks)

    def metric(self, name: str, **labels: str) -> float | None:
        """A metric's value."""
        return self.meters.registry.get_sample_value(name, labels)

    def writes(self) -> int:
        """How many writes there were to Secrets and configurations."""
        return self.fake.count(lambda seen: seen.method == "PATCH")

    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of every event, in the order they were written."""
        found = self.fake.objects.get(EVENTS, {}).values()
        return [(event["type"], event["reason"], event["message"]) for event in found]

    def fault(self, path: str, answer: Answer, times: int = 1) -> None:
        """Answer the next writes to a path so."""
        self.fake.fault(lambda seen: seen.method == "PATCH" and path in seen.path, answer, times)


def kind_of(body: bytes) -> str:
    """What a patch of ours is about: a Secret's mark, or `BundlePublished`."""
    content = json.loads(body)
    if isinstance(content, list):
        return "BundlePublished"
    return str(content["metadata"]["annotations"]["lockstep.dev/certificates"]).split(" ")[1].rstrip(":")
