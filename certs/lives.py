"""How long certificates live and how long before its first use an authority is published."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from certs.authority import AUTHORITY_LIFE, HEAD_START
from certs.leaf import LEAF_LIFE


@dataclass(frozen=True, slots=True)
class Lives:
    """The durations that renewal goes by.

    Attributes:
        authority: life of an authority; it signs for two thirds of it.
        leaf: life of a served certificate; it is replaced after two thirds of it.
        notice: from the moment the next authority stands in every configuration to its first use, at the least.
        lead: how long before its first use the next authority is made anew if it is older, so that it begins young.
        mounted: how long a kubelet may take to bring a changed Secret into its pods.
    """

    authority: timedelta = AUTHORITY_LIFE
    leaf: timedelta = LEAF_LIFE
    notice: timedelta = timedelta(hours=24)
    lead: timedelta = timedelta(days=7)
    mounted: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        """Refuse durations under which renewal would never come to rest or would break its notice."""
        if not timedelta() < self.mounted <= self.notice < self.lead < self.authority / 3 or self.leaf > self.authority:
            raise ValueError(
                "lives: must grow from mounted over notice and lead to a third of authority, and leaf must be at most "
                f"authority, got {self}"
            )


def made_at(certificate: x509.Certificate) -> datetime:
    """Give the time at which one of our certificates was made."""
    return certificate.not_valid_before_utc + HEAD_START


def due_at(certificate: x509.Certificate) -> datetime:
    """Give the time at which two thirds of a certificate's life are over."""
    begun = certificate.not_valid_before_utc
    return begun + (certificate.not_valid_after_utc - begun) * 2 / 3
