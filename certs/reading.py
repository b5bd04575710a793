"""PEM that others may have written: read with bounds, and refused with a reason."""

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.pair import Pair

MOST_BYTES = 64 << 10
"""More is not ours; parsing it only burns time (CVE-2024-12401)."""

MOST_CERTIFICATES = 8


class Damaged(Exception):  # noqa: N818 - reads as what the material is
    """Material that can't be used; str() says why and shows nothing of it."""


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Read a bundle in its order; an empty one has no certificates.

    Raises:
        Damaged: it is too large, has too many, or one is not a certificate.
    """
    if len(pem) > MOST_BYTES:
        raise Damaged(f"must be at most {MOST_BYTES} bytes, got {len(pem)}")
    if not pem.strip():
        return ()
    if pem.count(b"-----BEGIN ") > MOST_CERTIFICATES:
        raise Damaged(f"must be at most {MOST_CERTIFICATES} certificates, got more")
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise Damaged("must be PEM certificates, got something that can't be parsed") from None


def read_pair(certificate_pem: bytes, key_pem: bytes) -> Pair:
    """Read a certificate and its key.

    Raises:
        Damaged: one of them is missing or can't be parsed, or they don't belong together.
    """
    certificates = read_certificates(certificate_pem)
    if len(certificates) != 1:
        raise Damaged(f"must be one certificate, got {len(certificates)}")
    key = _read_key(key_pem)
    if key.public_key() != certificates[0].public_key():
        raise Damaged("must be a certificate with its key, got the key of another")
    return Pair(certificates[0], key)


def _read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    if len(pem) > MOST_BYTES:
        raise Damaged(f"key: must be at most {MOST_BYTES} bytes, got {len(pem)}")
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError):  # TypeError: it is encrypted
        raise Damaged("key: must be an unencrypted PEM key, got something that can't be parsed") from None
    except Exception:  # noqa: BLE001 - UnsupportedAlgorithm and what else a parser may think of: a key we never made
        raise Damaged("key: must be ECDSA, got another kind") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Damaged("key: must be ECDSA, got another kind")
    return key
