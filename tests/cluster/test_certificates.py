"""Certificates on the real API server: made, published, repaired, revoked, and a writer killed on the way."""

from __future__ import annotations

import base64
import functools
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from certs.authority import make_authority
from certs.leaf import make_leaf
from certs.lives import Lives
from certs.pair import draw_key
from certs.renewal import decide
from certs.sight import Rest, Sight
from certs.store import certificates_in
from reconciler.certificate_objects import REVOKED
from tests.cluster.callers import Callers
from tests.cluster.certificate_stage import AUTHORITIES, CONFIGURATIONS, HOSTS, LEAF, Stage
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.lockstep import USER
from tests.cluster.resources import EVENTS, LEASES, MUTATING_WEBHOOKS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from certs.store import Stored
    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.resources import Json

ADMITTED = 201
ADMISSION = {resource.plural for resource, _ in CONFIGURATIONS}
Harm = dict[str, dict[str, bytes | None]]
"""Name of a Secret -> keys to change."""

LIFE = timedelta(days=30)
_number = itertools.count()


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """An API server; nothing is scheduled here."""
    return start_plane(Options(scheduler=False, kwok=False, lws=False))


@pytest.fixture
def stage(plane: ControlPlane, tmp_path: Path) -> Iterator[Stage]:
    """A fresh installation, with its webhook and no reconciler yet."""
    with Stage(plane, tmp_path, f"lockstep-{next(_number)}") as stage:
        yield stage


@pytest.fixture
def settled(plane: ControlPlane, stage: Stage) -> Stage:
    """An installation whose webhook is ready, with one reconciler."""
    stage.start_reconciler()
    settle(plane, stage)
    return stage


def settle(plane: ControlPlane, stage: Stage) -> None:
    """Wait until everybody agrees and the API server gets its answers."""
    plane.wait("the webhook is ready", lambda: stage.ready()[0] == 200, 60)
    plane.wait("all agree", lambda: stage.agrees(datetime.now(UTC)), 60)
    plane.wait("the API server believes the webhook", lambda: stage.admit() == ADMITTED, 60)


def test_c15_a_fresh_installation(plane: ControlPlane, stage: Stage) -> None:
    """C15: not ready until there is a certificate that the published bundle verifies; then ready without a restart."""
    plane.wait("the webhook answers", lambda: stage.ready()[0] == 503)
    assert "must be readable, no such file or directory" in stage.ready()[1]
    assert stage.admit() == 500
    since = plane.audit.offset()
    stage.start_reconciler()
    settle(plane, stage)
    assert stage.webhook.died is None
    asked = requests(plane, since)
    assert {(event["objectRef"]["resource"], event["verb"]) for event in asked} == {
        ("secrets", "get"),
        ("secrets", "patch"),
        ("events", "create"),
        *((resource, verb) for resource in ADMISSION for verb in ("get", "patch")),
    }
    assert {event["responseStatus"]["code"] for event in asked} <= {200, 201}


def requests(plane: ControlPlane, since: int) -> list[Json]:
    """What reconcilers have asked about Secrets, webhook configurations and events since an offset of the audit log."""
    verbs = {"create", "update", "patch", "delete", "get", "list", "watch"}
    events = plane.audit.events(user=USER, verbs=verbs, since=since)
    return [
        event for event in events if event.get("objectRef", {}).get("resource") in {"secrets", "events", *ADMISSION}
    ]


def test_off_asks_for_nothing(plane: ControlPlane, stage: Stage) -> None:
    """With somebody else's certificates the reconciler asks about no Secret and no webhook configuration."""
    since = plane.audit.offset()
    stage.start_reconciler("off")
    plane.wait(
        "the reconciler has the Lease", lambda: plane.api.items(LEASES, stage.namespace)[0]["spec"]["holderIdentity"]
    )
    plane.holds("nothing is asked", lambda: requests(plane, since) == [], 12, 1)


def test_each_step_is_an_event(plane: ControlPlane, settled: Stage) -> None:
    """Every step of the first installation is an event on its Secret."""
    wanted = {"AuthorityMade", "BundlePublished", "NextAuthorityPublished", "LeafRenewed"}

    def told() -> bool:
        events = plane.api.items(EVENTS, settled.namespace)
        return {event["reason"] for event in events if event["involvedObject"]["kind"] == "Secret"} == wanted

    plane.wait("all steps are told", told)


def test_c50_three_reconcilers_at_once(plane: ControlPlane, stage: Stage) -> None:
    """C50: three start at the same time on empty Secrets: one of them writes, once, and all agree within 30 s."""
    since = plane.audit.offset()
    for _ in range(3):
        stage.start_reconciler()
    plane.wait("all agree", lambda: stage.agrees(datetime.now(UTC)), 30)
    settle(plane, stage)
    writes = plane.audit.events(user=USER, verbs={"patch"}, resource="secrets", since=since)
    assert [event["objectRef"]["name"] for event in writes] == [AUTHORITIES, AUTHORITIES, LEAF]


@pytest.mark.parametrize("foreign", [False, True], ids=["blanked", "foreign"])
def test_c51_bundles_changed_by_others(plane: ControlPlane, settled: Stage, *, foreign: bool) -> None:
    """C51: somebody writes over every bundle, and another entry comes: all have ours again within 60 s."""
    ours = settled.stored.bundle
    theirs = base64.b64encode(plane.certificates.ca.read_bytes() if foreign else b"").decode()
    for resource, name in CONFIGURATIONS:
        settled.register(resource, name, entries=3)
        path = "/webhooks/{}/clientConfig/caBundle"
        changes = [{"op": "add", "path": path.format(number), "value": theirs} for number in range(3)]
        plane.api.patch(resource, name, changes)
    plane.wait("every entry has ours", lambda: settled.bundles() == [ours] * 6, 60)
    plane.wait("the API server believes the webhook", lambda: settled.admit() == ADMITTED, 60)


def test_c56_a_deleted_configuration_stays_deleted(plane: ControlPlane, settled: Stage) -> None:
    """C56: a configuration that somebody deletes is not made again, not by a process that stops or starts either."""
    plane.api.delete(MUTATING_WEBHOOKS, "lockstep-mutating")
    settled.reconcilers[0].stop()
    settled.start_reconciler()
    absent = lambda: plane.api.find(MUTATING_WEBHOOKS, "lockstep-mutating") is None  # noqa: E731
    plane.holds("it stays away", absent, 15, 1)


def leaf(
    stage: Stage, *, hosts: tuple[str, ...] = HOSTS, begin: timedelta = timedelta(), life: timedelta = LIFE
) -> Harm:
    """A leaf that the current authority signed."""
    key, serial = draw_key(), x509.random_serial_number()
    made = make_leaf(stage.stored.current.held, hosts, datetime.now(UTC) + begin, key, serial, life)
    return {LEAF: {"tls_crt": made.certificate_pem, "tls_key": made.key_pem}}


def another_key(_: Stage) -> Harm:
    """A key that belongs to no certificate."""
    made = make_authority(datetime.now(UTC), draw_key(), x509.random_serial_number())
    return {LEAF: {"tls_key": made.key_pem}}


def foreign(_: Stage) -> Harm:
    """A leaf that is fine but for who signed it."""
    key, serial = draw_key(), x509.random_serial_number()
    authority = make_authority(datetime.now(UTC), key, serial)
    made = make_leaf(authority, HOSTS, datetime.now(UTC), draw_key(), x509.random_serial_number())
    return {LEAF: {"tls_crt": made.certificate_pem, "tls_key": made.key_pem}}


def expired_authority(_: Stage) -> Harm:
    """A current authority that is no longer valid."""
    made = make_authority(datetime.now(UTC) - timedelta(days=400), draw_key(), x509.random_serial_number())
    return {AUTHORITIES: {"current_crt": made.certificate_pem, "current_key": made.key_pem}}


def always(name: str, **data: bytes | None) -> Callable[[Stage], Harm]:
    """The same harm for every installation."""
    return lambda _: {name: data}


BROKEN: tuple[tuple[str, Callable[[Stage], Harm], str], ...] = (
    ("a leaf that is cut off", always(LEAF, tls_crt=b"-----BEGIN CERTIFICATE-----\nMIIB"), "LeafRenewed"),
    ("a key that is none", always(LEAF, tls_key=b"no key"), "LeafRenewed"),
    ("the key of another", another_key, "LeafRenewed"),
    ("an expired leaf", lambda stage: leaf(stage, life=timedelta(minutes=-1)), "LeafRenewed"),
    ("a leaf of the future", lambda stage: leaf(stage, begin=timedelta(days=3)), "LeafRenewed"),
    ("a leaf for other hosts", lambda stage: leaf(stage, hosts=("example.com",)), "LeafRenewed"),
    ("someone else's leaf", foreign, "LeafRenewed"),
    ("an emptied Secret", always(LEAF, tls_crt=None, tls_key=None, ca_crt=None), "LeafRenewed"),
    ("an authority that is cut off", always(AUTHORITIES, current_crt=b"x"), "AuthorityPromoted"),
    ("an expired authority", expired_authority, "AuthorityPromoted"),
    ("a next authority without its key", always(AUTHORITIES, next_key=None), "NextAuthorityMade"),
    ("two authorities without keys", always(AUTHORITIES, current_key=b"x", next_key=b"x"), "AuthorityMade"),
)


def test_broken_material(plane: ControlPlane, settled: Stage) -> None:
    """Whatever is broken in the Secrets: replaced within a minute, told by a warning, and the API server goes on."""
    with Load(settled) as load:
        for case, harm, reason in BROKEN:
            mend(plane, settled, harm, case)
            plane.wait("told", functools.partial(is_told, plane, settled, reason), 60)
            settle(plane, settled)
    assert load.failures == []
    assert load.admitted > 0


def mend(plane: ControlPlane, stage: Stage, harm: Callable[[Stage], Harm], case: str) -> None:
    """Do harm and wait until everything is whole again."""
    before = stage.stored
    for name, change in harm(stage).items():
        stage.put(name, **change)
    plane.wait(f"{case}: is mended", lambda: mended(stage, before), 60)


def is_told(plane: ControlPlane, stage: Stage, reason: str) -> bool:
    """Is there a warning with this reason about an installation's Secrets?"""
    events = plane.api.items(EVENTS, stage.namespace)
    return any((event["type"], event["reason"]) == ("Warning", reason) for event in events)


def mended(stage: Stage, before: Stored) -> bool:
    """Is everything whole again, nothing more to do, and something new?"""
    after = stage.stored
    if [after.leaf, after.current, after.next] == [before.leaf, before.current, before.next]:
        return False
    rest = decide(Sight(after, tuple(stage.bundles()), HOSTS), datetime.now(UTC), Lives())
    return isinstance(rest, Rest) and not rest.amiss and stage.agrees(datetime.now(UTC))


class Load(Callers):
    """The API server calls the webhook as fast as it answers, with failure policy Fail.

    Attributes:
        admitted: pods that were admitted.
        failures: the answers to those that were not.
    """

    def __init__(self, stage: Stage) -> None:
        """Prepare two callers."""
        self.admitted, self.failures = 0, list[int]()
        self._stage = stage
        super().__init__(2)

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            status = self._stage.admit()
            if status == ADMITTED:
                self.admitted += 1
            else:
                self.failures.append(status)


def test_authorities_revoked_under_load(plane: ControlPlane, settled: Stage) -> None:
    """The current authority is revoked five times in a row: no review fails, each time the next one signs."""
    with Load(settled) as load:
        for _ in range(5):
            before = settled.stored
            revoke(settled, before)
            plane.wait("the next one signs", functools.partial(signs, settled, before), 60)
            settle(plane, settled)
    assert load.failures == []
    assert load.admitted > 0


def revoke(stage: Stage, stored: Stored) -> None:
    """Revoke the current authority."""
    stage.annotate(AUTHORITIES, REVOKED, f"{stored.current.held.certificate.serial_number:x}")


def signs(stage: Stage, before: Stored) -> bool:
    """Has the authority that was next signed the leaf?"""
    after = stage.stored
    leaf, signer = after.leaf.held.certificate, before.next.held.certificate
    return leaf.issuer == signer.subject and stage.agrees(datetime.now(UTC))


def version_of(plane: ControlPlane, stage: Stage, name: str) -> str:
    """Version of one of the objects that a rotation writes."""
    if name in (LEAF, AUTHORITIES):
        found = plane.api.get(SECRETS, name, stage.namespace)
    else:
        found = plane.api.get(MUTATING_WEBHOOKS, name)
    return str(found["metadata"]["resourceVersion"])


@pytest.mark.parametrize("watched", [AUTHORITIES, "lockstep-mutating", LEAF])
def test_killed_with_9_during_a_rotation(plane: ControlPlane, settled: Stage, watched: str) -> None:
    """Killed as soon as one of its writes is seen, and once more right after its start: the next run ends the same."""
    with Load(settled) as load:
        before = settled.stored
        version = version_of(plane, settled, watched)
        revoke(settled, before)
        if watched == AUTHORITIES:
            version = version_of(plane, settled, watched)
        changed = lambda: version_of(plane, settled, watched) != version  # noqa: E731
        plane.wait("a write is seen", changed, 60, 0.001)
        settled.reconcilers[0].kill()
        settled.reconcilers[0].start()
        time.sleep(1.5)
        settled.reconcilers[0].kill()
        settled.reconcilers[0].start()
        plane.wait("the next one signs", lambda: signs(settled, before), 60)
        settle(plane, settled)
    assert load.failures == []
    after = settled.stored
    assert after.current.held.certificate == before.next.held.certificate
    assert after.published is not None
    assert after.published.serial == after.next.held.certificate.serial_number
    wanted = {after.current.held.certificate, after.next.held.certificate, before.current.held.certificate}
    assert set(certificates_in(after.bundle)) == wanted
