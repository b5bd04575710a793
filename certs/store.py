"""What the two Secrets hold: the layout of their keys, read into values and written from them.

The leaf's Secret looks as cert-manager's do (`tls.crt`, `tls.key`, `ca.crt`), so that either may fill it. The
authorities' Secret is mounted nowhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.pair import Pair
from certs.reading import MOST_CERTIFICATES, Damaged, read_certificates, read_pair

LEAF, LEAF_KEY, BUNDLE = "tls.crt", "tls.key", "ca.crt"
CURRENT, CURRENT_KEY = "current.crt", "current.key"
NEXT, NEXT_KEY, PUBLISHED = "next.crt", "next.key", "next.published"
RETIRED, RETIRED_UNTIL = "previous.crt", "previous.until"

OF_LEAF = (LEAF, LEAF_KEY, BUNDLE)
OF_AUTHORITIES = (CURRENT, CURRENT_KEY, NEXT, NEXT_KEY, PUBLISHED, RETIRED, RETIRED_UNTIL)

MOST_RETIRED = MOST_CERTIFICATES - 2
"""Beside the current and the next authority, in a bundle that we would still read."""

Data = Mapping[str, bytes]
"""A Secret's `data`, decoded."""

Change = Mapping[str, bytes | None]
"""Keys of a Secret to set, or to remove."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a pair.

    Attributes:
        pair: what stands there, `None` where nothing does or nothing that can be read.
        damage: why it can't be read, empty where it can or where nothing stands there.
        certificate: the certificate where that much can be read.
    """

    pair: Pair | None = None
    damage: str = ""
    certificate: x509.Certificate | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing stands there."""
        return self.pair is None and not self.damage

    @property
    def held(self) -> Pair:
        """The pair, for those who have made sure that there is one.

        Raises:
            LookupError: there is none.
        """
        if self.pair is None:
            raise LookupError(self.damage or "nothing stands here")
        return self.pair


@dataclass(frozen=True, slots=True)
class Retired:
    """An authority that signs no more and is still believed until some time."""

    certificate: x509.Certificate
    until: datetime


@dataclass(frozen=True, slots=True)
class Publication:
    """When an authority was first seen in every configuration."""

    serial: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """Both Secrets, read.

    Attributes:
        current: the authority that signs.
        next: the authority that will.
        published: of the next authority.
        retired: those that have signed before, oldest first.
        leaf: what is served.
        bundle: the authorities beside it, as they stand there.
    """

    current: Slot
    next: Slot
    published: Publication | None
    retired: tuple[Retired, ...]
    leaf: Slot
    bundle: bytes


def read_stored(authorities: Data, leaf: Data) -> Stored:
    """Read both Secrets; what is damaged is said in its place, nothing is raised."""
    return Stored(
        current=_slot(authorities.get(CURRENT, b""), authorities.get(CURRENT_KEY, b"")),
        next=_slot(authorities.get(NEXT, b""), authorities.get(NEXT_KEY, b"")),
        published=_publication(authorities.get(PUBLISHED, b"")),
        retired=_retired(authorities.get(RETIRED, b""), authorities.get(RETIRED_UNTIL, b"")),
        leaf=_slot(leaf.get(LEAF, b""), leaf.get(LEAF_KEY, b"")),
        bundle=leaf.get(BUNDLE, b""),
    )


def certificates_in(bundle: bytes) -> tuple[x509.Certificate, ...]:
    """Give the certificates of a bundle, none where it can't be read."""
    try:
        return read_certificates(bundle)
    except Damaged:
        return ()


def write_current(pair: Pair) -> dict[str, bytes | None]:
    """Write the current authority."""
    return {CURRENT: pair.certificate_pem, CURRENT_KEY: pair.key_pem}


def write_next(pair: Pair) -> dict[str, bytes | None]:
    """Write a next authority that is not published yet."""
    return {NEXT: pair.certificate_pem, NEXT_KEY: pair.key_pem, PUBLISHED: None}


def write_published(serial: int, at: datetime) -> dict[str, bytes | None]:
    """Write when the next authority was published."""
    return {PUBLISHED: f"{serial:x} {_time_text(at)}\n".encode()}


def write_retired(retired: tuple[Retired, ...]) -> dict[str, bytes | None]:
    """Write the authorities that sign no more."""
    if not retired:
        return {RETIRED: None, RETIRED_UNTIL: None}
    lines = [f"{one.certificate.serial_number:x} {_time_text(one.until)}\n" for one in retired]
    return {RETIRED: b"".join(pem_of(one.certificate) for one in retired), RETIRED_UNTIL: "".join(lines).encode()}


def write_leaf(pair: Pair, bundle: bytes) -> dict[str, bytes | None]:
    """Write the leaf with the bundle that it verifies against."""
    return {LEAF: pair.certificate_pem, LEAF_KEY: pair.key_pem, BUNDLE: bundle}


def pem_of(certificate: x509.Certificate) -> bytes:
    """Render a certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def _slot(certificate: bytes, key: bytes) -> Slot:
    if not certificate.strip() and not key.strip():
        return Slot()
    found = certificates_in(certificate)
    alone = found[0] if len(found) == 1 else None
    try:
        return Slot(read_pair(certificate, key), certificate=alone)
    except Damaged as error:
        return Slot(damage=str(error), certificate=alone)


def _publication(text: bytes) -> Publication | None:
    times = _times(text)
    return next((Publication(serial, at) for serial, at in times.items()), None)


def _retired(pem: bytes, until: bytes) -> tuple[Retired, ...]:
    times = _times(until)
    certificates = certificates_in(pem)[-MOST_RETIRED:]
    return tuple(Retired(one, times.get(one.serial_number, one.not_valid_after_utc)) for one in certificates)


def _times(text: bytes) -> dict[int, datetime]:
    """Read lines of `<serial in hex> <time>`; a line that is something else counts as not there."""
    found: dict[int, datetime] = {}
    for line in text[:4096].decode("ascii", "replace").splitlines():
        serial, _, time = line.partition(" ")
        try:
            at = datetime.fromisoformat(time)
            found[int(serial, 16)] = at if at.tzinfo else at.replace(tzinfo=UTC)
        except ValueError:
            continue
    return found


def _time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
