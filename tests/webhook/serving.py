"""`lockstep serve` as a real process with real TLS on loopback, and clients that speak as well or as badly as asked."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.x509 import random_serial_number

from certs.authority import make_authority
from certs.leaf import make_leaf
from certs.pair import Pair, draw_key

START_SECONDS = 30.0
SWITCH_SECONDS = 5.0
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    log: Path
    folder: Path
    host: str
    port: int
    metrics_port: int

    def lines(self) -> list[dict[str, Any]]:
        """Its log so far."""
        return log_lines(self.log)

    def worker(self) -> int:
        """Process id of its first worker."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def resident_kib(self) -> int:
        """Memory of its worker."""
        status = Path(f"/proc/{self.worker()}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def cpu_seconds(self) -> float:
        """CPU time of its worker so far; unlike the clock it does not count what else the machine does."""
        return int(Path(f"/proc/{self.worker()}/schedstat").read_text().split()[0]) / 1e9

    def connect_plain(self) -> socket.socket:
        """A TCP connection without a word of TLS."""
        plain = socket.create_connection((self.host, self.port), timeout=START_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go's client does
        return plain

    def connect(self, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
        """A TLS connection whose peer is verified."""
        context = context or trusting(self.folder / "ca.crt")
        return context.wrap_socket(self.connect_plain(), server_hostname="localhost")

    def client(self) -> http.client.HTTPSConnection:
        """A well-behaved client with one connection."""
        context = trusting(self.folder / "ca.crt")
        return http.client.HTTPSConnection(self.host, self.port, timeout=START_SECONDS, context=context)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own; `content_type=` becomes Content-Type and so on."""
        client = self.client()
        try:
            return ask(client, method, path, body, **headers)
        finally:
            client.close()

    def mutate(self, body: bytes) -> Answer:
        """One review, as the API server sends it."""
        return self.ask("POST", "/mutate?timeout=10s", body, content_type="application/json")

    def say(self, *pieces: bytes) -> bytes:
        """Send bytes as they are on a TLS connection and give all that comes back until the server closes it."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return read_to_end(connection)

    def stop(self) -> int:
        """End it in order; give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_SECONDS)


def eventually(holds: Callable[[], bool], seconds: float = SWITCH_SECONDS) -> bool:
    """Ask again and again whether something holds, for so many seconds at most."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def readiness(server: Served) -> Answer:
    """Ask /readyz on the plain address, which no certificate can keep from answering."""
    plain = http.client.HTTPConnection("127.0.0.1", server.metrics_port, timeout=10)
    try:
        return ask(plain, "GET", "/readyz")
    finally:
        plain.close()


def ask(
    client: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, **headers: str
) -> Answer:
    """One request on `client`'s connection."""
    spelt = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request(method, path, body, spelt)
    response = client.getresponse()
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def trusting(authority: Path) -> ssl.SSLContext:
    """A client's context that trusts one file."""
    return ssl.create_default_context(cafile=authority)


def read_to_end(connection: socket.socket) -> bytes:
    """Everything until the peer closes, in order or not."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return received


def make_pair(hosts: Sequence[str] = LOCAL, now: datetime | None = None) -> tuple[Pair, Pair]:
    """A fresh authority and a leaf of it."""
    now = now or datetime.now(UTC)
    authority = make_authority(now, draw_key(), random_serial_number())
    return authority, make_leaf(authority, hosts, now, draw_key(), random_serial_number())


def write_pair(folder: Path, authority: Pair, leaf: Pair) -> None:
    """Write the three files that a server has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(authority.certificate_pem)
    (folder / "tls.crt").write_bytes(leaf.certificate_pem)
    (folder / "tls.key").write_bytes(leaf.key_pem)


def log_lines(log: Path) -> list[dict[str, Any]]:
    """The whole JSON lines of a log; what else is there (a traceback) is kept under "text"."""
    lines: list[dict[str, Any]] = []
    for line in log.read_bytes().split(b"\n")[:-1]:
        try:
            lines.append(json.loads(line))
        except ValueError:
            lines.append({"message": "", "text": line.decode(errors="replace")})
    return lines


@contextmanager
def running(
    folder: Path, *options: str, addr: str = "127.0.0.1:0", command: Sequence[str] = ("-m", "lockstep", "serve")
) -> Iterator[Served]:
    """Run a server with the files in `folder`; it is killed at the end if it still runs."""
    log = folder / f"serve-{time.monotonic_ns()}.log"
    files = ("--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key"))
    arguments = [sys.executable, *command, "--addr", addr, *files, "--metrics-addr", "127.0.0.1:0", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stderr=output, start_new_session=True)
    try:
        announced = await_line(log, "serving", process)
        host, _, port = announced["addr"].rpartition(":")
        metrics_port = int(announced["metrics_addr"].rpartition(":")[2])
        yield Served(process, log, folder, host.strip("[]"), int(port), metrics_port)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def await_line(log: Path, message: str, process: subprocess.Popen[bytes] | None = None) -> dict[str, Any]:
    """Wait for a log line with this message."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for line in log_lines(log):
            if line["message"] == message:
                return line
        if process is not None and process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f'no line "{message}" in the log:\n{log.read_text()[-4000:]}')
