"""What an admission request must be before its body is worth reading.

The server on the hot path and the Flask view ask the same questions here, so that they answer alike. Nothing in this
module reads or writes: it takes header values and gives a refusal, or nothing.
"""

from collections.abc import Callable
from functools import lru_cache

from webhook.reviews import TEXT, Decision

MAX_BODY = 3 << 20
"""Bytes of a review that are read at most. One pod is at most 1.5 MiB in etcd; an update carries it twice."""

Decide = Callable[[bytes], Decision]
"""The pure decision: the body of a request in, the answer out."""


def refuse(status: int, reason: str, outcome: str) -> Decision:
    """Make the answer to a request that is refused for its form: plain text, and a word for the metric."""
    return Decision(status, reason.encode(), TEXT, outcome)


TOO_LARGE = refuse(413, f"body: must be at most {MAX_BODY} bytes", "too-large")
TOO_LATE = refuse(408, "body: must arrive before the deadline", "too-late")
TOO_MANY = refuse(503, "body: must wait, too many large bodies are being read", "too-many")


def find_refusal(content_type: str, content_encoding: str, content_length: str) -> Decision | None:
    """Judge a POST to /mutate by its headers; the values are "" where a header is absent."""
    if not _is_json(content_type):
        return refuse(415, f'content-type: must be application/json, got "{_shown(content_type)}"', "wrong-type")
    if content_encoding and content_encoding.strip().lower() != "identity":
        return refuse(415, f'content-encoding: must be absent, got "{_shown(content_encoding)}"', "wrong-type")
    if content_length.isdecimal() and int(content_length[:20]) > MAX_BODY:
        return TOO_LARGE
    return None


@lru_cache(maxsize=64)
def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _shown(value: str) -> str:
    """A header's value as it may stand in an answer: short and printable."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in value[:80])
