"""Whatever is sent: an answer below 500, soon, from a process that goes on."""

import http.client
import time
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.policies.service.desks import FIXTURES
from tests.webhook.serving import Served, ask

SECONDS = 10.0
"""Far above what any of these takes, for a busy machine."""

TEXTS = sorted(path.read_text() for path in FIXTURES.glob("*/*.yaml"))

WORDS = "apiVersion:| v1|kind:| Pod| PodGroup|metadata:|spec:|name: a|null|~|0x1f|0o7|1e400|.inf|2026-01-01|<<: |="
SIGNS = "\n|  |- |: |---\n|{|}|[|]|,|\"|'|&a |*a|!!str |!!binary |? |# |> \n|%YAML 1.1\n|...\n|\t|\ufeff|\u2028|\x85"
TOKENS = st.sampled_from([*WORDS.split("|"), *SIGNS.split("|"), "|\n"])
YAML_LIKE = st.lists(TOKENS | st.text(max_size=6), max_size=40).map("".join)


@st.composite
def spoilt_manifests(draw: st.DrawFn) -> str:
    """A fixture with a piece of it replaced by something else."""
    text = draw(st.sampled_from(TEXTS)).partition("\n---\n")[2]
    start = draw(st.integers(0, max(0, len(text) - 1)))
    length = draw(st.integers(0, 30))
    return text[:start] + draw(YAML_LIKE) + text[start + length :]


@pytest.fixture(scope="module")
def connection(service: Served) -> Iterator[http.client.HTTPSConnection]:
    """One connection for all examples."""
    client = service.client()
    yield client
    client.close()


SETTINGS = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@SETTINGS
@given(body=YAML_LIKE | spoilt_manifests() | st.text(max_size=200))
def test_no_text_breaks_a_review(connection: http.client.HTTPSConnection, body: str) -> None:
    """200 or 400, in time."""
    started = time.monotonic()
    sent = body.encode(errors="surrogatepass")
    assert ask(connection, "POST", "/v1/review", sent, content_type="application/yaml").status in (200, 400)
    assert time.monotonic() - started < SECONDS


@SETTINGS
@given(body=st.binary(max_size=300), path=st.sampled_from(["/validate", "/validate/warn", "/v1/review"]))
def test_no_bytes_break_anything(connection: http.client.HTTPSConnection, body: bytes, path: str) -> None:
    """400 for what is neither JSON nor a review."""
    status = ask(connection, "POST", path, body, content_type="application/json").status
    assert status in (200, 400)
