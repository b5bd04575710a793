"""The certificate that is served: loaded from files, checked with a handshake in memory, replaced while serving.

A new pair always gets a new `ssl.SSLContext`: loading into a live one leaves it without a certificate when the load
fails half-way, and keeps serving the old certificate when the kind of key changes (seen with CPython 3.11 and
OpenSSL 3.0). The listening context hands each new connection the current one in its SNI callback, which OpenSSL calls
for every handshake, with or without a server name. Established connections keep what they have.

`cryptography` is not imported: what a certificate says is read from the handshake.
"""

import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

MOST_PEM_BYTES = 64 << 10
"""A larger file is not a certificate of ours; parsing one only burns time (CVE-2024-12401)."""

_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for


class Unusable(Exception):  # noqa: N818 - reads as what the files are
    """The files hold no pair that can be served; str() says why."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the served pair lies, and beside it the authorities that callers trust."""

    certificate: Path
    key: Path

    @property
    def authority(self) -> Path:
        """`ca.crt` beside the certificate, as in a Secret of type kubernetes.io/tls."""
        return self.certificate.parent / "ca.crt"


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the served certificate says: names it is for, Unix time of its end."""

    names: tuple[str, ...]
    not_after: int


def make_context() -> ssl.SSLContext:
    """Make a server's context without a pair.

    TLS 1.2 or newer, HTTP/1.1 only, no session tickets: API servers keep no sessions.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_context(files: Files) -> ssl.SSLContext:
    """Make a server's context from the pair in `files`.

    Raises:
        Unusable: a file cannot be read or is too large, or the two are not a pair.
    """
    for path in (files.certificate, files.key):
        _check_readable(path)
    context = make_context()
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(files.certificate, files.key, password=lambda: "")
    except (ssl.SSLError, ValueError, OSError) as error:
        raise Unusable(
            f'{files.certificate}: must be a PEM certificate for the key "{files.key}", {_text(error)}'
        ) from error
    return context


def read_leaf(context: ssl.SSLContext, certificate: Path) -> Leaf:
    """Say what `context` serves, whoever signed it and whether or not it is valid now.

    Raises:
        Unusable: the handshake failed, or the file went away.
    """
    try:
        client = _client(cadata=certificate.read_text("ascii"))
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        client.check_hostname = False
        peer = _shake_hands(context, client, None)
    except (OSError, ValueError) as error:
        raise Unusable(f"{certificate}: must be readable, {_text(error)}") from error
    names = tuple(value for kind, value in _alternative_names(peer) if kind in ("DNS", "IP Address"))
    return Leaf(names, int(ssl.cert_time_to_seconds(str(peer["notAfter"]))))


def find_trouble(context: ssl.SSLContext, authority: Path, names: Sequence[str]) -> str:
    """Say why a caller that trusts the file `authority` would not talk to `context` under each of `names`.

    Empty when it would, or when there is no such file and so nothing that could be compared.
    """
    if not authority.exists():
        return ""
    if not names:
        return "certificate: must have a host name"
    try:
        _check_readable(authority)
        client = _client(cafile=authority)
        for name in names:
            _shake_hands(context, client, name)
    except Unusable as error:
        return str(error)
    except (OSError, ValueError) as error:
        return f"certificate: must verify against {authority}, {_text(error)}"
    return ""


def _alternative_names(peer: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    return cast("Iterable[tuple[str, str]]", peer.get("subjectAltName", ()))


def _client(*, cafile: Path | None = None, cadata: str | None = None) -> ssl.SSLContext:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cafile=cafile, cadata=cadata)
    return client


def _shake_hands(server_side: ssl.SSLContext, client_side: ssl.SSLContext, name: str | None) -> Mapping[str, object]:
    """Connect the two in memory and give the server's certificate as the client decodes it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    client = client_side.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [client, server]
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    return client.getpeercert() or {}


def _check_readable(path: Path) -> None:
    try:
        size = len(path.read_bytes())
    except OSError as error:
        raise Unusable(f"{path}: must be readable, {_text(error)}") from error
    if size > MOST_PEM_BYTES:
        raise Unusable(f"{path}: must be at most {MOST_PEM_BYTES} bytes, got {size}")


def _text(error: Exception) -> str:
    """An error in a few words, without the place in OpenSSL's source that raised it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, ssl.SSLError):
        return "one of them is not PEM"  # all that OpenSSL says of it is "PEM lib"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).lower()
