"""AdmissionReview in and out, for objects of any kind.

Source: kubernetes/api `admission/v1/types.go`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from policies.findings import NOTE, Finding, Verdict
from policies.objects import CREATE, DELETE, NOTHING, UPDATE, Operation, Subject, User

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
OPERATIONS: Final[Mapping[str, Operation]] = {operation: operation for operation in (CREATE, UPDATE, DELETE)}

DEEPEST: Final = 100
"""Levels of a review."""

MOST_WARNINGS: Final = 16
LONGEST_WARNING: Final = 256
"""Characters of one warning; the API server cuts all of them together at 4096."""

Json = dict[str, Any]


class BadReview(ValueError):  # noqa: N818 - reads as what the body is
    """A body that is no review: the sender's fault."""


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""
    groups: list[str] | None = None


class Admission(msgspec.Struct, frozen=True, rename="camel"):
    """`request` of a review."""

    uid: str
    operation: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: Json | None = None
    old_object: Json | None = None
    user_info: _UserInfo = _UserInfo()

    def subject(self, namespace_labels: Mapping[str, str] = NOTHING) -> Subject | None:
        """Give what is to be judged, nothing for subresources and for operations that store no object."""
        operation = OPERATIONS.get(self.operation)
        content = self.old_object if operation == DELETE else self.object
        if operation is None or content is None or self.sub_resource:
            return None
        user = User(self.user_info.username, tuple(self.user_info.groups or ()))
        old = self.old_object if operation == UPDATE else None
        return Subject(content, operation=operation, old=old, namespace_labels=namespace_labels, user=user)


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Admission | None = None


_decode = msgspec.json.Decoder(_Review).decode


def read_admission(body: bytes) -> Admission:
    """Decode a review.

    Raises:
        BadReview: saying what is wrong; never anything else, whatever the body.
    """
    try:
        review = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadReview(f"body: must be an {KIND}, got {str(error)[:200]}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        got = f"{review.api_version[:80]}/{review.kind[:80]}"
        raise BadReview(f'kind: must be "{API_VERSION}/{KIND}", got "{got}"')
    if review.request is None:
        raise BadReview("request: must be set, got nothing")
    if not review.request.uid:
        raise BadReview("request.uid: must be set, got nothing")
    if _is_deep(review.request.object) or _is_deep(review.request.old_object):
        raise BadReview(f"request.object: must be at most {DEEPEST} levels deep, got more")
    return review.request


def answer(uid: str, verdict: Verdict, *, warn_only: bool) -> bytes:
    """Encode the answer to a review.

    Args:
        uid: the review's.
        verdict: of its object.
        warn_only: admit whatever the verdict, and say in warnings what would have been refused.
    """
    allowed = verdict.allowed or warn_only
    refused = [] if allowed else [finding for finding in verdict.findings if finding.severity == "error"]
    spoken = [finding for finding in verdict.findings if finding.counts and finding not in refused]
    response: Json = {"uid": uid, "allowed": allowed}
    if refused:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": "; ".join(_texts(refused))}
    if spoken:
        response["warnings"] = [text[:LONGEST_WARNING] for text in _texts(spoken)][:MOST_WARNINGS]
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _texts(findings: Sequence[Finding]) -> list[str]:
    return [f"{finding.rule}: {finding.message}" for finding in findings if finding.severity != NOTE]


def _is_deep(content: object) -> bool:
    level = [content]
    for _ in range(DEEPEST):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()
