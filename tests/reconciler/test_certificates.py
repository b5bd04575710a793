"""The writer of certificates on a fake API server: what it writes, what it leaves alone, its death at every write."""

import base64
import datetime as dt
import json
import threading
from collections.abc import Callable
from email.utils import format_datetime

import pytest

from certs.sight import Kind, Rest, Sight
from certs.store import Slot, certificates_in
from reconciler.certificate_objects import revoked_serials
from reconciler.contract import Response
from reconciler.fence import Fence, NotLeader
from tests.certs.model import believed
from tests.reconciler.fake_api import Answer, InProcess, Seen, eventually, status
from tests.reconciler.installed import (
    MUTATING,
    NAMES,
    SECRETS,
    VALIDATING,
    Installation,
    Killed,
    MortalApi,
    kind_of,
)

FIRST = ["AuthorityMade", "BundlePublished", "BundlePublished", "NextAuthorityPublished", "LeafRenewed"]
"""The writes of a first installation."""


@pytest.fixture
def installation() -> Installation:
    """What the manifests bring."""
    return Installation()


@pytest.fixture
def settled(installation: Installation) -> Installation:
    """An installation whose certificates are in place."""
    assert isinstance(installation.keeper().look(), Rest)
    return installation


def _agrees(installation: Installation) -> bool:
    """Does every entry, and the bundle beside it, believe the leaf?"""
    sight = installation.sight
    bundles = [*sight.published, sight.stored.bundle]
    leaf = sight.stored.leaf.held.certificate
    return all(believed(leaf, certificates_in(bundle), installation.now) for bundle in bundles)


def _written(installation: Installation, since: int = 0) -> list[str]:
    return [kind_of(seen.body) for seen in installation.fake.requests if seen.method == "PATCH"][since:]


def test_a_fresh_installation(installation: Installation) -> None:
    """Authorities, then both configurations, then the leaf with the bundle beside it; then nothing more to do."""
    rest = installation.keeper().look()
    assert rest is not None
    assert rest.kind is Kind.LEAF_RENEWED
    assert _written(installation) == FIRST
    assert _agrees(installation)
    assert sorted(installation.data(NAMES.leaf)) == ["ca.crt", "tls.crt", "tls.key"]
    assert sorted(installation.data(NAMES.authorities)) == [
        "current.crt",
        "current.key",
        "next.crt",
        "next.key",
        "next.published",
    ]
    installation.keeper().look()
    assert installation.writes() == len(FIRST)


def test_each_step_is_told(installation: Installation) -> None:
    """One event for each step, on the Secret; the Secret says what was last written and why; metrics count it."""
    keeper = installation.keeper()
    keeper.start()
    assert eventually(lambda: len(installation.events()) == 4)
    keeper.stop()
    assert {(kind, reason) for kind, reason, _ in installation.events()} == {
        ("Normal", "AuthorityMade"),
        ("Normal", "BundlePublished"),
        ("Normal", "NextAuthorityPublished"),
        ("Normal", "LeafRenewed"),
    }
    leaf = installation.sight.stored.leaf.held.certificate
    (message,) = [message for _, reason, message in installation.events() if reason == "LeafRenewed"]
    assert message == f"leaf is missing; tls.crt is {leaf.serial_number:x} until 2026-12-30T12:00:00Z"
    mark = installation.secret(NAMES.leaf)["metadata"]["annotations"]["lockstep.dev/certificates"]
    assert mark == "2026-11-30T12:00:00Z LeafRenewed: leaf is missing"
    assert installation.metric("lockstep_certificate_steps_total", step="LeafRenewed", outcome="done") == 1
    assert installation.metric("lockstep_certificate_bundle_in_sync") == 1
    end = installation.metric("lockstep_certificate_not_after_seconds", role="leaf")
    assert end == leaf.not_valid_after_utc.timestamp()


def _shape(sight: Sight) -> tuple[object, ...]:
    """What a state is like, whichever keys were drawn: what is there, who signed what, what is published where."""
    stored = sight.stored
    leaf, current, following = (slot.held.certificate for slot in (stored.leaf, stored.current, stored.next))
    bundle = certificates_in(stored.bundle)
    return (
        leaf.issuer == current.subject,
        [certificate in (current, following) for certificate in bundle],
        [certificates_in(one) == bundle for one in sight.published],
        leaf.not_valid_after_utc,
        current.not_valid_after_utc,
        following.not_valid_after_utc,
        len(stored.retired),
        stored.published and stored.published.serial == following.serial_number,
    )


def _fresh(_: Installation) -> None:
    """Nothing beside the manifests."""


def _leaf_due(installation: Installation) -> None:
    installation.keeper().look()
    installation.advance(days=21)


def _next_due(installation: Installation) -> None:
    installation.keeper().look()
    installation.live(234)
    installation.advance(days=3)


def _authority_due(installation: Installation) -> None:
    _next_due(installation)
    installation.keeper().look()
    installation.advance(days=7)


def _retired_due(installation: Installation) -> None:
    _authority_due(installation)
    installation.keeper().look()
    installation.live(30)
    installation.advance(days=1)


def _current_damaged(installation: Installation) -> None:
    installation.keeper().look()
    installation.put(NAMES.authorities, current_crt=b"-----BEGIN", current_key=b"-----BEGIN")


def _all_damaged(installation: Installation) -> None:
    _current_damaged(installation)
    installation.put(NAMES.authorities, next_crt=b"x", next_key=b"x")
    installation.put(NAMES.leaf, tls_key=b"x")
    installation.set_bundles(b"x")


SITUATIONS = [
    pytest.param(_fresh, id="a fresh installation"),
    pytest.param(_leaf_due, id="a leaf that is due"),
    pytest.param(_next_due, id="a next authority that is too old"),
    pytest.param(_authority_due, id="an authority that is due"),
    pytest.param(_retired_due, id="an authority that nobody needs any more"),
    pytest.param(_current_damaged, id="a damaged authority"),
    pytest.param(_all_damaged, id="everything damaged"),
]


@pytest.mark.parametrize("stored", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_killed_at_every_write(situation: Callable[[Installation], None], *, stored: bool) -> None:
    """Killed before or after any write of a renewal, the next run comes to the same end; all agree at every moment."""
    whole = Installation()
    situation(whole)
    before = whole.writes()
    whole.keeper().look()
    writes = whole.writes() - before
    assert writes > 0
    for number in range(writes):
        installation = Installation()
        situation(installation)
        api = MortalApi(InProcess(installation.fake), dies_at=number, stored=stored)
        with pytest.raises(Killed):
            installation.keeper(api).look()
        if situation in (_leaf_due, _next_due, _authority_due, _retired_due):
            assert _agrees(installation)
        assert isinstance(installation.keeper().look(), Rest)
        assert _shape(installation.sight) == _shape(whole.sight)
        assert _agrees(installation)


def test_killed_twice_in_a_row(installation: Installation) -> None:
    """Even one that gets no further than one write each time comes to the end."""
    for _ in FIRST:
        with pytest.raises(Killed):
            installation.keeper(MortalApi(InProcess(installation.fake), dies_at=0, stored=True)).look()
    rest = installation.keeper().look()
    assert rest is not None
    assert not rest.amiss
    assert _agrees(installation)


def test_c50_three_writers_at_once(installation: Installation) -> None:
    """C50: three that all believe they may write make one chain: who loses a race looks again."""
    keepers = [installation.keeper() for _ in range(3)]
    gate = threading.Barrier(3)

    def run(number: int) -> None:
        gate.wait()
        keepers[number].look()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = _written(installation).count("AuthorityMade")
    conflicts = installation.metric("lockstep_certificate_steps_total", step="AuthorityMade", outcome="conflict") or 0
    assert made - conflicts == 1
    assert _agrees(installation)
    assert installation.keeper().look() is not None


def test_a_lost_race_is_looked_at_again(settled: Installation) -> None:
    """A Secret that changed since it was read is not overwritten; it is read again."""
    settled.advance(days=21)
    settled.fault(NAMES.leaf, Answer(409, json.dumps(status(409, "Conflict", "changed")).encode()))
    assert isinstance(settled.keeper().look(), Rest)
    assert settled.metric("lockstep_certificate_steps_total", step="LeafRenewed", outcome="conflict") == 1
    assert settled.metric("lockstep_certificate_steps_total", step="LeafRenewed", outcome="done") == 2


def test_writes_carry_the_version_that_was_read(installation: Installation) -> None:
    """Every patch names the version it was decided from."""
    installation.keeper().look()
    for seen in installation.fake.requests:
        if seen.method != "PATCH":
            continue
        content = json.loads(seen.body)
        first = content[0] if isinstance(content, list) else {"path": "/metadata/resourceVersion"}
        assert first["path"] == "/metadata/resourceVersion"
        version = first["value"] if isinstance(content, list) else content["metadata"]["resourceVersion"]
        assert version.isdigit()


def test_only_four_objects_by_name(installation: Installation) -> None:
    """It gets and patches four objects by name, creates events, and asks for nothing else."""
    keeper = installation.keeper()
    keeper.start()
    assert eventually(lambda: len(installation.events()) == 4)
    keeper.stop()
    asked = {(seen.method, seen.path) for seen in installation.fake.requests}
    secrets = f"/api/v1/namespaces/{NAMES.namespace}/secrets"
    paths = [f"{secrets}/{name}" for name in (NAMES.leaf, NAMES.authorities)]
    paths += [f"{MUTATING}/{NAMES.mutating}", f"{VALIDATING}/{NAMES.validating}"]
    events = ("POST", f"/api/v1/namespaces/{NAMES.namespace}/events")
    assert asked == {(verb, path) for verb in ("GET", "PATCH") for path in paths} | {events}


@pytest.mark.parametrize("bundle", [b"", b"-----BEGIN CERTIFICATE-----\nforeign"], ids=["blanked", "foreign"])
@pytest.mark.parametrize("entries", [1, 2, 3])
def test_c51_every_entry_is_put_right(settled: Installation, bundle: bytes, entries: int) -> None:
    """C51: bundles that someone blanked or replaced are ours again with the next look, on every entry there is."""
    ours = settled.sight.stored.bundle
    settled.set_bundles(bundle, entries=entries)
    settled.set_bundles(bundle, VALIDATING, NAMES.validating, entries)
    settled.keeper().look()
    assert settled.sight.published == (ours,) * (2 * entries)


@pytest.mark.parametrize("root", [MUTATING, VALIDATING], ids=["mutating", "validating"])
def test_c56_a_deleted_configuration_is_not_made_again(settled: Installation, root: str) -> None:
    """C56: somebody deleted it; nothing makes it anew, and what is left is kept in step."""
    settled.fake.delete(root, "", NAMES.mutating if root == MUTATING else NAMES.validating)
    settled.advance(days=21)
    rest = settled.keeper().look()
    assert rest is not None
    assert settled.fake.objects[root] == {}
    assert _agrees(settled)
    missing = settled.metric("lockstep_certificate_trouble", kind="missing-configuration")
    assert missing == (1 if root == MUTATING else 0)


FOREIGN = [
    pytest.param(NAMES.leaf, {}, '"tls.crt" of someone else', id="a certificate that someone put there"),
    pytest.param(
        NAMES.leaf, {"cert-manager.io/certificate-name": "x"}, "one that cert-manager keeps", id="cert-manager's"
    ),
    pytest.param(NAMES.authorities, {}, '"current.crt" of someone else', id="an authority that someone put there"),
]


@pytest.mark.parametrize(("name", "mark", "got"), FOREIGN)
def test_what_someone_else_wrote_is_left_alone(
    installation: Installation, name: str, mark: dict[str, str], got: str
) -> None:
    """A Secret with data that we did not write is not overwritten: an event and a metric say so until it is emptied."""
    key = {"tls_crt": b"theirs"} if name == NAMES.leaf else {"current_crt": b"theirs"}
    installation.put(name, mark, **key)
    keeper = installation.keeper()
    keeper.start()
    assert eventually(lambda: len(installation.events()) == 1)
    keeper.stop()
    assert installation.writes() == 0
    text = f"secret lockstep-system/{name}: must be empty or written by lockstep, got {got}"
    assert installation.events() == [("Warning", "SecretForeign", text)]
    assert installation.metric("lockstep_certificate_trouble", kind="foreign-secret") == 1
    empty = installation.secret(name)
    del empty["data"], empty["metadata"]["annotations"]
    assert isinstance(installation.keeper().look(), Rest)
    assert installation.metric("lockstep_certificate_trouble", kind="foreign-secret") == 0


def test_damage_is_said_where_it_is_mended(settled: Installation) -> None:
    """A damaged Secret of ours is filled anew, with a warning event, and a mark on the Secret that says why."""
    settled.put(NAMES.leaf, tls_key=b"-----BEGIN PRIVATE KEY-----\ncut off")
    keeper = settled.keeper()
    keeper.start()
    assert eventually(lambda: len(settled.events()) == 1)
    keeper.stop()
    ((kind, reason, message),) = settled.events()
    assert (kind, reason) == ("Warning", "LeafRenewed")
    why = "leaf key: must be an unencrypted PEM key, got something that can't be parsed"
    assert message.startswith(f"{why}; tls.crt is ")
    mark = settled.secret(NAMES.leaf)["metadata"]["annotations"]["lockstep.dev/certificates"]
    assert mark == f"2026-11-30T12:00:00Z LeafRenewed: {why}"
    assert _agrees(settled)


@pytest.mark.parametrize("name", [NAMES.leaf, NAMES.authorities])
def test_a_missing_secret_is_told(settled: Installation, name: str) -> None:
    """A Secret that somebody deleted can't be created by us: nothing is written, and the event says what mends it."""
    writes = settled.writes()
    settled.fake.delete(SECRETS, NAMES.namespace, name)
    keeper = settled.keeper()
    keeper.start()
    assert eventually(lambda: len(settled.events()) == 1)
    keeper.stop()
    text = f"secret lockstep-system/{name}: must exist, got none: apply the manifests again"
    assert settled.events() == [("Warning", "SecretMissing", text)]
    assert settled.writes() == writes
    settled.fake.create(SECRETS, NAMES.namespace, name)
    assert isinstance(settled.keeper().look(), Rest)
    assert _agrees(settled)


def test_cert_managers_configuration_is_left_alone(settled: Installation) -> None:
    """A configuration that cert-manager injects into has two writers: we are not the second."""
    found = settled.fake.objects[MUTATING]["", NAMES.mutating]
    found["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "lockstep-system/lockstep-tls"}
    settled.set_bundles(b"theirs")
    writes = settled.writes()
    assert settled.keeper().look() is None
    assert settled.writes() == writes
    assert settled.metric("lockstep_certificate_trouble", kind="foreign-configuration") == 1


def test_a_configuration_that_refuses(settled: Installation) -> None:
    """A refused patch is told, the other configuration gets its bundle, and the leaf is renewed all the same."""
    ours = settled.sight.stored.bundle
    for root, name in ((MUTATING, NAMES.mutating), (VALIDATING, NAMES.validating)):
        settled.set_bundles(ours + b"\n", root, name)
    settled.advance(days=21)
    refusal = Answer(403, json.dumps(status(403, "Forbidden", "no")).encode())
    settled.fault(NAMES.mutating, refusal)
    rest = settled.keeper().look()
    assert rest is not None
    assert (rest.kind, rest.amiss) == (Kind.BUNDLE_PUBLISHED, True)
    assert settled.sight.published == (ours + b"\n", ours + b"\n", ours, ours)
    assert settled.metric("lockstep_certificate_trouble", kind="refused") == 1
    assert settled.metric("lockstep_certificate_bundle_in_sync") == 0
    assert settled.metric("lockstep_certificate_steps_total", step="LeafRenewed", outcome="done") == 2
    assert isinstance(settled.keeper().look(), Rest)
    assert settled.metric("lockstep_certificate_trouble", kind="refused") == 0
    assert settled.metric("lockstep_certificate_bundle_in_sync") == 1


def test_a_refused_secret_stops_the_look(settled: Installation) -> None:
    """Where a Secret can't be written nothing that builds on it is."""
    settled.advance(days=21)
    writes = settled.writes()
    settled.fault(NAMES.leaf, Answer(403, json.dumps(status(403, "Forbidden", "no")).encode()))
    assert settled.keeper().look() is None
    assert settled.writes() == writes + 1
    assert settled.metric("lockstep_certificate_trouble", kind="refused") == 1


def test_who_does_not_lead_writes_nothing(installation: Installation) -> None:
    """A process without the Lease is stopped at the fence."""
    with pytest.raises(NotLeader):
        installation.keeper(fence=Fence()).look()
    assert installation.writes() == 0


class _DatedApi(InProcess):
    """A server that tells its time."""

    date = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.UTC)

    def request(self, *args: object, **more: object) -> Response:
        answer = super().request(*args, **more)  # type: ignore[arg-type]
        return Response(answer.status, {"date": format_datetime(self.date, usegmt=True)}, answer.body)


@pytest.mark.parametrize("days", [-400, 400])
def test_nothing_is_made_by_a_wrong_clock(settled: Installation, days: int) -> None:
    """A clock far from the API server's would make certificates that it does not believe: told, and nothing written."""
    api = _DatedApi(settled.fake)
    settled.advance(days=days)
    writes = settled.writes()
    assert settled.keeper(api).look() is None
    assert settled.writes() == writes
    assert settled.metric("lockstep_certificate_trouble", kind="clock-skew") == 1
    settled.advance(days=-days)
    assert isinstance(settled.keeper(api).look(), Rest)
    assert settled.metric("lockstep_certificate_trouble", kind="clock-skew") == 0
    assert settled.writes() == writes


@pytest.mark.parametrize(
    ("text", "serials"),
    [
        pytest.param("", set(), id="nothing"),
        pytest.param("1f,20", {0x1F, 0x20}, id="two with a comma"),
        pytest.param(" 1F\n0x20 ", {0x1F, 0x20}, id="blanks, upper case, a prefix"),
        pytest.param("1f:20", {0x1F20}, id="as openssl prints it"),
        pytest.param("none, -1, 1_0, 7", {7}, id="words that are no number"),
        pytest.param("f" * 41, set(), id="too long"),
    ],
)
def test_revoked_serials(text: str, serials: set[int]) -> None:
    """Serial numbers as people write them; anything else counts as not there."""
    assert revoked_serials(text) == serials


def _annotate(installation: Installation, slot: Slot) -> None:
    secret = installation.secret(NAMES.authorities)
    secret["metadata"]["annotations"]["lockstep.dev/revoked"] = f"{slot.held.certificate.serial_number:x}"


@pytest.mark.parametrize(
    ("slot", "kind"),
    [("leaf", Kind.LEAF_RENEWED), ("current", Kind.AUTHORITY_PROMOTED), ("next", Kind.NEXT_AUTHORITY_MADE)],
)
def test_revoked_by_annotation(settled: Installation, slot: str, kind: Kind) -> None:
    """A serial number in the annotation of the authorities' Secret: replaced with a new key at the next look."""
    old = getattr(settled.sight.stored, slot)
    _annotate(settled, old)
    writes = settled.writes()
    assert isinstance(settled.keeper().look(), Rest)
    assert _written(settled, writes)[0] == kind
    assert _agrees(settled)
    stored = settled.sight.stored
    keys = [held.held.key_pem for held in (stored.leaf, stored.current, stored.next)]
    assert old.held.key_pem not in keys


def test_no_key_is_ever_shown(settled: Installation, caplog: pytest.LogCaptureFixture) -> None:
    """Neither events nor logs nor marks nor metrics have a piece of a key, whatever happens to it."""
    settled.put(NAMES.authorities, current_key=settled.data(NAMES.leaf)["tls.key"])
    keeper = settled.keeper()
    keeper.start()
    assert eventually(lambda: len(settled.events()) >= 3)
    keeper.stop()
    keys = [settled.data(NAMES.leaf)["tls.key"], settled.data(NAMES.authorities)["current.key"]]
    marks = [settled.secret(name)["metadata"]["annotations"] for name in (NAMES.leaf, NAMES.authorities)]
    shown = caplog.text + str(settled.events()) + str(marks) + settled.meters.render().decode()
    for key in keys:
        lines = key.decode().splitlines()[1:-1]
        assert not any(line[:16] in shown for line in lines)
        assert base64.b64encode(key).decode()[80:96] not in shown


def _is_look(seen: Seen) -> bool:
    return seen.method == "GET"


def test_an_api_server_that_is_away(installation: Installation) -> None:
    """A look that fails is made again, by the same thread."""
    installation.fake.fault(_is_look, Answer(503, b"away"), times=1)
    keeper = installation.keeper()
    keeper.start()
    assert eventually(lambda: installation.fake.count(_is_look) >= 1)
    assert keeper.alive() == {"certificates": ""}
    keeper.stop()
    assert keeper.alive() == {"certificates": "has ended"}
