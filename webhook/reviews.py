"""AdmissionReview in and out: the few fields that matter, typed.

Source: kubernetes/api `admission/v1/types.go`.
"""

import functools
from collections.abc import Sequence
from typing import Final

import msgspec

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`spec.schedulingGroup` of a pod."""

    pod_group_name: str | None = None


class SchedulingGate(msgspec.Struct, frozen=True, gc=False):
    """One of `spec.schedulingGates` of a pod."""

    name: str | None = None


class WorkloadReference(msgspec.Struct, frozen=True, gc=False):
    """`spec.workloadRef` of a pod of Kubernetes 1.35."""

    name: str | None = None


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of a PodSpec that decides who places the pod, and when."""

    scheduler_name: str | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    node_name: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    # Read only for pods that ask for a claim.
    resource_claims: msgspec.Raw = msgspec.Raw(b"null")
    containers: msgspec.Raw = msgspec.Raw(b"null")


class PodMetadata(msgspec.Struct, frozen=True, gc=False):
    """The part of a pod's metadata that is read."""

    name: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The reviewed pod."""

    metadata: PodMetadata | None = None
    spec: PodSpec | None = None


class Kind(msgspec.Struct, frozen=True, gc=False):
    """Group, version and kind of the reviewed object."""

    group: str = ""
    kind: str = ""


class Request(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`request` of a review."""

    uid: str
    kind: Kind
    operation: str
    sub_resource: str = ""
    namespace: str = ""
    object: Pod | None = None

    @property
    def creates_pod(self) -> bool:
        """Whether the review is about a pod that is being created."""
        kind = self.kind
        return self.operation == "CREATE" and kind.kind == "Pod" and not kind.group and not self.sub_resource


class Review(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An AdmissionReview as the API server sends it."""

    api_version: str = ""
    kind: str = ""
    request: Request | None = None


class _AnyRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    uid: str
    kind: Kind
    operation: str
    sub_resource: str = ""
    namespace: str = ""


class _Headline(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A review whose object is of a kind that has other types where a pod has the fields that are read."""

    api_version: str = ""
    kind: str = ""
    request: _AnyRequest | None = None


class BadReview(ValueError):  # noqa: N818 - reads as what the body is
    """A body that is not a review: the sender's fault, answered with 400."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """An answer to a request.

    Attributes:
        status: HTTP status.
        body: HTTP body.
        content_type: of the body.
        outcome: `stamped`, `unchanged`, `withdrawn`, `warned` or `refused`.
        provider: name of the provider that stamped, empty for none.
        uid: the review's uid, empty where there is none.
    """

    status: int
    body: bytes
    content_type: str
    outcome: str
    provider: str = ""
    uid: str = ""


class Operation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation of an RFC 6902 patch."""

    op: str
    path: str
    value: object = None


class Response(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """`response` of an answered review; `patch` is encoded as base64."""

    uid: str
    allowed: bool
    patch_type: str | None = None
    patch: bytes | None = None
    warnings: Sequence[str] = ()


class AnsweredReview(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An AdmissionReview as it goes back."""

    api_version: str
    kind: str
    response: Response


_review = msgspec.json.Decoder(Review)
_headline = msgspec.json.Decoder(_Headline)
_encode = msgspec.json.Encoder().encode


def read_review(body: bytes) -> Request:
    """Decode a review.

    Raises:
        BadReview: saying what is wrong; never anything else, whatever the body.
    """
    review = _decode(body)
    if review.kind != KIND or review.api_version != API_VERSION:
        got = f"{review.api_version[:80]}/{review.kind[:80]}"
        raise BadReview(f'kind: must be "{API_VERSION}/{KIND}", got "{got}"')
    if review.request is None:
        raise BadReview("request: must be set, got nothing")
    if not review.request.uid:
        raise BadReview("request.uid: must be set, got nothing")
    return review.request


def _decode(body: bytes) -> Review:
    try:
        return _review.decode(body)
    except msgspec.ValidationError as error:
        other = _decode_other(body)
        if other.request is None or other.request.creates_pod:
            raise BadReview(f"body: must be an {KIND} of a pod, got {error}") from error
        return other
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"body: must be an {KIND}, got {error}") from error


def _decode_other(body: bytes) -> Review:
    """Decode a review whose object doesn't look like a pod, without its object."""
    try:
        headline = _headline.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"body: must be an {KIND}, got {error}") from error
    request = None if headline.request is None else Request(**msgspec.structs.asdict(headline.request))
    return Review(headline.api_version, headline.kind, request)


def allow(uid: str, operations: Sequence[Operation] = (), warnings: Sequence[str] = ()) -> bytes:
    """Build the answer that admits the object, changed by `operations` where there are any."""
    if operations:
        response = Response(uid, True, "JSONPatch", _encode(operations), warnings)  # noqa: FBT003 - positions are faster
    else:
        response = Response(uid, allowed=True, warnings=warnings)
    return _encode(AnsweredReview(API_VERSION, KIND, response))


@functools.cache
def pointer(where: str, key: str) -> str:
    """Give the JSON Pointer (RFC 6901) of a map's key; remembered, as the keys are those of our own stamps."""
    return f"{where}/{escape(key)}"


def escape(key: str) -> str:
    """Escape a map key for a JSON Pointer (RFC 6901 section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
