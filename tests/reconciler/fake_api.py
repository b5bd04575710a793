"""A small API server on loopback: real HTTP, resource versions, pages, watches, compaction and faults on demand."""

import contextlib
import copy
import http.server
import json
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from reconciler.contract import JSON, NO_QUERY, Response, Stream, Unreachable, error_of

Json = dict[str, Any]


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Wait until a condition holds; tells whether it did in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Seen(NamedTuple):
    """A request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def watches(self) -> bool:
        """Whether it opens a watch."""
        return self.query.get("watch") == "1"

    @property
    def dry(self) -> bool:
        """Whether it only asks what would be stored."""
        return "dryRun" in self.query

    @property
    def lists(self) -> bool:
        """Whether it asks for the first page of a list of pods."""
        return self.method == "GET" and not self.watches and "continue" not in self.query


class Answer(NamedTuple):
    """What a fault answers instead."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Silence(NamedTuple):
    """A fault that answers nothing more: headers first where `headers`, then the line stays open and dead."""

    headers: bool = True


class Refusal(Exception):  # noqa: N818 - reads as what happens
    """An error answer of the server's own rules."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        """Render the Status."""
        super().__init__(reason)
        self.answer = Answer(code, json.dumps(status(code, reason, message)).encode())


class Change(NamedTuple):
    """One line of the history that watches read."""

    version: int
    root: str
    type: str
    object: Json


def status(code: int, reason: str, message: str = "") -> Json:
    """A Status object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def split_path(path: str) -> tuple[str, str, str]:
    """Take a path apart: collection over all namespaces, namespace, name."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    head = 2 if parts[0] == "api" else 3
    root, rest = parts[:head], parts[head:]
    namespace = ""
    if rest and rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return "/" + "/".join([*root, rest[0]]), namespace, rest[1] if len(rest) > 1 else ""


class FakeApi:
    """State and rules of the server; `start` and `stop` its port."""

    def __init__(self, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        """Start empty; a token makes the server ask for it."""
        self.token, self.tls = token, tls
        self.changed = threading.Condition(threading.RLock())
        self.objects: dict[str, dict[tuple[str, str], Json]] = {}
        self.version, self.compacted = 10, 0
        self.history: list[Change] = []
        self.pages: dict[str, tuple[int, list[Json]]] = {}
        self.unserved: set[str] = set()
        self.requests: list[Seen] = []
        self.faults: list[tuple[Callable[[Seen], bool], Answer | Silence]] = []
        self.gone_in_stream = False
        self.bookmark_every = 0.2
        self.heeds_timeouts = True
        self.latency = 0.0
        self.connections = 0
        self.port = 0
        self._server: _Server | None = None

    # --- the port ---

    def start(self) -> "FakeApi":
        """Listen, on the same port as before when started again."""
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.fake = self
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="fake api", daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port and cut all connections."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        server.cut()
        with self.changed:
            self.changed.notify_all()

    def cut(self) -> None:
        """Cut all connections and keep the port open."""
        if self._server is not None:
            self._server.cut()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    # --- what tests do to it ---

    def create(self, root: str, namespace: str, name: str, **content: Any) -> Json:
        """Create an object as some client would."""
        return self.write(root, namespace, {"metadata": {"name": name}, **content}, create=True)

    def update(self, root: str, namespace: str, name: str, **content: Any) -> Json:
        """Change top-level fields of an object as some client would."""
        with self.changed:
            current = self.objects[root][namespace, name]
            return self.write(root, namespace, current | content, create=False)

    def delete(self, root: str, namespace: str, name: str) -> None:
        """Delete an object."""
        with self.changed:
            gone = copy.deepcopy(self.objects.get(root, {}).pop((namespace, name), None))
            if gone is None:
                raise Refusal(404, "NotFound")
            self.version += 1
            gone["metadata"]["resourceVersion"] = str(self.version)
            self._record(root, "DELETED", gone)

    def compact(self) -> None:
        """Forget all history: every older version and continue token is gone."""
        with self.changed:
            self.compacted = self.version
            self.history.clear()
            self.changed.notify_all()

    def fault(self, when: Callable[[Seen], bool], what: Answer | Silence, times: int = 1) -> None:
        """Answer the next matching requests with a fault."""
        with self.changed:
            self.faults += [(when, what)] * times

    def count(self, when: Callable[[Seen], bool]) -> int:
        """Count matching requests so far."""
        with self.changed:
            return sum(1 for seen in self.requests if when(seen))

    def names(self, root: str) -> dict[tuple[str, str], str]:
        """Give namespace and name -> version of what there is."""
        with self.changed:
            return {key: obj["metadata"]["resourceVersion"] for key, obj in self.objects.get(root, {}).items()}

    # --- the rules ---

    def write(self, root: str, namespace: str, obj: Json, *, create: bool) -> Json:
        """Store an object under the next version."""
        with self.changed:
            obj = copy.deepcopy(obj)
            meta = obj["metadata"]
            key = (namespace, meta["name"])
            known = self.objects.setdefault(root, {}).get(key)
            if create and known is not None:
                raise Refusal(409, "AlreadyExists", f'"{meta["name"]}" already exists')
            self.version += 1
            if namespace:
                meta["namespace"] = namespace
            meta["uid"] = known["metadata"]["uid"] if known else str(uuid.uuid4())
            meta["resourceVersion"] = str(self.version)
            self.objects[root][key] = obj
            self._record(root, "MODIFIED" if known else "ADDED", obj)
            return copy.deepcopy(obj)

    def _record(self, root: str, kind: str, obj: Json) -> None:
        self.history.append(Change(self.version, root, kind, copy.deepcopy(obj)))
        self.changed.notify_all()

    def take_fault(self, seen: Seen) -> Answer | Silence | None:
        """Note a request and find the fault that is meant for it."""
        with self.changed:
            self.requests.append(seen)
            for position, (when, what) in enumerate(self.faults):
                if when(seen) and not seen.dry:
                    del self.faults[position]
                    return what
        return None

    def answer(self, seen: Seen) -> Answer:
        """Answer anything but a watch."""
        try:
            with self.changed:
                found = self._answer(seen)
        except Refusal as refusal:
            return refusal.answer
        return Answer(201 if seen.method == "POST" else 200, json.dumps(found).encode())

    def _answer(self, seen: Seen) -> Json:
        if seen.path.count("/") <= 3 and not seen.path.startswith("/api/v1/"):
            return self._discover(seen.path)
        root, namespace, name = split_path(seen.path)
        if root in self.unserved:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if seen.method == "POST":
            return (
                json.loads(seen.body) if seen.dry else self.write(root, namespace, json.loads(seen.body), create=True)
            )
        if not name:
            return self._list(root, namespace, seen.query)
        if (namespace, name) not in self.objects.get(root, {}):
            raise Refusal(404, "NotFound", f'"{name}" not found')
        if seen.method == "DELETE":
            self.delete(root, namespace, name)
            return {"kind": "Status", "status": "Success"}
        if seen.method == "PATCH":
            return self._patch(root, namespace, name, _as_merge_patch(seen, self.objects[root][namespace, name]))
        return copy.deepcopy(self.objects[root][namespace, name])

    def _patch(self, root: str, namespace: str, name: str, change: Json) -> Json:
        current = copy.deepcopy(self.objects[root][namespace, name])
        wanted = change.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != current["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        if change.get("metadata", {}).get("uid") not in (None, current["metadata"]["uid"]):
            raise Refusal(409, "Conflict", "the UID is another one")
        return self.write(root, namespace, _merged(current, change), create=False)

    def _list(self, root: str, namespace: str, query: dict[str, str]) -> Json:
        token, limit = query.get("continue", ""), int(query.get("limit", "0"))
        if token:
            version, rest = self.pages.pop(token)
            if version < self.compacted:
                raise Refusal(410, "Expired", "the provided continue parameter is too old")
        else:
            version = self.version
            found = sorted(self.objects.get(root, {}).items())
            rest = [copy.deepcopy(obj) for key, obj in found if namespace in ("", key[0])]
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        meta = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = uuid.uuid4().hex
            self.pages[meta["continue"]] = (version, rest)
        return {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page}

    def _discover(self, path: str) -> Json:
        if path in ("/api", "/version"):
            return {"versions": ["v1"]}
        roots = [root for root in self.objects if root not in self.unserved and root.startswith(path + "/")]
        if not roots:
            raise Refusal(404, "NotFound")
        if path.count("/") == 2 and path.startswith("/apis/"):
            return {"kind": "APIGroup", "versions": [{"version": v} for v in sorted({r.split("/")[3] for r in roots})]}
        return {"kind": "APIResourceList", "resources": [{"name": root.rsplit("/", 1)[1]} for root in sorted(roots)]}

    def watch(self, seen: Seen) -> Iterator[Json]:
        """Give the events of a watch; it ends with its timeout or the server."""
        root, namespace, _ = split_path(seen.path)
        if root in self.unserved:
            raise Refusal(404, "NotFound")
        seen_version = int(seen.query["resourceVersion"])
        if seen_version < self.compacted and not self.gone_in_stream:
            raise Refusal(410, "Expired", "too old resource version")
        return self._events(
            root, namespace, seen_version, float(seen.query["timeoutSeconds"]) if self.heeds_timeouts else 1e9
        )

    def _events(self, root: str, namespace: str, version: int, seconds: float) -> Iterator[Json]:
        server, end = self._server, time.monotonic() + seconds
        while server is not None and server is self._server and time.monotonic() < end:
            with self.changed:
                if not self._news(version) and version >= self.compacted:
                    self.changed.wait(min(self.bookmark_every, max(0.0, end - time.monotonic())))
                news, gone = self._news(version), version < self.compacted
                version = self.version
            if gone:
                yield {"type": "ERROR", "object": status(410, "Expired", "too old resource version")}
                return
            for change in news:
                if change.root == root and namespace in ("", change.object["metadata"].get("namespace", "")):
                    yield {"type": change.type, "object": change.object}
            if not news:
                yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}

    def _news(self, version: int) -> list[Change]:
        return [change for change in self.history if change.version > version]


class InProcess:
    """`contract.Api` straight to the rules of a fake server, for tests that hold all the clocks."""

    def __init__(self, fake: FakeApi) -> None:
        """Speak to `fake`."""
        self.fake = fake

    def request(  # noqa: PLR0913 - the protocol's
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 1.0,
    ) -> Response:
        """Answer at once."""
        del timeout
        seen = Seen(method, path, dict(query), {"content-type": content_type}, body or b"")
        fault = self.fake.take_fault(seen)
        if isinstance(fault, Silence):
            raise Unreachable("silence")
        answer = fault or self.fake.answer(seen)
        headers = {name.lower(): value for name, value in answer.headers}
        if answer.status >= 400:
            raise error_of(answer.status, headers, answer.body)
        return Response(answer.status, headers, answer.body)

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Not needed by those tests."""
        raise NotImplementedError(path, query, read_timeout)


def kubeconfig(folder: Path, fake: FakeApi, token: str = "t0ken") -> Path:  # noqa: S107 - of a fake
    """Write a kubeconfig for a fake server."""
    cluster: Json = {"server": fake.url}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def _as_merge_patch(seen: Seen, current: Json) -> Json:
    """Read a patch; of strategic merge patches, only those that delete scheduling gates by their names are known."""
    change: Json = json.loads(seen.body)
    if seen.headers.get("content-type") == "application/strategic-merge-patch+json":
        gone = {gate["name"] for gate in change["spec"]["schedulingGates"] if gate["$patch"] == "delete"}
        gates = [gate for gate in current["spec"].get("schedulingGates", ()) if gate["name"] not in gone]
        change["spec"] = {"schedulingGates": gates or None}
    return change


def _merged(base: Json, change: Json) -> Json:
    """RFC 7396."""
    merged = dict(base)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    fake: FakeApi

    def __init__(self, *args: Any) -> None:
        self.peers: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.peers.add(request)
        self.fake.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.peers.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        for peer in list(self.peers):
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """Peers go away all the time here."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _any(self) -> None:
        fake = self.server.fake
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, path, dict(parse_qsl(query)), headers, body)
        if fake.latency:
            time.sleep(fake.latency)
        fault = fake.take_fault(seen)
        if isinstance(fault, Silence):
            self._fall_silent(fault)
        elif fault is not None:
            self._send(fault)
        elif fake.token and headers.get("authorization", "").lower() != f"bearer {fake.token}".lower():
            self._send(Refusal(401, "Unauthorized").answer)
        elif seen.watches:
            self._watch(seen)
        else:
            self._send(fake.answer(seen))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any  # noqa: N815 - http.server's names

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _watch(self, seen: Seen) -> None:
        try:
            events = self.server.fake.watch(seen)
        except Refusal as refusal:
            self._send(refusal.answer)
            return
        self._start_stream()
        for event in events:
            self._chunk(json.dumps(event).encode() + b"\n")
        if self.server is self.server.fake._server:
            self.wfile.write(b"0\r\n\r\n")

    def _fall_silent(self, how: Silence) -> None:
        if how.headers:
            self._start_stream()
        self.wfile.flush()
        while self.connection in self.server.peers and self.server is self.server.fake._server:
            time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
