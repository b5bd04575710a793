"""Renewal as a function: what is found, the time in; the next step and its reason out."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs.authority import make_authority
from certs.leaf import make_leaf
from certs.lives import Lives, due_at
from certs.sight import Kind, Rest
from certs.store import certificates_in, write_current, write_leaf, write_next
from tests.certs.model import HOSTS, NOW, Model, apply, believed, drawing, valid

FIRST = [
    Kind.AUTHORITY_MADE,
    Kind.BUNDLE_PUBLISHED,
    Kind.NEXT_AUTHORITY_PUBLISHED,
    Kind.LEAF_RENEWED,
]
ROTATIONS = 50
RSA_KEY = rsa.generate_private_key(65537, 2048).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


@pytest.fixture
def model() -> Model:
    """A fresh installation that has come to rest."""
    made = Model()
    made.settle()
    return made


def test_c15_a_fresh_installation() -> None:
    """C15: two authorities, published before a leaf of the current one is given out; nothing of it was amiss."""
    model = Model()
    rest = model.settle()
    assert model.kinds() == FIRST
    assert not any(step.amiss for step in model.taken)
    assert model.agrees()
    assert (rest.kind, rest.amiss) == (Kind.LEAF_RENEWED, False)
    assert rest.until == due_at(model.stored.leaf.held.certificate)


def test_c15_no_leaf_without_a_configuration() -> None:
    """C15: while there is no webhook configuration there is nobody to publish to, and no first leaf."""
    model = Model()
    model.entries = []
    rest = model.settle()
    assert (rest.kind, rest.amiss) == (Kind.LEAF_RENEWED, True)
    assert rest.reason == "leaf is missing; there is no webhook configuration to publish its authority in"
    model.entries = [b""]
    model.settle()
    assert model.agrees()


def test_the_bundle_has_current_and_next(model: Model) -> None:
    """Current and next authority stand in every bundle, from the first one on."""
    stored = model.stored
    both = (stored.current.held.certificate, stored.next.held.certificate)
    assert [certificates_in(bundle) for bundle in (*model.entries, stored.bundle)] == [both] * 3


@pytest.mark.parametrize(
    ("days", "kinds"),
    [
        pytest.param(19, [], id="before two thirds of the leaf's life"),
        pytest.param(20.1, [Kind.LEAF_RENEWED], id="after two thirds of the leaf's life"),
        pytest.param(31, [Kind.LEAF_RENEWED], id="after its end"),
        pytest.param(
            237,
            [Kind.NEXT_AUTHORITY_MADE, Kind.BUNDLE_PUBLISHED, Kind.NEXT_AUTHORITY_PUBLISHED, Kind.LEAF_RENEWED],
            id="a week before two thirds of the authority's life",
        ),
    ],
)
def test_when_things_are_due(model: Model, days: float, kinds: list[Kind]) -> None:
    """Two thirds of a life; the next authority is made anew a week before, so that it begins young."""
    model.advance(days=days)
    assert model.kinds(len(FIRST)) == kinds
    assert model.agrees()


def test_an_authority_is_replaced_in_order(model: Model) -> None:
    """At two thirds the next becomes the current; the one before stays in the bundle for a leaf's life, then goes."""
    model.live(237)
    coming = model.stored.next.held.certificate
    gone = model.stored.current.held.certificate
    model.live(6)
    begin = len(model.taken)
    model.advance(days=1)
    assert model.kinds(begin) == [
        Kind.AUTHORITY_PROMOTED,
        Kind.BUNDLE_PUBLISHED,
        Kind.NEXT_AUTHORITY_PUBLISHED,
        Kind.LEAF_RENEWED,
    ]
    assert not any(step.amiss for step in model.taken)
    assert model.stored.current.held.certificate == coming
    assert all(gone in certificates_in(bundle) for bundle in model.entries)
    model.advance(days=31)
    assert not any(gone in certificates_in(bundle) for bundle in (*model.entries, model.leaf["ca.crt"]))


def test_the_next_authority_waits_for_its_notice(model: Model) -> None:
    """Made late, because nobody ran for months, the next authority is published for 24 h before it signs."""
    model.now += timedelta(days=300)
    model.settle()
    current = model.stored.current.held
    rest = model.advance(hours=23)
    assert (rest.kind, rest.until) == (Kind.AUTHORITY_PROMOTED, NOW + timedelta(days=301))
    assert model.stored.current.held.certificate == current.certificate
    model.advance(hours=1, seconds=1)
    assert model.stored.current.held.certificate != current.certificate


def test_the_notice_counts_from_publication(model: Model) -> None:
    """While one entry can't be written, the next authority counts as unpublished, however old it is."""
    model.now += timedelta(days=300)
    model.unpublishable = True
    model.settle()
    current = model.stored.current.held.certificate
    model.advance(days=5)
    assert model.stored.current.held.certificate == current
    model.unpublishable = False
    model.advance(seconds=1)
    model.advance(hours=23)
    assert model.stored.current.held.certificate == current
    model.advance(hours=2)
    assert model.stored.current.held.certificate != current


def test_a_leaf_is_renewed_though_nothing_can_be_published(model: Model) -> None:
    """A configuration that refuses our patch doesn't keep a leaf of a believed authority from being renewed."""
    model.entries[1] += b"\n"
    model.unpublishable = True
    rest = model.advance(days=21)
    assert model.kinds(len(FIRST)) == [Kind.LEAF_RENEWED]
    assert (rest.kind, rest.amiss) == (Kind.BUNDLE_PUBLISHED, True)


def test_no_leaf_before_everybody_believes_its_authority(model: Model) -> None:
    """With an entry that doesn't believe the current authority, an expired leaf waits, and the reason is given."""
    model.entries[1] = b""
    model.unpublishable = True
    rest = model.advance(days=31)
    assert model.kinds(len(FIRST)) == []
    assert "not every webhook entry believes the current authority yet" in rest.reason
    model.unpublishable = False
    model.settle()
    assert model.agrees()


def _truncate(key: str, where: str = "authorities") -> Callable[[Model], None]:
    def harm(model: Model) -> None:
        data: dict[str, bytes] = getattr(model, where)
        data[key] = data[key][: len(data[key]) // 2]

    return harm


def _put(where: str, **change: bytes | None) -> Callable[[Model], None]:
    keys = {key.replace("_", "."): value for key, value in change.items()}
    return lambda model: apply(getattr(model, where), keys)


def _foreign_leaf(model: Model, *, hosts: tuple[str, ...] = HOSTS, own: bool = False, days: float = 0) -> None:
    draw = drawing("foreign")
    now = model.now + timedelta(days=days)
    authority = model.stored.current.held if own else make_authority(now, *draw())
    leaf = make_leaf(authority, hosts, now, *draw(), timedelta(days=30))
    apply(model.leaf, write_leaf(leaf, model.leaf["ca.crt"]))


def _authority(name: str, days: float) -> Callable[[Model], None]:
    def harm(model: Model) -> None:
        pair = make_authority(model.now + timedelta(days=days), *drawing(f"{name}{days}")())
        apply(model.authorities, write_current(pair) if name == "current" else write_next(pair))

    return harm


def _leaf_as_authority(model: Model) -> None:
    draw = drawing("leaf as authority")
    apply(model.authorities, write_current(make_leaf(model.stored.next.held, HOSTS, model.now, *draw())))


PROMOTED, MADE, NEXT_MADE, RENEWED = (
    Kind.AUTHORITY_PROMOTED,
    Kind.AUTHORITY_MADE,
    Kind.NEXT_AUTHORITY_MADE,
    Kind.LEAF_RENEWED,
)

BROKEN = [
    pytest.param(_put("leaf", tls_crt=b"", tls_key=b""), RENEWED, "leaf is missing", id="the leaf is gone"),
    pytest.param(
        _put("leaf", tls_key=b""), RENEWED, "leaf key: must be an unencrypted PEM key", id="the leaf's key is gone"
    ),
    pytest.param(_truncate("tls.crt", "leaf"), RENEWED, "can't be parsed", id="the leaf is cut off"),
    pytest.param(_truncate("tls.key", "leaf"), RENEWED, "can't be parsed", id="the leaf's key is cut off"),
    pytest.param(_put("leaf", tls_crt=b"#" * 70_000), RENEWED, "must be at most 65536 bytes", id="the leaf is huge"),
    pytest.param(
        _put("leaf", tls_crt=b"-----BEGIN CERTIFICATE-----\n" * 9),
        RENEWED,
        "must be at most 8 certificates",
        id="the leaf is nine certificates",
    ),
    pytest.param(_put("leaf", tls_key=RSA_KEY), RENEWED, "must be ECDSA", id="the leaf's key is of another kind"),
    pytest.param(
        lambda model: apply(model.leaf, {"tls.key": model.stored.current.held.key_pem}),
        RENEWED,
        "got the key of another",
        id="the leaf's key is another's",
    ),
    pytest.param(_foreign_leaf, RENEWED, "must be signed by the current authority", id="the leaf is someone else's"),
    pytest.param(
        lambda model: _foreign_leaf(model, hosts=("example.com",), own=True),
        RENEWED,
        'must be good for "lockstep-policy.lockstep-system.svc"',
        id="the leaf is for other hosts",
    ),
    pytest.param(
        lambda model: _foreign_leaf(model, own=True, days=1),
        RENEWED,
        "must be valid already",
        id="the leaf is of the future",
    ),
    pytest.param(
        lambda model: setattr(model, "now", model.now + timedelta(days=31)),
        RENEWED,
        "must not be expired",
        id="the leaf is expired",
    ),
    pytest.param(
        lambda model: setattr(model, "revoked", frozenset({model.stored.leaf.held.certificate.serial_number})),
        RENEWED,
        "leaf is revoked",
        id="the leaf is revoked",
    ),
    pytest.param(
        lambda model: setattr(model, "revoked", frozenset({model.stored.current.held.certificate.serial_number})),
        PROMOTED,
        "current is revoked",
        id="the current authority is revoked",
    ),
    pytest.param(
        lambda model: setattr(model, "revoked", frozenset({model.stored.next.held.certificate.serial_number})),
        NEXT_MADE,
        "next is revoked",
        id="the next authority is revoked",
    ),
    pytest.param(_truncate("current.crt"), PROMOTED, "can't be parsed", id="the current authority is cut off"),
    pytest.param(_truncate("current.key"), PROMOTED, "can't be parsed", id="the current authority's key is cut off"),
    pytest.param(
        _put("authorities", current_crt=None, current_key=None),
        PROMOTED,
        "current is missing",
        id="the current authority is gone",
    ),
    pytest.param(
        lambda model: apply(model.authorities, {"current.key": model.stored.next.held.key_pem}),
        PROMOTED,
        "got the key of another",
        id="the current authority's key is another's",
    ),
    pytest.param(_authority("current", -400), PROMOTED, "must not be expired", id="the current authority is expired"),
    pytest.param(
        _authority("current", 1), PROMOTED, "must be valid already", id="the current authority is of the future"
    ),
    pytest.param(
        _leaf_as_authority, PROMOTED, "got a certificate that may not sign", id="the current authority is none"
    ),
    pytest.param(_truncate("next.crt"), NEXT_MADE, "can't be parsed", id="the next authority is cut off"),
    pytest.param(
        _put("authorities", next_key=b"x"), NEXT_MADE, "can't be parsed", id="the next authority's key is none"
    ),
    pytest.param(_authority("next", -400), NEXT_MADE, "must not be expired", id="the next authority is expired"),
    pytest.param(_authority("next", 1), NEXT_MADE, "must be valid already", id="the next authority is of the future"),
    pytest.param(
        lambda model: model.authorities.clear(),
        MADE,
        "current is missing, next is missing",
        id="both authorities are gone",
    ),
    pytest.param(
        lambda model: (_truncate("current.key")(model), _truncate("next.key")(model)),
        MADE,
        "can't be parsed",
        id="both authorities' keys are cut off",
    ),
    pytest.param(
        _put("leaf", ca_crt=b""),
        Kind.BUNDLE_WRITTEN,
        "is not the published one",
        id="the bundle beside the leaf is gone",
    ),
    pytest.param(
        lambda model: setattr(model, "entries", [b"", b"x"]),
        Kind.BUNDLE_PUBLISHED,
        "2 of 2 webhook entries have another bundle",
        id="the published bundles are gone",
    ),
]


@pytest.mark.parametrize(("harm", "kind", "reason"), BROKEN)
def test_broken_material_is_replaced(model: Model, harm: Callable[[Model], object], kind: Kind, reason: str) -> None:
    """Whatever is broken: the step that mends it is named with its reason, and the end is a working chain."""
    model.advance(days=1)
    harm(model)
    step = model.decision
    assert not isinstance(step, Rest)
    assert step.kind is kind
    assert reason in step.reason
    rest = model.settle()
    assert model.agrees()
    assert not rest.amiss
    assert model.stored.current.held != model.stored.next.held


@pytest.mark.parametrize(("harm", "kind", "reason"), [case for case in BROKEN if case.values[1] in (PROMOTED, MADE)])
def test_servers_are_believed_while_a_broken_authority_is_replaced(
    model: Model, harm: Callable[[Model], object], kind: Kind, reason: str
) -> None:
    """Servers get a new leaf minutes later than the Secret; all that time their old one is believed."""
    del kind, reason
    old = model.stored.leaf.held.certificate
    model.after_step = lambda: _assert_believed(model, old)
    model.advance(days=1)
    harm(model)
    model.settle()
    model.advance(minutes=5)


def _assert_believed(model: Model, leaf: object) -> None:
    leaves = [leaf, model.stored.leaf.held.certificate]
    for bundle in model.entries:
        assert all(believed(one, certificates_in(bundle), model.now) for one in leaves)  # type: ignore[arg-type]


def test_nobody_gets_into_the_bundle_by_way_of_a_secret(model: Model) -> None:
    """A stranger's leaf with its authority beside it, while ours are broken: the authority is not published for it."""
    draw = drawing("stranger")
    authority = make_authority(model.now, *draw())
    apply(model.leaf, write_leaf(make_leaf(authority, HOSTS, model.now, *draw()), authority.certificate_pem))
    model.authorities.clear()
    model.settle()
    assert model.agrees()
    assert not any(
        authority.certificate in certificates_in(bundle) for bundle in (*model.entries, model.leaf["ca.crt"])
    )


def test_a_revoked_authority_leaves_the_bundle(model: Model) -> None:
    """Ten minutes after an authority is revoked, when servers have their new leaf, nobody believes it any more."""
    gone = model.stored.current.held.certificate
    model.revoked = frozenset({gone.serial_number})
    model.settle()
    assert all(gone in certificates_in(bundle) for bundle in model.entries)
    model.advance(minutes=11)
    assert not any(gone in certificates_in(bundle) for bundle in (*model.entries, model.leaf["ca.crt"]))
    assert model.agrees()


def test_an_authority_revoked_after_its_time_goes_soon(model: Model) -> None:
    """One that signs no more and would stay for weeks goes within ten minutes once it is revoked."""
    gone = model.stored.current.held.certificate
    for days in (237, 7):
        model.advance(days=days)
    model.revoked = frozenset({gone.serial_number})
    model.settle()
    model.advance(minutes=11)
    assert not any(gone in certificates_in(bundle) for bundle in model.entries)


@pytest.mark.parametrize(
    "step",
    [timedelta(days=-400), timedelta(days=-2), timedelta(minutes=-4), timedelta(days=25), timedelta(days=500)],
    ids=str,
)
def test_the_clock_is_set(model: Model, step: timedelta) -> None:
    """Set back or forward by any amount, and back again: each time the end is a chain that is valid then."""
    for change in (step, -step):
        model.now += change
        rest = model.settle()
        assert model.agrees()
        assert rest.until > model.now
        stored = model.stored
        assert valid(stored.current.held.certificate, model.now)
        assert valid(stored.next.held.certificate, model.now)


def test_a_note_from_the_future_is_made_anew(model: Model) -> None:
    """With the clock set back behind the publication of the next authority, its notice begins again."""
    serial = model.stored.next.held.certificate.serial_number
    model.authorities["next.published"] = f"{serial:x} 2027-03-01T00:00:00+00:00\n".encode()
    model.settle()
    assert (model.taken[-1].kind, model.taken[-1].reason) == (Kind.NEXT_AUTHORITY_PUBLISHED, "the clock was set back")
    published = model.stored.published
    assert published is not None
    assert published.at == model.now


def test_c51_bundles_changed_by_others_are_put_right(model: Model) -> None:
    """C51: blanked, foreign, with one certificate too many; an entry more or less: every one has ours again."""
    bundle = model.entries[0]
    for entries in ([b"", bundle], [bundle, bundle + bundle], [b"foreign"] * 3, [b""]):
        model.entries = entries
        model.settle()
        assert model.entries == [bundle] * len(entries)


def test_fifty_rotations() -> None:
    """Fifty authorities in a row: at every step each leaf that may still be served is believed by whoever last looked.

    Servers may serve any leaf that is not expired (a kubelet that was cut off), callers may have looked 24 hours ago.
    """
    model = Model()
    leaves: list[x509.Certificate] = []
    published: list[tuple[datetime, bytes]] = []

    def witness() -> None:
        if model.stored.leaf.pair and (not leaves or leaves[-1] != model.stored.leaf.pair.certificate):
            leaves.append(model.stored.leaf.pair.certificate)
        published.append((model.now, model.entries[0]))
        check(model, leaves, published)

    model.after_step = witness
    rest = model.settle()
    authorities = {model.stored.current.held.certificate.serial_number}
    while len(authorities) <= ROTATIONS:
        model.now = max(rest.until, model.now)
        rest = model.settle()
        assert not rest.amiss
        authorities.add(model.stored.current.held.certificate.serial_number)
    assert not any(step.amiss for step in model.taken)
    assert len(leaves) > ROTATIONS * 10


def check(model: Model, leaves: list[x509.Certificate], published: list[tuple[datetime, bytes]]) -> None:
    """Assert that every leaf that is not expired is believed, now and by the bundles of the last 24 hours."""
    recent = [bundle for at, bundle in published if at > model.now - timedelta(hours=24)]
    before = [bundle for at, bundle in published if at <= model.now - timedelta(hours=24)][-1:]
    in_use = [leaf for leaf in leaves if valid(leaf, model.now)]
    for bundle in {*before, *recent} if len(leaves) > 1 else {model.entries[0]}:
        assert all(believed(leaf, certificates_in(bundle), model.now) for leaf in in_use)


@pytest.mark.parametrize(
    "lives",
    [
        {"notice": timedelta(days=8)},
        {"lead": timedelta(days=200)},
        {"leaf": timedelta(days=400)},
        {"mounted": timedelta(0)},
        {"authority": timedelta(days=20)},
    ],
    ids=str,
)
def test_lives_that_would_not_do(lives: dict[str, timedelta]) -> None:
    """Durations under which renewal would never rest, or would break its notice, are refused."""
    with pytest.raises(ValueError, match="lives: must grow from mounted over notice and lead"):
        Lives(**lives)
