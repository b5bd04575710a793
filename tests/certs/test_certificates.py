"""The authority and its leaves: what they say, how long, and that OpenSSL believes them in a handshake."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import make_authority
from certs.leaf import make_leaf
from certs.pair import Pair, draw_key
from serving.tls import Files, find_trouble, load_context, read_leaf

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOSTS = ("localhost", "127.0.0.1", "::1", "lockstep.lockstep-system.svc")


def _authority(now: datetime = NOW) -> Pair:
    return make_authority(now, draw_key(), x509.random_serial_number())


def _leaf(authority: Pair, now: datetime = NOW, hosts: tuple[str, ...] = HOSTS) -> Pair:
    return make_leaf(authority, hosts, now, draw_key(), x509.random_serial_number())


def test_c53_validity_begins_in_the_past() -> None:
    """C53: both begin at least 5 minutes before now, for clocks that are behind."""
    authority = _authority()
    for pair in (authority, _leaf(authority)):
        assert pair.certificate.not_valid_before_utc <= NOW - timedelta(minutes=5)


def test_lives() -> None:
    """An authority lives a year, a leaf 30 days."""
    authority = _authority()
    assert authority.certificate.not_valid_after_utc == NOW + timedelta(days=365)
    assert _leaf(authority).certificate.not_valid_after_utc == NOW + timedelta(days=30)


@pytest.mark.parametrize("age", [timedelta(days=-1), timedelta(days=350), timedelta(days=364)], ids=str)
def test_c53_a_leaf_stays_within_its_authority(age: timedelta) -> None:
    """C53: a leaf neither begins before its authority nor outlives it."""
    authority = _authority()
    certificate, issuer = _leaf(authority, NOW + age).certificate, authority.certificate
    assert certificate.not_valid_before_utc >= issuer.not_valid_before_utc
    assert certificate.not_valid_after_utc <= issuer.not_valid_after_utc


def test_what_an_authority_may() -> None:
    """It signs leaves, no further authorities, and serves nothing."""
    extensions = _authority().certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)


def test_what_a_leaf_may() -> None:
    """It serves under its hosts and does nothing else; its subject is empty, so the names are critical."""
    certificate = _leaf(_authority()).certificate
    extensions = certificate.extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.critical
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost", "lockstep.lockstep-system.svc"]
    assert names.value.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    ]
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert list(certificate.subject) == []


def test_identifiers_tie_a_leaf_to_its_authority() -> None:
    """Key identifiers are there, so that OpenSSL finds the right one of two authorities in a bundle."""
    authority = _authority()
    issuer = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    signer = _leaf(authority).certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert signer.key_identifier == issuer.digest


def test_two_authorities_have_two_names() -> None:
    """The subject is unique."""
    assert _authority().certificate.subject != _authority().certificate.subject


def test_keys_are_p256_in_pkcs8() -> None:
    """A key is ECDSA P-256, written as unencrypted PKCS #8 and read back the same."""
    leaf = _leaf(_authority())
    assert leaf.key_pem.startswith(b"-----BEGIN PRIVATE KEY-----\n")
    read = serialization.load_pem_private_key(leaf.key_pem, None)
    assert isinstance(read, ec.EllipticCurvePrivateKey)
    assert read.curve.name == "secp256r1"
    assert read.private_numbers() == leaf.key.private_numbers()
    assert x509.load_pem_x509_certificate(leaf.certificate_pem) == leaf.certificate


def test_repeated_hosts_count_once() -> None:
    """A host given twice stands once."""
    certificate = _leaf(_authority(), hosts=("a", "b", "a")).certificate
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a", "b"]


@pytest.mark.parametrize(
    "host",
    ["", " ", "UPPER", "under_score", "a..b", "-a", "a-", "a.*.b", "münchen", "a" * 64, "a." * 127 + "a", "::g", "a:1"],
)
def test_hosts_that_are_none(host: str) -> None:
    """What is neither a DNS name nor an address is refused by name."""
    with pytest.raises(ValueError, match="host: must be a DNS name in lower case or an IP address, got ") as caught:
        _leaf(_authority(), hosts=("fine", host))
    assert str(caught.value).endswith(f'"{host}"')


def test_no_hosts() -> None:
    """A certificate for nobody is refused."""
    with pytest.raises(ValueError, match="hosts: must have at least one"):
        _leaf(_authority(), hosts=())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A pair of now, with its authority beside it."""
    now = datetime.now(UTC)
    authority = _authority(now)
    leaf = _leaf(authority, now)
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    (tmp_path / "tls.crt").write_bytes(leaf.certificate_pem)
    (tmp_path / "tls.key").write_bytes(leaf.key_pem)
    return Files(tmp_path / "tls.crt", tmp_path / "tls.key")


def test_a_handshake_believes_them(files: Files) -> None:
    """A client that trusts the authority talks to the leaf under each of its hosts."""
    context = load_context(files)
    assert find_trouble(context, files.authority, HOSTS) == ""
    leaf = read_leaf(context, files.certificate)
    assert leaf.names == ("localhost", "127.0.0.1", "0:0:0:0:0:0:0:1", "lockstep.lockstep-system.svc")
    assert 29 * 86400 < leaf.not_after - datetime.now(UTC).timestamp() <= 30 * 86400


def test_a_strict_client_believes_them(files: Files) -> None:
    """RFC 5280 to the letter, as newer Pythons and Go check it."""
    strict = ssl.create_default_context(cafile=files.authority)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    context = load_context(files)
    server_in, client_in = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(server_in, client_in, server_side=True)
    client = strict.wrap_bio(client_in, server_in, server_hostname="localhost")
    for side in (client, server, client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.getpeercert()


def test_two_authorities_in_one_bundle(files: Files) -> None:
    """With an older authority in front of the right one the leaf is still believed."""
    files.authority.write_bytes(_authority(datetime.now(UTC)).certificate_pem + files.authority.read_bytes())
    assert find_trouble(load_context(files), files.authority, HOSTS) == ""


def test_another_authority_is_not_believed(files: Files) -> None:
    """A leaf of someone else is told from ours."""
    files.authority.write_bytes(_authority(datetime.now(UTC)).certificate_pem)
    trouble = find_trouble(load_context(files), files.authority, HOSTS)
    assert trouble == f"certificate: must verify against {files.authority}, unable to get local issuer certificate"


@pytest.mark.parametrize(
    "content", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"#" * 70_000]
)
def test_an_authority_file_that_is_none(files: Files, content: bytes) -> None:
    """A broken bundle is trouble with a reason, not an exception."""
    files.authority.write_bytes(content)
    assert find_trouble(load_context(files), files.authority, HOSTS).count("must ") == 1


def test_a_certificate_without_hosts(files: Files) -> None:
    """No name at all is trouble of its own."""
    assert find_trouble(load_context(files), files.authority, ()) == "certificate: must have a host name"
