"""The one module that imports `kubernetes`: configuration, credentials and connections, and nothing else of it.

Its models are left out on purpose: they lose unknown fields and reject whole lists for one odd item. Calls go straight
to the client's connection pool, because its REST layer rewrites JSON patches given as bytes.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlencode

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.incluster_config import InClusterConfigLoader

from reconciler.clocks import Clock, SystemClock
from reconciler.contract import (
    CALL_SECONDS,
    JSON,
    NO_QUERY,
    ApiError,
    CallFailed,
    Response,
    Unauthorized,
    Unreachable,
    error_of,
)

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
USER_AGENT: Final = "lockstep-reconciler"
CONNECT_SECONDS: Final = 5.0
CHUNK: Final = 1 << 16
LONGEST_LINE: Final = 64 << 20
"""No object of an API server comes near; what does is not a watch."""


class Misconfigured(Exception):  # noqa: N818 - reads as what it is
    """We can't start: no usable configuration, or the API server does not accept us."""


class HttpApi:
    """`contract.Api` over the client's pool. Make one per process."""

    def __init__(self, configuration: Configuration, *, connections: int = 64, clock: Clock | None = None) -> None:
        """Open the pool; no connection is made yet.

        Args:
            configuration: host, certificates and credentials, as the client's loaders fill it.
            connections: at least the number of watches plus workers plus two (lease, events); unused ones cost nothing.
            clock: for deadlines.
        """
        configuration.connection_pool_maxsize = connections
        configuration.keep_alive = True
        self._configuration = configuration
        self._client = ApiClient(configuration)
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._clock = clock or SystemClock()
        self._credentials = threading.Lock()
        self.host: str = configuration.host.rstrip("/")

    def request(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = CALL_SECONDS,
    ) -> Response:
        """Make one call, see `contract.Api.request`."""
        deadline = self._clock.now() + timeout
        headers = {"Content-Type": content_type} if body is not None else {}
        patience = urllib3.Timeout(total=timeout, connect=min(CONNECT_SECONDS, timeout))
        answer = self._open(method, path, query, patience=patience, headers=headers, body=body)
        with _wrapped(method, path), contextlib.closing(answer):
            content = self._read(answer, deadline)
            lower = {name.lower(): value for name, value in answer.headers.items()}
            if answer.status >= 400:  # noqa: PLR2004 - HTTP's own border
                raise error_of(answer.status, lower, content)
            return Response(answer.status, lower, content)

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> "LineStream":
        """Open a streaming GET, see `contract.Api.stream`."""
        patience = urllib3.Timeout(connect=min(CONNECT_SECONDS, read_timeout), read=read_timeout)
        answer = self._open("GET", path, query, patience=patience)
        if answer.status != 200:  # noqa: PLR2004
            with _wrapped("GET", path), contextlib.closing(answer):
                content = self._read(answer, self._clock.now() + CALL_SECONDS)
                raise error_of(answer.status, {k.lower(): v for k, v in answer.headers.items()}, content)
        return LineStream(answer, path)

    def check(self) -> None:
        """Find out at start-up whether the server lets us in, so that a bad token is one clear message.

        `/version` would not do: it answers to everybody.

        Raises:
            Misconfigured: the server does not accept our credentials.
            CallFailed: the server is not reachable or not well; worth trying again.
        """
        try:
            self.request("GET", "/api")
        except ApiError as error:
            if isinstance(error, Unauthorized) or error.status == 403:  # noqa: PLR2004
                message = f'api server "{self.host}": must accept our credentials, got {error.status} {error.reason}'
                raise Misconfigured(message) from error
            raise

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._client.rest_client.close()

    def authorization(self) -> dict[str, str]:
        """Give the headers that prove who we are; a rotated token file is read again by the client's own hook."""
        headers: dict[str, str] = {}
        with self._credentials:
            self._client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        return {name: value.strip() for name, value in headers.items() if value}

    def _open(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        patience: urllib3.Timeout,
        headers: Mapping[str, str] = NO_QUERY,
        body: bytes | None = None,
    ) -> "BaseHTTPResponse":
        url = self.host + path + ("?" + urlencode(query) if query else "")
        with _wrapped(method, path):
            every = {"Accept": JSON, "User-Agent": USER_AGENT, **self.authorization(), **headers}
            return self._pool.request(
                method,
                url,
                body=body,
                headers=every,
                timeout=patience,
                retries=False,
                redirect=False,
                preload_content=False,
            )

    def _read(self, answer: "BaseHTTPResponse", deadline: float) -> bytes:
        """Read a whole body; socket timeouts bound a single read only, so a trickle is cut off here."""
        content = bytearray()
        while piece := answer.read1(CHUNK):
            content += piece
            if self._clock.now() > deadline:
                raise TimeoutError("the answer took too long")
        return bytes(content)


class LineStream:
    """`contract.Stream` over one response."""

    def __init__(self, answer: "BaseHTTPResponse", path: str) -> None:
        """Take over the response."""
        self._answer, self._path, self._closed = answer, path, threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        """Give complete lines; a rest without line feed was cut off and is dropped, the server sends it again."""
        rest = b""
        with _wrapped("GET", self._path):
            while not self._closed.is_set() and (piece := self._answer.read1(CHUNK)):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (line for line in lines if line)
                if len(rest) > LONGEST_LINE:
                    raise OSError(f"a line of more than {LONGEST_LINE} bytes")

    def close(self) -> None:
        """End the stream; a read that waits in another thread wakes up and finds nothing."""
        self._closed.set()
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._answer.shutdown()

    def __enter__(self) -> Self:
        """Use as a context manager, in the iterating thread."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stream and give the connection up."""
        self.close()
        self._answer.close()


@contextlib.contextmanager
def _wrapped(method: str, path: str) -> Iterator[None]:
    """Turn whatever the client and sockets raise into `Unreachable`, once."""
    try:
        yield
    except CallFailed:
        raise
    except (urllib3.exceptions.HTTPError, OSError, ConfigException) as error:
        raise Unreachable(f"{method} {path}: {error}") from error


def load_api(
    kubeconfig: Path | None = None,
    *,
    connections: int = 64,
    account: Path = ACCOUNT_FOLDER,
    environ: Mapping[str, str] = os.environ,
) -> HttpApi:
    """Make the process' one `HttpApi`.

    Args:
        kubeconfig: a file, or `None` for the pod's own service account.
        connections: see `HttpApi`.
        account: folder with `token` and `ca.crt`.
        environ: where `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` stand.

    Raises:
        Misconfigured: nothing usable is there.
    """
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)  # type: ignore[no-untyped-call]
        else:
            files = str(account / "token"), str(account / "ca.crt")
            loader = InClusterConfigLoader(*files, environ=environ)  # type: ignore[no-untyped-call]
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError) as error:
        source = f'kubeconfig "{kubeconfig}"' if kubeconfig is not None else "in-cluster configuration"
        raise Misconfigured(f"{source}: must be usable, got {error}") from error
    return HttpApi(configuration, connections=connections)


def own_namespace(account: Path = ACCOUNT_FOLDER) -> str | None:
    """Name the namespace that this pod runs in, `None` outside of a cluster."""
    try:
        return (account / "namespace").read_text().strip() or None
    except OSError:
        return None


def own_identity(environ: Mapping[str, str] = os.environ) -> str:
    """Name this process: the pod's name (`POD_NAME`, else the host's) and eight random hex digits."""
    return f"{environ.get('POD_NAME') or socket.gethostname()}_{os.urandom(4).hex()}"
