"""The small parts of the server, each by itself."""

import inspect
import logging
import os
from pathlib import Path

import pytest
from gunicorn.asgi.protocol import ASGIProtocol, BodyReceiver
from gunicorn.workers.gasgi import ASGIWorker

from serving.addresses import Address, bound_address, open_listener, parse_address
from serving.bridge import environ_of
from serving.deadlines import seconds_allowed
from serving.logs import LineHandler, LineWriter, make_line
from serving.worker import require_c_parser
from tests.webhook.serving import log_lines
from webhook.transport import find_refusal


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("", 10.0, id="no query"),
        pytest.param("timeout=10s", 9.8, id="as the API server writes it, less our margin"),
        pytest.param("timeout=2s", 1.8, id="less than ours"),
        pytest.param("timeout=30s", 10.0, id="more than ours"),
        pytest.param("timeout=1m0s", 10.0, id="a minute"),
        pytest.param("timeout=1.5s", 1.3, id="a fraction"),
        pytest.param("timeout=2500ms", 2.3, id="milliseconds"),
        pytest.param("timeout=1ms", 0.1, id="next to nothing"),
        pytest.param("timeout=0s", 0.1, id="nothing"),
        pytest.param("a=b&timeout=2s&c=d", 1.8, id="among others"),
        pytest.param("timeout=", 10.0, id="empty"),
        pytest.param("timeout=2", 10.0, id="no unit"),
        pytest.param("timeout=-2s", 10.0, id="negative"),
        pytest.param("timeout=2s3", 10.0, id="a rest"),
        pytest.param("timeout=" + "9" * 500 + "s", 10.0, id="five hundred digits"),
        pytest.param("timeout=1..5s", 10.0, id="two points"),
        pytest.param("xtimeout=2s", 10.0, id="another name"),
    ],
)
def test_seconds_allowed(query: str, seconds: float) -> None:
    """A request may take what its caller waits for, never more than our own maximum."""
    assert seconds_allowed(query, 10.0) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("content_type", "encoding", "length", "status"),
    [
        pytest.param("application/json", "", "100", None, id="JSON"),
        pytest.param("application/json", "", "", None, id="no length"),
        pytest.param(" application/JSON ; charset=utf-8", "identity", "0", None, id="JSON spelt otherwise"),
        pytest.param("application/json", "", "3145728", None, id="just not too long"),
        pytest.param("application/json", "", "3145729", 413, id="just too long"),
        pytest.param("application/json", "", "9" * 5000, 413, id="a length of 5000 digits"),
        pytest.param(
            "application/json", "", "many", None, id="a length that the parser lets through is not ours to judge"
        ),
        pytest.param("application/jsonx", "", "1", 415, id="longer than JSON"),
        pytest.param("text/plain, application/json", "", "1", 415, id="two types"),
        pytest.param("", "", "1", 415, id="no type"),
        pytest.param("application/json", "br", "1", 415, id="compressed"),
    ],
)
def test_find_refusal(content_type: str, encoding: str, length: str, status: int | None) -> None:
    """The head decides before the body is read."""
    refusal = find_refusal(content_type, encoding, length)
    assert (refusal and refusal.status) == status


def test_a_refusal_shows_no_control_characters() -> None:
    """What a peer sent goes back short and printable."""
    refusal = find_refusal("a\x1b[31m\xe9" + "b" * 500, "", "")
    assert refusal is not None
    assert refusal.body == b'content-type: must be application/json, got "a?[31m?' + b"b" * 73 + b'"'


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("127.0.0.1:8443", Address("127.0.0.1", 8443), id="IPv4"),
        pytest.param("[::1]:8443", Address("::1", 8443), id="IPv6"),
        pytest.param("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1), id="IPv6 with a zone"),
        pytest.param(":8443", Address("", 8443), id="every address"),
        pytest.param("localhost:0", Address("localhost", 0), id="any port"),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    """Addresses are read as people write them, and written the same way."""
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "8443", "host", "::1:8443", "[::1]", "[host]x:1", "a:b", "a:65536", "a:-1", "a:1:2", "[]:1"]
)
def test_bad_addresses(text: str) -> None:
    """Anything else is refused with what was expected."""
    with pytest.raises(ValueError, match=r"must be HOST:PORT, \[IPV6\]:PORT or :PORT, got"):
        parse_address(text)


def test_c62_a_machine_without_ipv6() -> None:
    """C62: where there is no IPv6, every address means every IPv4 address."""
    with open_listener(Address("", 0), dual_stack=False) as listener:
        assert bound_address(listener).host == "0.0.0.0"  # noqa: S104 - that is the point


def test_a_wsgi_environ() -> None:
    """A scope becomes the environ that WSGI asks for, without what belongs to the unread body."""
    environ = environ_of(
        {
            "method": "GET",
            "path": "/ä",
            "query_string": b"a=b",
            "http_version": "1.1",
            "scheme": "https",
            "server": ("127.0.0.1", 8443),
            "client": ("127.0.0.2", 1234),
            "headers": [(b"host", b"x"), (b"content-length", b"5"), (b"content-type", b"a/b"), (b"x-y", b"\xe9")],
        }
    )
    kept = {name: value for name, value in environ.items() if name.isupper()}
    assert kept == {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/Ã¤",
        "QUERY_STRING": "a=b",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.2",
        "HTTP_HOST": "x",
        "HTTP_X_Y": "é",
    }
    assert environ["wsgi.input"].read() == b""


def test_log_lines(tmp_path: Path) -> None:
    """Lines are JSON with the time first, exceptions of Python's logging included."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        writer = LineWriter(file.fileno())
        writer.write_all([make_line(1_764_459_435.25, {"level": "info", "message": "é\n"})])
        error = KeyError("gone")
        record = logging.LogRecord("test", logging.ERROR, "", 0, "it %s", ("broke",), (KeyError, error, None))
        LineHandler(writer).handle(record)
    first, second = log_lines(log)
    assert first == {"ts": "2025-11-29T23:37:15.250Z", "level": "info", "message": "é\n"}
    assert (second["level"], second["message"], second["pid"]) == ("error", "it broke", os.getpid())
    assert second["traceback"].endswith("KeyError: 'gone'")


def test_a_full_pipe_drops_lines_and_counts_them() -> None:
    """What a full pipe does not take is dropped; once it is read, lines go through again."""
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    for _ in range(1000):
        writer.write({"message": "x" * 200})
    assert writer.dropped > 600
    dropped = writer.dropped
    os.read(reading, 1 << 20)
    writer.write({"message": "again"})
    assert writer.dropped == dropped
    assert b'"again"' in os.read(reading, 1 << 20)
    os.close(reading)
    writer.write({"message": "nobody reads"})
    assert writer.dropped == dropped + 1
    os.close(writing)


def test_gunicorn_has_what_the_worker_leans_on() -> None:
    """The undocumented names of gunicorn that `serving.worker` uses are there, and coroutines where they should be."""
    require_c_parser()
    assert inspect.iscoroutinefunction(ASGIWorker._serve)
    assert inspect.iscoroutinefunction(ASGIWorker._shutdown)
    assert inspect.iscoroutinefunction(ASGIProtocol._handle_http_request)
    assert inspect.iscoroutinefunction(ASGIProtocol._serve_http_request)
    serve = inspect.signature(ASGIProtocol._serve_http_request)
    assert list(serve.parameters) == ["self", "request", "sockname", "peername"]
    for name in (
        "_will_close",
        "_send_body",
        "_on_headers_complete",
        "_arm_keepalive_timer",
        "_cancel_keepalive_timer",
    ):
        assert callable(getattr(ASGIProtocol, name))
    assert "_complete" in BodyReceiver.__slots__
    used = ("_awaiting_request", "_current_request", "_closed", "_keepalive", "_keepalive_handle", "_body_receiver")
    source = inspect.getsource(ASGIProtocol.__init__)
    assert [name for name in used if f"self.{name} = " not in source] == []
