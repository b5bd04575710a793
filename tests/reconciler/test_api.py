"""The connection to the API server, over real HTTP and TLS on loopback."""

import datetime as dt
import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes.config.incluster_config import InClusterConfigLoader

from reconciler.api import HttpApi, Misconfigured, load_api, own_identity, own_namespace
from reconciler.contract import (
    JSON_PATCH,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from tests.reconciler.fake_api import Answer, FakeApi, Seen, Silence, eventually, kubeconfig, status

PODS = "/api/v1/pods"


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    server = FakeApi(token="t0ken").start()
    yield server
    server.stop()


@pytest.fixture
def api(fake: FakeApi, tmp_path: Path) -> Iterator[HttpApi]:
    connection = load_api(kubeconfig(tmp_path, fake), connections=16)
    yield connection
    connection.close()


@pytest.fixture
def drip() -> Iterator[Callable[[bytes], tuple[str, int]]]:
    """Serve an answer whose last bytes come one every 50 ms, for ever."""
    over, listeners = threading.Event(), []

    def serve(listener: socket.socket, head: bytes) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(head)
            while not over.wait(0.05):
                peer.sendall(b" ")

    def start(head: bytes) -> tuple[str, int]:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=serve, args=(listener, head), daemon=True).start()
        return "127.0.0.1", int(listener.getsockname()[1])

    yield start
    over.set()
    for listener in listeners:
        listener.close()


def account(folder: Path, token: str) -> tuple[Path, ssl.SSLContext]:
    """Make a service account folder and a server context that its `ca.crt` verifies."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake")])
    now = dt.datetime.now(dt.UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "ca.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "tls.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "token").write_text(token)
    (folder / "namespace").write_text("lockstep-system\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "tls.key")
    return folder, context


@pytest.fixture
def in_cluster(tmp_path: Path) -> Iterator[tuple[FakeApi, HttpApi, Path]]:
    folder, context = account(tmp_path, "first-token")
    server = FakeApi(tls=context).start()
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    connection = load_api(account=folder, environ=environ)
    yield server, connection, folder
    connection.close()
    server.stop()


def sent_token(fake: FakeApi) -> str:
    return fake.requests[-1].headers.get("authorization", "")


def test_c63_in_cluster_token(in_cluster: tuple[FakeApi, HttpApi, Path]) -> None:
    """The installed client sends the service account's token, on calls and on streams."""
    fake, api, _ = in_cluster
    api.request("GET", PODS)
    assert sent_token(fake).lower() == "bearer first-token"
    with api.stream(PODS, {"watch": "1", "resourceVersion": "10", "timeoutSeconds": "5"}, read_timeout=5) as stream:
        assert next(iter(stream)).startswith(b'{"type": "BOOKMARK"')
    assert sent_token(fake).lower() == "bearer first-token"


def test_c63_rotated_token(in_cluster: tuple[FakeApi, HttpApi, Path]) -> None:
    """A rotated token file is used without a restart, also when it ends with a line feed."""
    fake, api, folder = in_cluster
    (folder / "token").write_text("second-token\n")
    hook = vars(api._configuration)["refresh_api_key_hook"]
    loaders = [cell.cell_contents for cell in hook.__closure__]
    (loader,) = [found for found in loaders if isinstance(found, InClusterConfigLoader)]
    loader.token_expires_at = dt.datetime.now() - dt.timedelta(seconds=1)  # noqa: DTZ005 - the client's own way
    api.request("GET", PODS)
    assert sent_token(fake).lower() == "bearer second-token"


def test_c63_refused_credentials_are_one_clear_message(fake: FakeApi, tmp_path: Path) -> None:
    """A token that the server does not know ends the start with a message that says so."""
    api = load_api(kubeconfig(tmp_path, fake, token="wrong"))
    with pytest.raises(Misconfigured) as caught:
        api.check()
    assert str(caught.value) == f'api server "{fake.url}": must accept our credentials, got 401 Unauthorized'


def test_known_credentials_pass_the_check(api: HttpApi) -> None:
    """The check says nothing when the server lets us in, and tells an unwell server from a refusal."""
    api.check()


def test_unwell_server_is_not_misconfiguration(api: HttpApi, fake: FakeApi) -> None:
    """A server that answers 503 at start is worth another try."""
    fake.fault(lambda _: True, Answer(503))
    with pytest.raises(ApiError, match="503"):
        api.check()


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_missing_account_files(tmp_path: Path, missing: str) -> None:
    """Without its files the in-cluster configuration is refused in our words."""
    folder, _ = account(tmp_path, "t")
    (folder / missing).unlink()
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(Misconfigured, match=r"^in-cluster configuration: must be usable, got .*does not exist"):
        load_api(account=folder, environ=environ)


def test_missing_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig that is not there is named."""
    with pytest.raises(Misconfigured, match=r'^kubeconfig ".*/nowhere": must be usable, got'):
        load_api(tmp_path / "nowhere")


ERRORS = {
    "401 is unknown": (401, Unauthorized),
    "403 is forbidden": (403, Forbidden),
    "404 is not found": (404, NotFound),
    "409 is a conflict": (409, Conflict),
    "410 is gone": (410, Gone),
    "429 is too many requests": (429, TooManyRequests),
    "500 is an error without a name of its own": (500, ApiError),
}


@pytest.mark.parametrize(("code", "kind"), ERRORS.values(), ids=ERRORS)
def test_error_answers(api: HttpApi, fake: FakeApi, code: int, kind: type[ApiError]) -> None:
    """Each error answer becomes one exception with the server's reason and words, after one single request."""
    body = b'{"kind": "Status", "code": %d, "reason": "Why", "message": "words"}' % code
    fake.fault(lambda _: True, Answer(code, body, (("Retry-After", "7"),)))
    with pytest.raises(kind) as caught:
        api.request("GET", PODS)
    assert (caught.value.status, caught.value.reason, caught.value.message) == (code, "Why", "words")
    assert caught.value.retry_after == 7
    assert len(fake.requests) == 1
    assert type(caught.value) is kind


def test_error_without_status_object(api: HttpApi, fake: FakeApi) -> None:
    """A proxy's page becomes the message of the error, cut to a readable length."""
    fake.fault(lambda _: True, Answer(502, b"<html>" + b"x" * 5000))
    with pytest.raises(ApiError) as caught:
        api.request("GET", PODS)
    assert (caught.value.status, len(caught.value.message)) == (502, 500)


def test_details_say_when_to_come_back(api: HttpApi, fake: FakeApi) -> None:
    """Without the header, the wait is read from the Status object."""
    fake.fault(lambda _: True, Answer(429, b'{"code": 429, "details": {"retryAfterSeconds": 3}}'))
    with pytest.raises(TooManyRequests) as caught:
        api.request("GET", PODS)
    assert caught.value.retry_after == 3


def test_a_json_patch_arrives_as_it_is(api: HttpApi, fake: FakeApi) -> None:
    """Bytes and content type of a patch reach the server untouched."""
    patch = b'[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'
    fake.fault(lambda _: True, Answer(200, b"{}"))
    api.request("PATCH", PODS, body=patch, content_type=JSON_PATCH)
    assert fake.requests[-1].body == patch
    assert fake.requests[-1].headers["content-type"] == JSON_PATCH


def test_refused_connection(api: HttpApi, fake: FakeApi) -> None:
    """A closed port is unreachable at once."""
    fake.stop()
    with pytest.raises(Unreachable):
        api.request("GET", PODS)


def test_silent_server(api: HttpApi, fake: FakeApi) -> None:
    """A call to a server that says nothing ends with its timeout."""
    fake.fault(lambda _: True, Silence(headers=False))
    began = time.monotonic()
    with pytest.raises(Unreachable):
        api.request("GET", PODS, timeout=0.3)
    assert time.monotonic() - began < 2


def test_dripping_server(drip: Callable[[bytes], tuple[str, int]], tmp_path: Path, fake: FakeApi) -> None:
    """A body that never ends is cut off at the deadline although bytes keep coming."""
    host, port = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n[")
    fake.stop()
    fake.port = port
    api = load_api(kubeconfig(tmp_path, fake))
    began = time.monotonic()
    with pytest.raises(Unreachable, match="took too long"):
        api.request("GET", PODS, timeout=0.5)
    assert (host, time.monotonic() - began < 2) == ("127.0.0.1", True)


WATCH = {"watch": "1", "resourceVersion": "10", "timeoutSeconds": "30"}


def test_stream_gives_whole_lines_only(api: HttpApi, fake: FakeApi) -> None:
    """Lines come without line feed; what was cut off in the middle is not handed on."""
    fake.fault(lambda _: True, Answer(200, b'{"a": 1}\n\n{"b": 2}\n{"c":'))
    with api.stream(PODS, WATCH, read_timeout=5) as stream:
        assert list(stream) == [b'{"a": 1}', b'{"b": 2}']


def test_stream_of_a_dead_line(api: HttpApi, fake: FakeApi) -> None:
    """A stream that falls silent ends with its read timeout."""
    fake.fault(lambda _: True, Silence())
    with api.stream(PODS, WATCH, read_timeout=0.2) as stream, pytest.raises(Unreachable):
        list(stream)


def test_refused_stream(api: HttpApi, fake: FakeApi) -> None:
    """A stream that the server refuses raises like a call."""
    fake.fault(lambda _: True, Answer(410, b'{"code": 410, "reason": "Expired"}'))
    with pytest.raises(Gone):
        api.stream(PODS, WATCH, read_timeout=5)


def test_cut_stream(api: HttpApi, fake: FakeApi) -> None:
    """A connection that is cut in mid-stream raises."""
    with api.stream(PODS, WATCH, read_timeout=5) as stream:
        lines = iter(stream)
        next(lines)
        fake.cut()
        with pytest.raises(Unreachable):
            list(lines)


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_closing_wakes_a_waiting_reader(
    api: HttpApi, fake: FakeApi, in_cluster: tuple[FakeApi, HttpApi, Path], *, encrypted: bool
) -> None:
    """Another thread can end a stream that waits for bytes, long before its timeout."""
    server, connection = (in_cluster[0], in_cluster[1]) if encrypted else (fake, api)
    server.fault(lambda seen: seen.watches, Silence())
    with connection.stream(PODS, WATCH, read_timeout=60) as stream, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: _drain(stream))
        assert not reading.done()
        time.sleep(0.1)
        stream.close()
        reading.result(timeout=2)


def _drain(stream: Iterable[bytes]) -> None:
    try:
        list(stream)
    except Unreachable:
        return


def test_c66_watches_and_workers_share_the_pool(api: HttpApi, fake: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    """Six watches and eight busy workers never make the pool throw a connection away."""
    caplog.set_level(logging.DEBUG, "urllib3")
    fake.create(PODS, "default", "one")
    streams = [api.stream(PODS, WATCH, read_timeout=30) for _ in range(6)]
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: api.request("GET", PODS), range(400)))
    for stream in streams:
        assert b"ADDED" in next(iter(stream))
        stream.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert fake.connections <= 14


def test_c67_two_thousand_calls_grow_nothing(api: HttpApi, fake: FakeApi) -> None:
    """One client serves all calls: no thread and no connection is added after the first hundred."""
    for _ in range(100):
        api.request("GET", PODS)
    threads, connections = threading.active_count(), fake.connections
    for _ in range(1900):
        api.request("GET", PODS)
    assert (threading.active_count(), fake.connections) == (threads, connections)


def test_an_idle_connection_that_was_cut_is_replaced(api: HttpApi, fake: FakeApi) -> None:
    """After a server restart the first call works: the dead connection is noticed before it is used."""
    api.request("GET", PODS)
    fake.stop()
    fake.start()
    assert api.request("GET", PODS).status == 200


def test_own_namespace(tmp_path: Path) -> None:
    """The pod's namespace is known from its account, and unknown elsewhere."""
    folder, _ = account(tmp_path, "t")
    assert own_namespace(folder) == "lockstep-system"
    assert own_namespace(tmp_path / "nowhere") is None


def test_own_identity() -> None:
    """Two processes of one pod name are still two."""
    first, second = own_identity({"POD_NAME": "pod-1"}), own_identity({"POD_NAME": "pod-1"})
    assert first.startswith("pod-1_")
    assert first != second


def test_the_fake_speaks_like_a_server(fake: FakeApi, api: HttpApi) -> None:
    """The fake server's own rules: conflict on create, version precondition on patch, 404 for what is not there."""
    fake.create(PODS, "default", "a", spec={"x": 1})
    namespaced = "/api/v1/namespaces/default/pods"
    with pytest.raises(Conflict) as caught:
        api.request("POST", namespaced, body=b'{"metadata": {"name": "a"}}')
    assert caught.value.reason == "AlreadyExists"
    with pytest.raises(Conflict) as caught:
        api.request("PATCH", namespaced + "/a", body=b'{"metadata": {"resourceVersion": "1"}}')
    assert caught.value.reason == "Conflict"
    with pytest.raises(NotFound):
        api.request("GET", namespaced + "/b")
    assert eventually(lambda: fake.count(lambda seen: isinstance(seen, Seen)) == 3)
    assert status(404, "NotFound")["kind"] == "Status"
