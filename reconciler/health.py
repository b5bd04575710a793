"""The plain HTTP port for metrics and health checks: one thread, which no slow peer can hold up."""

import contextlib
import logging
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from reconciler.telemetry import Meters

log = logging.getLogger(__name__)

Checks = Callable[[], Mapping[str, str]]
"""Gives check name -> what is wrong, empty for well."""

Page = tuple[int, str, bytes]
"""Status, content type and body."""

Wrap = Callable[[socket.socket], socket.socket]
"""Makes an accepted connection one with TLS; `OSError` where that can't be done now."""

NOT_YET: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

SLOWEST_PEER: Final = 10.0
"""Seconds that a peer may take to ask."""

MOST_PEERS: Final = 100
LONGEST_REQUEST: Final = 8192
SEND_SECONDS: Final = 1.0
REASONS: Final[Mapping[int, str]] = {200: "OK", 404: "Not Found", 500: "Internal Server Error", 503: "Unavailable"}


def parse_address(text: str) -> tuple[str, int]:
    """Read `HOST:PORT`, `[V6]:PORT` or `:PORT`.

    Returns:
        Host without brackets, empty for every address of either family, and port.

    Raises:
        ValueError: the text is something else.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    number = int(port) if port.isascii() and port.isdigit() else -1
    if not colon or not 0 <= number <= 65535 or (":" in host and bare == host):  # noqa: PLR2004
        raise ValueError(f'metrics-addr: must be host:port, got "{text}"')
    return bare, number


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; an empty host means IPv4 and IPv6 where the machine has both, else the one it has."""
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        # A kernel that knows IPv6 may still have no such address.
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


class HealthServer:
    """Serves `/metrics`, `/healthz` and `/readyz`, one request a connection."""

    def __init__(
        self,
        address: tuple[str, int],
        meters: Meters,
        *,
        alive: Checks,
        ready: Checks,
        wrap: Wrap = lambda peer: peer,
    ) -> None:
        """Bind the port.

        Args:
            address: as `parse_address` gives it.
            meters: what `/metrics` shows.
            alive: checks of `/healthz`; a failing one means that a restart helps.
            ready: checks of `/readyz`.
            wrap: given each connection, for TLS.
        """
        self._wrap = wrap
        self.routes: dict[str, Callable[[], Page]] = {
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, meters.render()),
            "/healthz": lambda: _report(alive()),
            "/readyz": lambda: _report(ready()),
        }
        self._listener = listen(*address)
        self._listener.settimeout(0)
        self.port = int(self._listener.getsockname()[1])
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._listener, selectors.EVENT_READ)
        self._peers: dict[socket.socket, tuple[float, bytearray]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all connections."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for peer in list(self._peers):
            self._close(peer)
        self._ready.close()
        self._listener.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._ready.select(timeout=0.1):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._receive(key.fileobj)
            self._close_slow_peers()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            accepted, _ = self._listener.accept()
            accepted.settimeout(0)
            try:
                peer = self._wrap(accepted)
            except OSError:
                accepted.close()
                raise
            self._peers[peer] = (time.monotonic(), bytearray())
            self._ready.register(peer, selectors.EVENT_READ)
        while len(self._peers) > MOST_PEERS:
            self._close(next(iter(self._peers)))

    def _close_slow_peers(self) -> None:
        late = time.monotonic() - SLOWEST_PEER
        for peer in [peer for peer, (since, _) in self._peers.items() if since < late]:
            self._close(peer)

    def _receive(self, peer: socket.socket) -> None:
        if peer not in self._peers:
            return
        request = self._peers[peer][1]
        try:
            piece = peer.recv(LONGEST_REQUEST)
        except NOT_YET:
            return
        except OSError:
            piece = b""
        request += piece
        whole = b"\r\n\r\n" in request
        if whole:
            with contextlib.suppress(OSError):
                peer.settimeout(SEND_SECONDS)
                peer.sendall(self._answer(bytes(request)))
        if whole or not piece or len(request) > LONGEST_REQUEST:
            self._close(peer)

    def _answer(self, request: bytes) -> bytes:
        words = request.partition(b"\r\n")[0].decode("latin-1").split(" ")
        route = self.routes.get(words[1].partition("?")[0]) if len(words) == 3 and words[0] == "GET" else None  # noqa: PLR2004
        try:
            status, kind, body = route() if route is not None else (404, "text/plain", b"not found\n")
        except Exception:
            # A bug in a check must cost its answer, not the port.
            log.exception("the health port could not answer")
            status, kind, body = 500, "text/plain", b"see the log\n"
        lines = (
            f"HTTP/1.1 {status} {REASONS[status]}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
        )
        return "\r\n".join((*lines, "", "")).encode("latin-1") + body

    def _close(self, peer: socket.socket) -> None:
        del self._peers[peer]
        self._ready.unregister(peer)
        peer.close()


def _report(checks: Mapping[str, str]) -> Page:
    lines = [f"{name}: {problem or 'ok'}" for name, problem in sorted(checks.items())]
    status = 503 if any(checks.values()) else 200
    return status, "text/plain; charset=utf-8", "\n".join([*lines, ""]).encode()
