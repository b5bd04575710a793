"""Certificates and keys of one control plane, made at run time and thrown away with it."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_VALID = dt.timedelta(days=2)
_SKEW = dt.timedelta(hours=1)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True)
class Certificates:
    """Files of one CA, one serving certificate for loopback and one key that signs service account tokens.

    `folder` holds `ca.crt`, `tls.crt`, `tls.key`, `sa.key`: the names that LWS looks for.
    """

    folder: Path

    @property
    def ca(self) -> Path:
        """The CA's certificate."""
        return self.folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        """The serving certificate; usable for a webhook under test too."""
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        """The serving certificate's key."""
        return self.folder / "tls.key"

    @property
    def service_accounts(self) -> Path:
        """The key that signs service account tokens."""
        return self.folder / "sa.key"


def create(folder: Path) -> Certificates:
    """Make all of them in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Certificates(folder)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _ca(ca_key)
    leaf_key = ec.generate_private_key(ec.SECP256R1())
    files.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(_leaf(leaf_key, ca, ca_key).public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(_pem(leaf_key))
    # The API server signs tokens with RS256 or ES256; RSA is what clusters use.
    files.service_accounts.write_bytes(_pem(rsa.generate_private_key(65537, 2048)))
    return files


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(name: str, issuer: x509.Name | None, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    builder = _builder("lockstep-test-ca", None, key.public_key()).add_extension(constraints, critical=True)
    return builder.sign(key, hashes.SHA256())


def _leaf(
    key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = [*map(x509.DNSName, _NAMES), *(x509.IPAddress(ipaddress.ip_address(a)) for a in _ADDRESSES)]
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = (
        _builder("localhost", ca.subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority, critical=False)
    )
    return builder.sign(ca_key, hashes.SHA256())
