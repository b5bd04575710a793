"""Metrics of the machinery, and the plain HTTP port that serves them beside the health checks."""

import contextlib
import http.server
import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

log = logging.getLogger(__name__)

Checks = Callable[[], Mapping[str, str]]
"""Gives check name -> what is wrong, empty for well."""

SLOWEST_PEER: Final = 10.0
"""Seconds after which a connection is closed, whatever its peer is doing."""


class Meters:
    """What the machinery counts, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register the metrics."""
        self.registry = r = registry or CollectorRegistry()
        self._watch_age = Gauge(
            "lockstep_watch_age_seconds", "Since the last sign of life of a watch", ["resource"], registry=r
        )
        self._relists = Counter(
            "lockstep_watch_relists_total", "Lists made anew, by reason", ["resource", "reason"], registry=r
        )
        self._watch_failures = Counter("lockstep_watch_failures_total", "Failed attempts", ["resource"], registry=r)
        self._bad_items = Counter("lockstep_bad_items_total", "Objects that were skipped", ["resource"], registry=r)
        self._queue_depth = Gauge("lockstep_queue_depth", "Keys that wait for a worker", registry=r)
        self._queue_wait = Gauge("lockstep_queue_oldest_seconds", "Wait of the longest waiting key", registry=r)
        self._retries = Counter("lockstep_retries_total", "Keys put back after a failure", registry=r)
        self._leader = Gauge("lockstep_leader", "1 while this process may write", registry=r)
        self._writes = Counter(
            "lockstep_writes_total", "Writes by verb, kind and outcome", ["verb", "kind", "outcome"], registry=r
        )
        self._events = Counter("lockstep_events_total", "Events by outcome", ["outcome"], registry=r)
        self._reconciles = Histogram("lockstep_reconcile_seconds", "Duration of a reconcile", ["outcome"], registry=r)

    def watch_age(self, resource: str, age: Callable[[], float]) -> None:
        """Ask `age` at every scrape."""
        self._watch_age.labels(resource).set_function(age)

    def relisted(self, resource: str, reason: str) -> None:
        """Count a list made anew."""
        self._relists.labels(resource, reason).inc()

    def watch_failed(self, resource: str) -> None:
        """Count a failed attempt to list or watch."""
        self._watch_failures.labels(resource).inc()

    def bad_item(self, resource: str) -> None:
        """Count an object that could not be used."""
        self._bad_items.labels(resource).inc()

    def queue(self, depth: Callable[[], float], oldest: Callable[[], float]) -> None:
        """Ask the queue at every scrape."""
        self._queue_depth.set_function(depth)
        self._queue_wait.set_function(oldest)

    def retried(self) -> None:
        """Count a key put back after a failure."""
        self._retries.inc()

    def leading(self, held: Callable[[], bool]) -> None:
        """Ask at every scrape whether this process leads."""
        self._leader.set_function(held)

    def wrote(self, verb: str, kind: str, outcome: str) -> None:
        """Count a write."""
        self._writes.labels(verb, kind, outcome).inc()

    def event(self, outcome: str) -> None:
        """Count an Event by what became of it."""
        self._events.labels(outcome).inc()

    def reconciled(self, seconds: float, outcome: str) -> None:
        """Count a reconcile and its duration."""
        self._reconciles.labels(outcome).observe(seconds)

    def render(self) -> bytes:
        """Render all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


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
    """Serves `/metrics`, `/healthz` and `/readyz` with a fixed number of threads."""

    def __init__(self, address: tuple[str, int], meters: Meters, *, alive: Checks, ready: Checks) -> None:
        """Bind the port.

        Args:
            address: as `parse_address` gives it.
            meters: what `/metrics` shows.
            alive: checks of `/healthz`; a failing one means that a restart helps.
            ready: checks of `/readyz`.
        """
        self._routes: Mapping[str, Callable[[], tuple[int, str, bytes]]] = {
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, meters.render()),
            "/healthz": lambda: _report(alive()),
            "/readyz": lambda: _report(ready()),
        }
        self._server = _Server(listen(*address), self._routes)
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._server.socket.getsockname()[1])

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and end the threads."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _report(checks: Mapping[str, str]) -> tuple[int, str, bytes]:
    lines = [f"{name}: {problem or 'ok'}" for name, problem in sorted(checks.items())]
    status = 503 if any(checks.values()) else 200
    return status, "text/plain; charset=utf-8", "\n".join([*lines, ""]).encode()


class _Server(http.server.HTTPServer):
    """An HTTP server whose connections share a few threads and none of them for long."""

    def __init__(self, listener: socket.socket, routes: Mapping[str, Callable[[], tuple[int, str, bytes]]]) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.routes = listener, routes
        self._workers = ThreadPoolExecutor(4, thread_name_prefix="health")
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's signature
        with self._lock:
            self._open[request] = time.monotonic()
        self._workers.submit(self._answer, request, client_address)

    def _answer(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            self.finish_request(request, client_address)
        except OSError:
            log.debug("a peer of the health port went away or was too slow")
        except Exception:
            log.exception("the health port could not answer")
        finally:
            with self._lock:
                self._open.pop(request, None)
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """Cut off slow peers; called by the accept loop twice a second."""
        self._cut_off(time.monotonic() - SLOWEST_PEER)

    def _cut_off(self, before: float) -> None:
        with self._lock:
            for peer in [peer for peer, since in self._open.items() if since < before]:
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)

    def server_close(self) -> None:
        super().server_close()
        self._cut_off(float("inf"))
        self._workers.shutdown(wait=False, cancel_futures=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request a connection."""

    timeout = 5.0
    server: _Server
    wfile: io.BufferedIOBase

    def do_GET(self) -> None:
        route = self.server.routes.get(self.path.partition("?")[0])
        status, kind, body = route() if route is not None else (404, "text/plain", b"not found\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: probes come every few seconds."""
