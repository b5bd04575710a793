"""The gunicorn worker: its ASGI worker with deadlines for slow peers, a bound on connections and a drain.

Stock, the ASGI worker waits for ever for a request's head, a minute for a TLS handshake, and at the end cuts idle
connections that callers still hold. What is leaned on beyond the documented worker interface: `ASGIWorker._serve`, and
of `ASGIProtocol` the callbacks of the parser and the names checked in `tests/webhook/test_server_parts.py`; the range
in pyproject.toml allows one major version of gunicorn.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any

from gunicorn.asgi.parser import CallbackRequest
from gunicorn.asgi.protocol import ASGIProtocol, BodyReceiver
from gunicorn.workers.gasgi import ASGIWorker

from serving.bodies import Immediate, headers_of

if TYPE_CHECKING:
    import socket
    import ssl

    from serving.bridge import AsgiApplication
    from serving.server import Server

HANDSHAKE_SECONDS = 5.0
"""From the connection to the end of the TLS handshake."""

HEAD_SECONDS = 5.0
"""From the first byte of a request (or a new connection) to the end of its headers."""

WRITE_SECONDS = 10.0
"""How long a peer may leave its answers unread once its buffers are full."""

CLOSE_SECONDS = 2.0
"""For the peer's part in ending TLS."""

PUT_OFF_SECONDS = 0.1
"""By how much counting and logging may lag behind an answer."""

IDLE_WHILE_DRAINING_SECONDS = 2.0
"""An unused connection is closed after this while draining; one in use ends with its next answer."""


def require_c_parser() -> None:
    """Make sure that gunicorn parses with gunicorn_h1c; its Python parser had the holes of CVE-2026-134820.

    gunicorn keeps what it found on the class that asks, so the parent class has to ask first: found on `Connection` it
    would not be seen, and the setting `auto` would take the Python parser without a word.

    Raises:
        RuntimeError: there is no gunicorn_h1c that can limit heads.
    """
    if not (ASGIProtocol._check_h1c_protocol_available() and ASGIProtocol._h1c_has_limits):  # noqa: SLF001
        raise RuntimeError("gunicorn_h1c: must be installed in a version that limits request heads")


class Connection(ASGIProtocol):  # type: ignore[misc]  # gunicorn is untyped
    """One HTTP/1.1 connection under deadlines."""

    _body_receiver: Any  # the parent's: a BodyReceiver while there is a request
    _callback_parser: Any

    def __init__(self, worker: "Worker", application: "AsgiApplication | None" = None) -> None:
        """Serve the worker's application, or another one."""
        super().__init__(worker)
        if application is not None:
            self.app = application
        self._immediate = self.app if isinstance(self.app, Immediate) else None
        self.touched = 0.0
        self._counted = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._keepalive_handle: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether it waits for a request."""
        return bool(self._awaiting_request)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take the connection up, unless its caller is none of ours or there is no room."""
        if not self._is_admitted(transport) or not self.worker.make_room():
            transport.abort()
            return
        self._counted = True
        self.worker.connections.add(self)
        self.touched = self.worker.loop.time()
        if self.worker.draining:
            self.end_after_answer()
        super().connection_made(transport)
        self._await_head()

    def _is_admitted(self, transport: asyncio.Transport) -> bool:
        """Look at who calls; on the plain listener, for health and metrics, anybody may."""
        callers = self.worker.server.settings.callers
        if callers is None or transport.get_extra_info("ssl_object") is None:
            return True
        return bool(callers.admits(transport.get_extra_info("peercert")))

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a head that is not there in one piece gets a deadline."""
        self.touched = self.worker.loop.time()
        super().data_received(data)
        if self._head_timer is None and self._current_request is None and not self._closed:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if not self._counted:
            return
        self.worker.connections.discard(self)
        for timer in (self._head_timer, self._write_timer, self._keepalive_handle):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._callback_parser = self._body_receiver = None  # both point back here; else the collector has to find them

    def pause_writing(self) -> None:
        """The peer reads no answers: not for ever."""
        super().pause_writing()
        self._write_timer = self.worker.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The peer reads again."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    async def _serve_http_request(self, request: CallbackRequest, sockname: object, peername: object) -> bool:
        """Serve one request; give whether the connection goes on.

        What an `Immediate` application accepts is answered here once it is there whole, as nearly everything is: it
        needs no deadline, and so neither the task nor the messages of ASGI, which cost as much as a decision. The rest
        goes through the application, in this connection's own task; the parent makes another one, for work after the
        answer that there is none of here.
        """
        receiver = self._body_receiver
        immediate = self._immediate
        if not (
            immediate is not None
            and receiver._complete  # noqa: SLF001  # the parent reads it too
            and receiver.buffered <= immediate.most_body
            and immediate.accepts(request.method, request.path, request.headers_bytes)
        ):
            return bool(await self._handle_http_request(request, sockname, peername))
        answer = immediate.answer_arrived(await _read_arrived(receiver))
        closing = bool(self._will_close(request, False))  # noqa: FBT003  # the parent's own call
        self._send_response_start(answer.status, headers_of(answer), request, close=closing)
        self._send_body(answer.body)
        await self._flow_control.drain()
        return not closing

    def _arm_keepalive_timer(self) -> None:
        """Let one timer run per connection; it looks at the time of the last byte when it fires."""
        if self._keepalive_handle is None:
            self._keepalive_handle = self.worker.loop.call_later(self._keepalive, self._keepalive_timeout)

    def _cancel_keepalive_timer(self) -> None:
        """Leave the timer running: it costs more to make one for each request."""

    def _keepalive_timeout(self) -> None:
        self._keepalive_handle = None
        left = self.touched + self._keepalive - self.worker.loop.time()
        if not self.idle or left > 0:
            self._keepalive_handle = self.worker.loop.call_later(max(left, 1.0), self._keepalive_timeout)
        else:
            self.end()

    def end_after_answer(self) -> None:
        """Announce the end of the connection with the next answer."""
        self._keepalive = 0

    def end(self) -> None:
        """Close an idle connection in order."""
        super()._keepalive_timeout()

    def _on_headers_complete(self) -> bool:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        return bool(super()._on_headers_complete())

    def _await_head(self) -> None:
        self._head_timer = self.worker.loop.call_later(HEAD_SECONDS, self.end)


async def _read_arrived(receiver: BodyReceiver) -> bytes:
    """A body that is there already; reading it does not wait."""
    pieces = []
    while True:
        message = await receiver.receive()
        pieces.append(message["body"])
        if not message["more_body"]:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Worker(ASGIWorker):  # type: ignore[misc]  # gunicorn is untyped
    """Serves the application of a `serving.server.Server`.

    Attributes:
        connections: the connections past their handshake.
        draining: true from SIGTERM on.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """As gunicorn calls it."""
        super().__init__(*args, **kwargs)
        del self.state  # copied for every request where it exists; there is no lifespan here
        self.connections: set[Connection] = set()
        self.draining = False

    @property
    def server(self) -> "Server":
        """What is served."""
        server: Server = self.app
        return server

    def handle_exit_signal(self) -> None:
        """SIGTERM: not ready at once, stop after the drain."""
        if self.draining:
            return
        self.draining = True
        self.server.health.draining = True
        self.log.info("draining for %s seconds", self.server.settings.drain_seconds)
        for connection in self.connections:
            connection.end_after_answer()
        idle_seconds = min(IDLE_WHILE_DRAINING_SECONDS, self.server.settings.drain_seconds / 2)
        self.loop.call_later(idle_seconds, self._close_unused, idle_seconds)
        self.loop.call_later(self.server.settings.drain_seconds, self._stop)

    def make_room(self) -> bool:
        """Whether one more connection may stay; the longest unused one goes when there are too many."""
        if self.nr_conns < self.worker_connections:
            return True
        unused = [connection for connection in self.connections if connection.idle]
        if not unused:
            return False
        min(unused, key=lambda connection: connection.touched).end()
        return True

    async def _serve(self) -> None:
        telemetry = self.server.telemetry
        telemetry.put_off(lambda work: self.loop.call_later(PUT_OFF_SECONDS, work))
        certificates = self.server.make_certificates()
        certificates.check(self.loop.time())
        telemetry.watch_connections(lambda: self.nr_conns)
        for wrapped in self.sockets:
            await self._listen(wrapped.sock, certificates.listening)
        if self.server.metrics_listener is not None:
            await self._listen(self.server.metrics_listener, None)
        self.server.announce()
        while self.alive and self.ppid == os.getppid():
            self.notify()
            certificates.check(self.loop.time())
            await asyncio.sleep(1.0)
        await self._shutdown()
        telemetry.flush()

    async def _listen(self, listener: "socket.socket", context: "ssl.SSLContext | None") -> None:
        application = None if context else self.server.state_application
        tls = {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": CLOSE_SECONDS}
        self.servers.append(
            await self.loop.create_server(
                lambda: Connection(self, application), sock=listener, **(tls if context else {})
            )
        )

    def _close_unused(self, seconds: float) -> None:
        """Close connections that were not used for `seconds`; look again while there are others."""
        limit = self.loop.time() - seconds
        for connection in tuple(self.connections):
            if connection.idle and connection.touched <= limit:
                connection.end()
        if self.alive:
            self.loop.call_later(0.5, self._close_unused, seconds)

    def _stop(self) -> None:
        """End the drain: idle connections go now, the others with their answer."""
        self.alive = False
        for connection in tuple(self.connections):
            if connection.idle:
                connection.end()
