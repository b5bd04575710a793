"""What the reconciler asks of an API server: calls, streams and the errors they end in. Pure, no client in sight."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, Self
from urllib.parse import quote

import msgspec

from schedulers.contract import GroupKind

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

CALL_SECONDS: Final = 10.0
"""How long a single call may take when its caller says nothing."""

NO_QUERY: Final[Mapping[str, str]] = {}


class CallFailed(Exception):  # noqa: N818 - reads as what happened
    """A call to the API server that did not end in success.

    Attributes:
        retry_after: seconds the server asked us to wait, `None` where it did not say.
    """

    retry_after: float | None = None


class Unreachable(CallFailed):
    """No answer: refused, reset, timed out, cut off, or not verifiable. The call may have had its effect."""


class ApiError(CallFailed):
    """The API server answered with an error.

    Attributes:
        status: HTTP status.
        reason: machine-readable reason of the Status object (`AlreadyExists`), empty where there is none.
        message: the server's words.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        """Keep the parts and render `<status> <reason>: <message>`."""
        self.status, self.reason, self.message, self.retry_after = status, reason, message, retry_after
        super().__init__(f"{status} {reason}: {message}")


class Unauthorized(ApiError):  # noqa: N818 - as HTTP calls it
    """401: the server does not know us."""


class Forbidden(ApiError):  # noqa: N818 - as HTTP calls it
    """403: the server knows us and says no."""


class NotFound(ApiError):  # noqa: N818 - as HTTP calls it
    """404: no such object, or the kind is not served."""


class Conflict(ApiError):  # noqa: N818 - as HTTP calls it
    """409: the object exists already (reason `AlreadyExists`) or has changed since (reason `Conflict`)."""


class Gone(ApiError):  # noqa: N818 - as HTTP calls it
    """410: the resource version or continue token is too old; only a new list helps."""


class TooManyRequests(ApiError):  # noqa: N818 - as HTTP calls it
    """429: the server is busy; `retry_after` says for how long."""


BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


class Response(msgspec.Struct, frozen=True):
    """An answer with a status below 400.

    Attributes:
        status: HTTP status.
        headers: header name in lower case -> value.
        body: the body as it came.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An open streaming answer. Iterate in one thread; `close` may be called from any other and ends the iteration."""

    def __iter__(self) -> Iterator[bytes]:
        """Give complete lines without their line feed; raises `Unreachable` when cut off or silent for too long."""

    def close(self) -> None:
        """End the stream at once."""

    def __enter__(self) -> Self:
        """Use as a context manager."""

    def __exit__(self, *_: object) -> None:
        """Close on leaving."""


class Api(Protocol):
    """An authenticated connection to one API server. Safe to use from many threads."""

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
        """Make one call, without any retry.

        Args:
            method: HTTP method.
            path: percent-encoded path, see `object_path`.
            query: parameters, not yet encoded.
            body: bytes to send as they are.
            content_type: of the body; one of the patch types for PATCH.
            timeout: seconds for the whole call.

        Raises:
            ApiError: the server answered with 400 or above; the subclass tells the usual ones apart.
            Unreachable: there was no answer in time.
        """

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Open a streaming GET.

        Args:
            path: percent-encoded path.
            query: parameters, not yet encoded.
            read_timeout: longest silence in seconds before the stream counts as dead.

        Raises:
            ApiError: the server refused.
            Unreachable: there was no answer in time.
        """


def object_path(kind: GroupKind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Build the path of a collection (no `name`) or object; an empty `namespace` means all, or a cluster's kind."""
    root = f"/apis/{kind.api_group}/{kind.version}" if kind.api_group else f"/api/{kind.version}"
    scope = ("namespaces", namespace) if namespace else ()
    return "/".join((root, *(quote(part, safe="") for part in (*scope, kind.plural, name, subresource) if part)))


class _Details(msgspec.Struct, frozen=True):
    retryAfterSeconds: float | None = None  # noqa: N815 - the wire's spelling


class Status(msgspec.Struct, frozen=True):
    """The parts of a `v1` Status that we act on."""

    kind: str = ""
    code: int | None = 0
    reason: str | None = ""
    message: str | None = ""
    details: _Details | None = None

    def error(self, http_status: int, retry_after: float | None = None) -> ApiError:
        """Make the matching exception; `http_status` stands in where the object has no code."""
        code = self.code or http_status
        if retry_after is None and self.details is not None:
            retry_after = self.details.retryAfterSeconds
        return BY_STATUS.get(code, ApiError)(code, self.reason or "", self.message or "", retry_after)


def error_of(http_status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Turn an error answer into an exception; a body that is no Status object becomes the message."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        status = Status(message=body[:500].decode("utf-8", "replace").strip())
    return status.error(http_status, _seconds(headers.get("retry-after")))


def _seconds(text: str | None) -> float | None:
    """Read a Retry-After of seconds; API servers send no dates."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
