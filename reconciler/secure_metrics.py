"""TLS for the metrics port, with the pair that the servers of this pod serve: scrapers verify it by its authority."""

import socket
import ssl
from pathlib import Path

from serving.tls import Files, Unusable, load_context


class Secured:
    """Wraps accepted connections; a pair that changed on disk is taken up with the next one."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read nothing yet: at the first start there is no pair."""
        self._files = Files(certificate, key)
        self._seen: tuple[int, int] | None = None
        self._context: ssl.SSLContext | None = None

    def __call__(self, peer: socket.socket) -> socket.socket:
        """Give the connection with TLS around it; the handshake comes with the first read.

        Raises:
            OSError: there is no usable pair now.
        """
        context = self._current()
        return context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False)

    def _current(self) -> ssl.SSLContext:
        status = self._files.certificate.stat()
        seen = (status.st_ino, status.st_mtime_ns)
        if self._context is None or seen != self._seen:
            try:
                self._context = load_context(self._files)
            except Unusable as error:
                raise OSError(str(error)) from error
            self._seen = seen
        return self._context
