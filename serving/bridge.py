"""A WSGI application called from ASGI: inline for routes that answer at once, or by whoever has read the body."""

import io
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class WsgiBridge:
    """ASGI callable around a WSGI application. A request's body is not read: the server closes that connection."""

    def __init__(self, application: "WSGIApplication") -> None:
        """Call `application` for each request."""
        self._application = application

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        status, headers, body = self.call(environ_of(scope))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def call(self, environ: dict[str, Any]) -> tuple[int, Headers, bytes]:
        """Call the application as a WSGI server does and give status, headers and body."""
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Callable[..., Any]:
            encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            started.append((int(status[:3]), encoded))
            return body_parts.append

        body_parts: list[bytes] = []
        produced: Iterable[bytes] = self._application(environ, start_response)
        try:
            body_parts.extend(produced)
        finally:
            close = getattr(produced, "close", None)
            if close is not None:
                close()
        status, headers = started[-1]
        return status, headers, b"".join(body_parts)


def environ_of(scope: Scope, body: bytes | None = None) -> dict[str, Any]:
    """Give the WSGI environ (PEP 3333) of an ASGI HTTP scope; without a body, nothing of one is in it."""
    host, port = scope.get("server") or ("localhost", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("", 0))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body or b""),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            environ[f"HTTP_{key}"] = value.decode("latin-1")
        elif key == "CONTENT_TYPE" and body is not None:
            environ[key] = value.decode("latin-1")
    if body is not None:
        environ["CONTENT_LENGTH"] = str(len(body))
    return environ
