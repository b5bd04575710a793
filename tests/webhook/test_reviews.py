"""AdmissionReviews in and out."""

import json
from typing import Any

import pytest

from tests.builders import LWS, leader_pod, review, review_object
from tests.webhook.fakes import REVIEWS, decider
from webhook.reviews import Operation, allow, escape, pointer, read_review

REVIEW_HEAD = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'


def body(**top: Any) -> bytes:
    """Build a review whose top level differs."""
    return json.dumps({**review_object(leader_pod()), **top}).encode()


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        pytest.param(b"", "body: must be an AdmissionReview, got Input data was truncated", id="an empty body"),
        pytest.param(b"{", "body: must be an AdmissionReview, got Input data was truncated", id="half a body"),
        pytest.param(
            b"hello", "body: must be an AdmissionReview, got JSON is malformed: invalid character (byte 0)", id="a text"
        ),
        pytest.param(
            b"\xff\xfe{}",
            "body: must be an AdmissionReview, got JSON is malformed: invalid character (byte 0)",
            id="bytes that are no UTF-8",
        ),
        pytest.param(b"[]", "body: must be an AdmissionReview, got Expected `object`, got `array`", id="a list"),
        pytest.param(b"null", "body: must be an AdmissionReview, got Expected `object`, got `null`", id="null"),
        pytest.param(
            b'{"kind": NaN}',
            "body: must be an AdmissionReview, got JSON is malformed: invalid character (byte 9)",
            id="a number that JSON has not",
        ),
        pytest.param(
            b'{"kind": "AdmissionReview"}{}',
            "body: must be an AdmissionReview, got JSON is malformed: trailing characters (byte 28)",
            id="something after the review",
        ),
        pytest.param(
            b'{"a":' * 100_000,
            "body: must be an AdmissionReview, got maximum recursion depth exceeded while deserializing an object",
            id="nesting without end",
        ),
        pytest.param(
            b"{}", 'kind: must be "admission.k8s.io/v1/AdmissionReview", got "/"', id="an object without a kind"
        ),
        pytest.param(
            body(apiVersion="admission.k8s.io/v1beta1"),
            'kind: must be "admission.k8s.io/v1/AdmissionReview", got "admission.k8s.io/v1beta1/AdmissionReview"',
            id="a review of the old version",
        ),
        pytest.param(
            body(kind="ConversionReview"),
            'kind: must be "admission.k8s.io/v1/AdmissionReview", got "admission.k8s.io/v1/ConversionReview"',
            id="another kind of review",
        ),
        pytest.param(
            body(kind="x" * 1000),
            f'kind: must be "admission.k8s.io/v1/AdmissionReview", got "admission.k8s.io/v1/{"x" * 80}"',
            id="a kind without end",
        ),
        pytest.param(
            json.dumps(leader_pod()).encode(),
            'kind: must be "admission.k8s.io/v1/AdmissionReview", got "v1/Pod"',
            id="a pod instead of a review",
        ),
        pytest.param(body(request=None), "request: must be set, got nothing", id="no request"),
        pytest.param(review(leader_pod(), uid=""), "request.uid: must be set, got nothing", id="an empty uid"),
        pytest.param(
            review(leader_pod(), uid=7),
            "body: must be an AdmissionReview, got Expected `str`, got `int` - at `$.request.uid`",
            id="a uid that is a number",
        ),
        pytest.param(
            review({"metadata": {"labels": {f"{LWS}name": 1}}}),
            "body: must be an AdmissionReview of a pod, got Expected `str`, got `int` - at "
            "`$.request.object.metadata.labels[...]`",
            id="a label that is a number",
        ),
        pytest.param(
            review({"metadata": {"annotations": ["a"]}}),
            "body: must be an AdmissionReview of a pod, got Expected `object | null`, got `array` - at "
            "`$.request.object.metadata.annotations`",
            id="a list of annotations",
        ),
        pytest.param(
            review({"spec": {"schedulerName": {"a": 1}}}),
            "body: must be an AdmissionReview of a pod, got Expected `str | null`, got `object` - at "
            "`$.request.object.spec.schedulerName`",
            id="a scheduler name that is an object",
        ),
    ],
)
def test_what_is_no_review_is_refused_with_a_reason(sent: bytes, text: str) -> None:
    """400 and a sentence, never a 500."""
    decision = decider()(sent)
    assert (decision.status, decision.outcome, decision.uid) == (400, "refused", "")
    assert decision.content_type == "text/plain; charset=utf-8"
    assert decision.body.decode() == text


@pytest.mark.parametrize(
    ("junk", "status"),
    [
        pytest.param(rb"\ud800", 400, id="half a surrogate pair"),
        pytest.param(rb"\udc00\ud800", 400, id="a surrogate pair the wrong way round"),
        pytest.param(b"\xff", 400, id="a byte that is no UTF-8"),
        pytest.param(b"\xed\xa0\x80", 400, id="an encoded surrogate"),
        pytest.param(b"\x00", 400, id="a bare control character"),
        pytest.param(rb"\q", 400, id="an escape that JSON has not"),
        pytest.param(rb"\u0000", 200, id="an escaped control character"),
        pytest.param("ü€😀".encode(), 200, id="other scripts"),
    ],
)
def test_texts_that_are_read_have_to_be_texts(junk: bytes, status: int) -> None:
    """A label, its key, the namespace: none can crash the decision, whatever its bytes."""
    sent = review(leader_pod(labels={"odd": "value"}))
    for place in (b"value", b"odd", b"team-a", b"vllm-0"):
        assert place in sent
        assert decider()(sent.replace(place, junk)).status == status


@pytest.mark.parametrize("path", sorted(REVIEWS.glob("objects-*.json")), ids=lambda path: path.stem)
def test_lists_of_objects_are_no_reviews(path: Any) -> None:
    """The recorded objects beside the reviews are refused."""
    assert decider()(path.read_bytes()).status == 400


@pytest.mark.parametrize(
    ("operations", "warnings", "response"),
    [
        pytest.param((), (), '{"uid":"u","allowed":true}}', id="nothing to say"),
        pytest.param(
            (), ("a: must b, got c",), '{"uid":"u","allowed":true,"warnings":["a: must b, got c"]}}', id="warned"
        ),
        pytest.param(
            (Operation("remove", "/a"),),
            (),
            '{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0="}}',
            id="changed",
        ),
        pytest.param(
            (Operation("add", "/a", "b"),),
            ("w",),
            '{"uid":"u","allowed":true,"patchType":"JSONPatch",'
            '"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6ImIifV0=","warnings":["w"]}}',
            id="changed and warned",
        ),
    ],
)
def test_an_answer_word_for_word(operations: tuple[Operation, ...], warnings: tuple[str, ...], response: str) -> None:
    """Patch and its type come together or not at all."""
    assert allow("u", operations, warnings).decode() == REVIEW_HEAD + response


def test_a_uid_comes_back_as_it_was() -> None:
    """Quotes, backslashes and other scripts included."""
    for uid in ('a"b', "a\\b", "ü", "\x01", "\U0001f600"):
        assert json.loads(allow(uid))["response"]["uid"] == uid
        assert read_review(review(leader_pod(), uid=uid)).uid == uid


@pytest.mark.parametrize(
    ("key", "escaped"),
    [("a", "a"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("a~1b", "a~01b"), ("x.y/z~", "x.y~1z~0"), ("", "")],
)
def test_c48_keys_are_escaped_as_rfc_6901_says(key: str, escaped: str) -> None:
    """The tilde first, then the slash."""
    assert escape(key) == escaped
    assert pointer("/metadata/labels", key) == f"/metadata/labels/{escaped}"
