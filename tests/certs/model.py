"""Two Secrets and some webhook entries in memory, with a clock in hand: what renewal is played on."""

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from certs.flaws import signed_by
from certs.lives import Lives
from certs.renewal import decide
from certs.sight import Kind, Rest, Sight, Step
from certs.steps import OF_LEAF_SECRET, Draw, change_of
from certs.store import Change, Stored, certificates_in, read_stored

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTS = ("lockstep-webhook.lockstep-system.svc", "lockstep-policy.lockstep-system.svc")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def drawing(seed: str) -> Draw:
    """Draw the same keys and serial numbers each time: a test that fails, fails again."""
    luck = random.Random(seed)

    def draw() -> tuple[ec.EllipticCurvePrivateKey, int]:
        return ec.derive_private_key(luck.randrange(1, ORDER), ec.SECP256R1()), luck.getrandbits(159) | 1

    return draw


class Model:
    """An installation.

    Attributes:
        authorities: data of the Secret with the authorities.
        leaf: data of the Secret with the leaf.
        entries: bundle of each webhook entry.
        now: the time.
        taken: every step so far.
    """

    def __init__(self, seed: str = "model", lives: Lives | None = None) -> None:
        """Start as the manifests leave it: empty Secrets, entries without a bundle."""
        self.authorities: dict[str, bytes] = {}
        self.leaf: dict[str, bytes] = {}
        self.entries = [b"", b""]
        self.now, self.lives, self.draw = NOW, lives or Lives(), drawing(seed)
        self.revoked: frozenset[int] = frozenset()
        self.unpublishable = False
        self.taken: list[Step] = []
        self.after_step: Callable[[], None] = lambda: None

    @property
    def stored(self) -> Stored:
        """What both Secrets say."""
        return read_stored(self.authorities, self.leaf)

    @property
    def sight(self) -> Sight:
        """What renewal decides from."""
        return Sight(self.stored, tuple(self.entries), HOSTS, self.revoked)

    @property
    def decision(self) -> Step | Rest:
        """What renewal decides now."""
        return decide(self.sight, self.now, self.lives, unpublishable=self.unpublishable)

    def settle(self) -> Rest:
        """Take steps until there is none."""
        for _ in range(20):
            step = self.decision
            if isinstance(step, Rest):
                return step
            self.take(step)
        raise AssertionError(f"must come to rest, got {self.taken[-20:]}")

    def take(self, step: Step) -> None:
        """Take one step."""
        self.taken.append(step)
        if step.kind is Kind.BUNDLE_PUBLISHED:
            self.entries = [step.bundle for _ in self.entries]
        else:
            change = change_of(step, self.sight, self.now, self.lives, self.draw)
            apply(self.leaf if step.kind in OF_LEAF_SECRET else self.authorities, change)
        self.after_step()

    def kinds(self, since: int = 0) -> list[Kind]:
        """The kinds of the steps taken."""
        return [step.kind for step in self.taken[since:]]

    def advance(self, **time: float) -> Rest:
        """Let time pass, then settle."""
        self.now += timedelta(**time)
        return self.settle()

    def live(self, days: float) -> Rest:
        """Let time pass and take every step when it is due."""
        end = self.now + timedelta(days=days)
        rest = self.settle()
        while rest.until < end:
            self.now = rest.until
            rest = self.settle()
        self.now = end
        return self.settle()

    def agrees(self) -> bool:
        """Does every entry believe the leaf, and does the bundle beside it say so too?"""
        leaf = self.stored.leaf.held.certificate
        bundles = [*self.entries, self.leaf["ca.crt"]]
        return all(believed(leaf, certificates_in(bundle), self.now) for bundle in bundles)


def apply(data: dict[str, bytes], change: Change) -> None:
    """Set and remove keys."""
    for key, value in change.items():
        if value is None:
            data.pop(key, None)
        else:
            data[key] = value


def believed(leaf: x509.Certificate, authorities: tuple[x509.Certificate, ...], now: datetime) -> bool:
    """Would a caller who trusts these authorities believe a leaf at some time?"""
    signers = [one for one in authorities if signed_by(leaf, one)]
    return any(valid(one, now) for one in signers) and valid(leaf, now)


def valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Is it valid at some time?"""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
