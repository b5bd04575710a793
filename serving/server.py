"""gunicorn around one ASGI application, on sockets that are already open."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import uvloop  # noqa: F401  # gunicorn would take asyncio's own loop with no more than a warning
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from serving.addresses import bound_address
from serving.bridge import AsgiApplication
from serving.callers import Callers
from serving.certificates import Certificates
from serving.health import Health
from serving.metrics import Metrics
from serving.server_logger import ServerLogger
from serving.tls import Files
from serving.worker import Worker, require_c_parser

if TYPE_CHECKING:
    import socket

KEEP_ALIVE_SECONDS = 120
"""An idle connection's life; above the 90 s after which the API server's client gives up its own (net/http)."""

MOST_CONNECTIONS = 1000

_HEARTBEAT_SECONDS = 30
_SCRATCH = "/dev/shm"  # noqa: S108  # gunicorn's heartbeat file; a read-only root has no /tmp


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve.

    Attributes:
        files: the certificate and its key.
        names: host names the certificate must be good for; its own names where empty.
        await_certificate: begin without a pair that works, not ready until there is one.
        callers: who may call, by their certificates; anybody where not given.
        drain_seconds: how long to go on serving after SIGTERM.
        workers: processes; each has metrics of its own.
    """

    files: Files
    names: tuple[str, ...] = ()
    drain_seconds: float = 10.0
    workers: int = 1
    await_certificate: bool = False
    callers: Callers | None = None


class Service(Protocol):
    """What a server serves.

    Attributes:
        name: of the process.
        health: whether it should get requests.
        most_seconds: how long a request may take.
    """

    name: str
    health: Health
    most_seconds: float

    @property
    def telemetry(self) -> Metrics:
        """Metrics and log."""

    def make_application(self) -> AsgiApplication:
        """Make the application for TLS; called once in each worker."""

    def make_state_application(self) -> AsgiApplication:
        """Make the application for plain HTTP: health and metrics."""


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn is untyped
    """A gunicorn application that serves one service from sockets that are already open."""

    def __init__(
        self,
        settings: Settings,
        service: Service,
        listener: "socket.socket",
        metrics_listener: "socket.socket | None" = None,
    ) -> None:
        """Serve `service` with TLS on `listener`, and state and metrics in plain text on `metrics_listener`."""
        require_c_parser()
        self.settings = settings
        self.metrics_listener = metrics_listener
        self.health = service.health
        self.telemetry = service.telemetry
        self._service = service
        self._address = bound_address(listener)
        self._descriptor = listener.detach()
        super().__init__()

    @property
    def state_application(self) -> AsgiApplication:
        """Health and metrics for the plain listener."""
        return self._service.make_state_application()

    def load_config(self) -> None:
        """Set gunicorn's options; no file and no environment variable takes part."""
        options: dict[str, Any] = {
            "bind": f"fd://{self._descriptor}",
            "workers": self.settings.workers,
            "worker_class": Worker,
            "worker_connections": MOST_CONNECTIONS,
            "logger_class": ServerLogger,
            "loglevel": "warning",  # what it says at start is said by `announce`, with the real scheme
            "asgi_loop": "uvloop",
            "asgi_lifespan": "off",
            "asgi_disconnect_grace_period": 0,  # else each lost connection is kept for 3 s, some 60 KiB apiece
            "http_parser": "fast",
            "keepalive": KEEP_ALIVE_SECONDS,
            "timeout": _HEARTBEAT_SECONDS,
            "graceful_timeout": int(self.settings.drain_seconds + self._service.most_seconds) + 5,
            "control_socket_disable": True,
            "proc_name": self._service.name,
            "worker_tmp_dir": _SCRATCH if os.access(_SCRATCH, os.W_OK) else None,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> AsgiApplication:
        """Make the application; gunicorn calls it in each worker."""
        return self._service.make_application()

    def make_certificates(self) -> Certificates:
        """Load the served pair in a worker."""
        settings = self.settings
        return Certificates(
            settings.files,
            settings.names,
            self.health,
            self.telemetry,
            wait=settings.await_certificate,
            callers=settings.callers,
        )

    def announce(self) -> None:
        """Say where the server listens: with port 0 nobody else knows."""
        fields = {"level": "info", "message": "serving", "addr": str(self._address), "pid": os.getpid()}
        if self.metrics_listener is not None:
            fields["metrics_addr"] = str(bound_address(self.metrics_listener))
        self.telemetry.writer.write(fields)

    def serve(self) -> int:
        """Serve until told to stop and give the exit code: 0, or 5 when the server itself broke."""
        try:
            Arbiter(self).run()
        except SystemExit as stop:
            return 0 if stop.code in (0, None) else 5
        return 0
