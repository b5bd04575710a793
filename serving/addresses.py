"""Listening addresses as people write them, and the sockets for them."""

import errno
import re
import socket
from dataclasses import dataclass

_BACKLOG = 1024
_LAST_PORT = 65535
_WRITTEN = re.compile(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\[\]:]*)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; an empty host is every address of both families, port 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """The address as it is written, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read HOST:PORT, [IPV6]:PORT or :PORT.

    Raises:
        ValueError: it is none of these; str() says what was expected.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or int(found[3]) > _LAST_PORT:
        raise ValueError(f'must be HOST:PORT, [IPV6]:PORT or :PORT, got "{text}"')
    return Address(found[1] or found[2], int(found[3]))


def open_listener(address: Address, *, dual_stack: bool | None = None) -> socket.socket:
    """Bind and listen; where the host is empty on both families, or on the only one that this machine has.

    Args:
        address: where.
        dual_stack: whether one socket can serve both families; None asks the machine.

    Raises:
        OSError: the address cannot be had: in use, not of this machine, unknown.
    """
    if address.host:
        family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(where[:2], family=family, backlog=_BACKLOG)
    if socket.has_dualstack_ipv6() if dual_stack is None else dual_stack:
        try:
            return socket.create_server(
                ("", address.port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if not _family_is_missing(error):
                raise
    return socket.create_server(("", address.port), backlog=_BACKLOG)


def bound_address(listener: socket.socket) -> Address:
    """Where a socket listens, with the port that it really got."""
    host, port = listener.getsockname()[:2]
    return Address(host, port)


def _family_is_missing(error: OSError) -> bool:
    return error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
