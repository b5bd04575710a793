"""Fifty rotations of authority and leaf under load: no caller is ever refused, however late it looks.

The clock that renewal goes by is in the test's hand and runs years ahead. All else is real: the API server that holds
Secrets and configurations, `lockstep serve` with its mounted Secret, and callers whose TLS verifies chain and name
against the bundle they last read. OpenSSL has no clock to set, so validity in time is checked beside it.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import ssl
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from certs.lives import Lives
from reconciler.api import load_api
from reconciler.certificate_meters import CertificateMeters
from reconciler.certificate_objects import Names
from reconciler.certificates import CertificateKeeper
from reconciler.fence import Fence, FencedApi
from reconciler.recorder import Recorder
from reconciler.telemetry import Meters
from tests.builders import leader_pod, review
from tests.certs.model import NOW, valid
from tests.cluster.callers import Callers
from tests.cluster.certificate_stage import HOSTS, Stage
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.resources import MUTATING_WEBHOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from certs.sight import Rest
    from tests.cluster.control_plane import PlaneFactory

ROTATIONS = 50
LIVES = Lives(authority=timedelta(days=60), leaf=timedelta(days=30))
"""Shorter than ours, so that an authority needs two leaves and not twelve; notice and lead are ours."""

CALLERS = 4
EVERY_SECONDS = 0.04
"""From one of a caller's reviews to its next: a hundred a second together, where the machine has the time."""

CALLS_PER_CONNECTION = 5
NO_CHECK_TIME = ssl.VerifyFlags(0x200000)
ANY_SKEW = timedelta(days=100_000)


class World:
    """What callers know: the time, and the bundles that were published when.

    Attributes:
        now: the time.
        moment: held while a caller connects, and while time passes: nobody connects for days.
    """

    def __init__(self) -> None:
        """Begin."""
        self.now: datetime = NOW
        self.moment = threading.Lock()
        self._published: list[tuple[datetime, str]] = []

    def pass_time(self, until: datetime) -> None:
        """Let it be later."""
        with self.moment:
            self.now = max(self.now, until)

    def publish(self, bundle: bytes) -> None:
        """Note what stands in the configuration now."""
        text = bundle.decode()
        if not self._published or self._published[-1][1] != text:
            self._published.append((self.now, text))

    @property
    def last_read(self) -> str:
        """The bundle of a caller that looks once in 24 hours, as late as it may: what stood there a day ago."""
        read = [text for at, text in self._published if at <= self.now - LIVES.notice]
        return read[-1] if read else self._published[0][1]


class ApiServers(Callers):
    """Callers that verify like an API server, each with a connection that it keeps for a few calls.

    Attributes:
        answered: reviews that were answered.
        serials: serial numbers of the leaves they saw.
        failures: what went wrong.
    """

    def __init__(self, port: int, world: World) -> None:
        """Prepare them."""
        self._port, self._world = port, world
        self.answered, self.serials, self.failures = 0, set[int](), list[str]()
        super().__init__(CALLERS)

    def _run(self) -> None:
        body = review(leader_pod())
        while not self._stopping.is_set():
            try:
                self._visit(body)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.failures.append(f"{self._world.now}: {error!r}")

    def _visit(self, body: bytes) -> None:
        with self._world.moment:
            client = _client(self._port, self._world)
            leaf = _connect(client)
            assert valid(leaf, self._world.now)
        with contextlib.closing(client):
            self._call(client, body)
        self.serials.add(leaf.serial_number)

    def _call(self, client: http.client.HTTPSConnection, body: bytes) -> None:
        begun = time.monotonic()
        for number in range(1, CALLS_PER_CONNECTION + 1):
            client.request("POST", "/mutate?timeout=10s", body, {"Content-Type": "application/json"})
            answer = client.getresponse()
            answer.read()
            assert answer.status == 200
            self.answered += 1
            self._stopping.wait(max(0.0, begun + number * EVERY_SECONDS - time.monotonic()))


def _client(port: int, world: World) -> http.client.HTTPSConnection:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=world.last_read)
    context.verify_flags |= NO_CHECK_TIME
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)


def _connect(client: http.client.HTTPSConnection) -> x509.Certificate:
    """Shake hands; gives the leaf that was served and believed."""
    client.connect()
    assert isinstance(client.sock, ssl.SSLSocket)
    der = client.sock.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """An API server; nothing is scheduled here."""
    return start_plane(Options(scheduler=False, kwok=False, lws=False))


@pytest.fixture
def world() -> World:
    """The callers' view."""
    return World()


@pytest.fixture
def stage(plane: ControlPlane, tmp_path: Path) -> Iterator[Stage]:
    """A fresh installation; its Secret is mounted when the test says so."""
    with Stage(plane, tmp_path, "lockstep-rotations", mounts=False) as stage:
        yield stage


@pytest.fixture
def keeper(plane: ControlPlane, stage: Stage, world: World) -> Iterator[CertificateKeeper]:
    """The writer, with the reconciler's rights and a clock in hand."""
    api = load_api(plane.kubeconfig("reconciler"))
    meters, fenced = Meters(), FencedApi(api, Fence.always())
    yield CertificateKeeper(
        fenced,
        Names(namespace=stage.namespace, hosts=HOSTS),
        Recorder(fenced, meters=meters),
        CertificateMeters(meters.registry),
        leads=lambda: True,
        lives=LIVES,
        now=lambda: world.now,
        most_skew=ANY_SKEW,
    )
    api.close()


@pytest.mark.timeout(1200)  # some 150 mounts of a Secret, each waited for until it is served
def test_fifty_rotations(plane: ControlPlane, stage: Stage, keeper: CertificateKeeper, world: World) -> None:
    """Authority and leaf are rotated fifty times: no review fails, and each leaf was seen by some caller.

    In every other rotation the server's Secret is mounted only when the next thing is due, days later.
    """
    rest = look(keeper, stage, world)
    bring(plane, stage, world)
    authorities = {stage.stored.current.held.certificate.serial_number}
    with ApiServers(stage.port, world) as callers:
        for turn in itertools.count():
            if len(authorities) > ROTATIONS:
                break
            world.pass_time(rest.until)
            rest = look(keeper, stage, world)
            assert not rest.amiss
            authorities.add(stage.stored.current.held.certificate.serial_number)
            if turn % 2 == 0 or rest.until >= world.now + timedelta(days=9):
                bring(plane, stage, world)
            assert callers.failures == []
    assert callers.failures == []
    assert len(callers.serials) > ROTATIONS
    assert callers.answered > ROTATIONS * 10
    # An authority is made a week before it begins to sign, and signs until two thirds of its life are over.
    assert world.now > NOW + timedelta(days=ROTATIONS * 32)


def look(keeper: CertificateKeeper, stage: Stage, world: World) -> Rest:
    """Let the writer do what is due; callers may read what it published."""
    rest = keeper.look()
    assert rest is not None
    world.publish(stage.bundles(MUTATING_WEBHOOKS)[0])
    return rest


def bring(plane: ControlPlane, stage: Stage, world: World) -> None:
    """Mount the newest Secret and wait until new connections get its leaf."""
    stage.mount.refresh()
    wanted = stage.stored.leaf.held.certificate.serial_number
    plane.wait("the new leaf is served", lambda: served(stage, world) == wanted, 20, 0.1)


def served(stage: Stage, world: World) -> int:
    """Serial number of the leaf that a new connection gets."""
    try:
        with contextlib.closing(_client(stage.port, world)) as client:
            return _connect(client).serial_number
    except OSError as error:
        raise LookupError(str(error)) from error
