"""The authority that signs the webhook's certificate."""

from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.pair import Pair

AUTHORITY_LIFE = timedelta(days=365)

HEAD_START = timedelta(minutes=5)
"""How far in the past a certificate begins, for clocks that are behind (case C53)."""


def make_authority(
    now: datetime, key: ec.EllipticCurvePrivateKey, serial: int, life: timedelta = AUTHORITY_LIFE
) -> Pair:
    """Make a self-signed authority that may sign leaves and nothing else.

    Its name carries its serial number: two authorities of one name and without key identifiers make OpenSSL pick the
    wrong one while both are trusted.

    Args:
        now: the present, with its time zone.
        key: the authority's key.
        serial: a random number of at most 159 bits, `x509.random_serial_number()`.
        life: how long it is valid from now on.
    """
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"lockstep authority {serial:x}")])
    public_key = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(now - HEAD_START)
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate, key)


def _key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
