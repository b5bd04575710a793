"""What renewal looks at and what it comes to."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from certs.store import Retired, Stored, certificates_in


class Kind(StrEnum):
    """What a step does; the word is also the reason of its event."""

    AUTHORITY_MADE = "AuthorityMade"
    AUTHORITY_PROMOTED = "AuthorityPromoted"
    NEXT_AUTHORITY_MADE = "NextAuthorityMade"
    NEXT_AUTHORITY_PUBLISHED = "NextAuthorityPublished"
    PREVIOUS_AUTHORITY_DROPPED = "PreviousAuthorityDropped"
    BUNDLE_PUBLISHED = "BundlePublished"
    LEAF_RENEWED = "LeafRenewed"
    BUNDLE_WRITTEN = "BundleWritten"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to write.

    Attributes:
        kind: what.
        reason: why.
        amiss: whether something was wrong, and not just due.
        retired: the authorities that sign no more, once the step is done.
        bundle: the authorities that callers are to believe, once the step is done, as PEM.
    """

    kind: Kind
    reason: str
    amiss: bool = False
    retired: tuple[Retired, ...] = ()
    bundle: bytes = b""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to write now.

    Attributes:
        until: when that changes by itself; in the past where something else has to happen first.
        kind: the step that comes then.
        reason: why it is not done now.
        amiss: whether something stands in its way.
    """

    until: datetime
    kind: Kind
    reason: str
    amiss: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """What renewal decides from.

    Attributes:
        stored: both Secrets.
        published: the bundle of each webhook entry there is; none where there is no configuration.
        hosts: names and addresses that the leaf must be good for.
        revoked: serial numbers that must not be used any more.
    """

    stored: Stored
    published: tuple[bytes, ...]
    hosts: tuple[str, ...]
    revoked: frozenset[int] = frozenset()

    def believed(self, certificate: x509.Certificate) -> bool:
        """Tell whether every entry believes an authority."""
        return all(certificate in certificates_in(bundle) for bundle in self.published)
