"""The certificate that the webhook serves."""

import ipaddress
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import HEAD_START
from certs.pair import Pair

LEAF_LIFE = timedelta(days=30)

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_HOST_LENGTH = 253


def make_leaf(  # noqa: PLR0913, PLR0917 - what a certificate is made of
    authority: Pair,
    hosts: Sequence[str],
    now: datetime,
    key: ec.EllipticCurvePrivateKey,
    serial: int,
    life: timedelta = LEAF_LIFE,
) -> Pair:
    """Make a server's certificate for `hosts`, signed by `authority` and never valid longer than it.

    Args:
        authority: who signs.
        hosts: DNS names and IP addresses, at least one; repeated ones count once.
        now: the present, with its time zone.
        key: the certificate's key.
        serial: a random number of at most 159 bits, `x509.random_serial_number()`.
        life: how long it is valid from now on, at most.

    Raises:
        ValueError: there is no host, or one is neither a DNS name nor an address; str() names it.
    """
    if not hosts:
        raise ValueError("hosts: must have at least one")
    names = x509.SubjectAlternativeName([general_name(host) for host in dict.fromkeys(hosts)])
    issuer = authority.certificate
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(max(now - HEAD_START, issuer.not_valid_before_utc))
        .not_valid_after(min(now + life, issuer.not_valid_after_utc))
        .add_extension(names, critical=True)  # RFC 5280 4.2.1.6: critical where the subject is empty
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_authority_identifier(authority), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate, key)


def _authority_identifier(authority: Pair) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())


def hosts_of(certificate: x509.Certificate) -> frozenset[str]:
    """Give the DNS names and addresses that a certificate is good for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    return frozenset(str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress))


def general_name(host: str) -> x509.GeneralName:
    """A host as it stands in a certificate."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if _HOST.fullmatch(host) and len(host) <= _HOST_LENGTH:
            return x509.DNSName(host)
        raise ValueError(f'host: must be a DNS name in lower case or an IP address, got "{host}"') from None
