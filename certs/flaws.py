"""What is wrong with a certificate that can be read."""

from collections.abc import Iterable
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.leaf import general_name, hosts_of


def find_authority_flaw(certificate: x509.Certificate, now: datetime) -> str:
    """Say why nobody should sign with an authority; empty when one may."""
    if not _may_sign(certificate):
        return "must be an authority, got a certificate that may not sign"
    if not signed_by(certificate, certificate):
        return "must be self-signed, got the signature of another"
    return _find_time_flaw(certificate, now)


def find_leaf_flaw(certificate: x509.Certificate, hosts: Iterable[str], now: datetime) -> str:
    """Say why nobody should be served this certificate under some hosts, whoever signed it; empty when they may."""
    missing = sorted({str(general_name(host).value) for host in hosts} - hosts_of(certificate))
    if missing:
        return f'must be good for "{missing[0]}", got a certificate for others'
    if not _may_serve(certificate):
        return "must be for servers, got a certificate for something else"
    return _find_time_flaw(certificate, now)


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Tell whether `issuer` signed a certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _find_time_flaw(certificate: x509.Certificate, now: datetime) -> str:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= end:
        return f"must not be expired, got its end {end:%Y-%m-%dT%H:%M:%SZ}"
    if now < begin:
        return f"must be valid already, got its begin {begin:%Y-%m-%dT%H:%M:%SZ}"
    return ""


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _may_serve(certificate: x509.Certificate) -> bool:
    try:
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return ExtendedKeyUsageOID.SERVER_AUTH in uses
