"""What lists and watches look like on the wire, as far as a watch has to understand them. Pure."""

from typing import Final

import msgspec

from reconciler.contract import ApiError, CallFailed, Status
from reconciler.store import Key

BAD_ITEM: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""What decoding may raise for JSON that is not as expected."""


class BadAnswer(CallFailed):
    """The server answered with something that is no list or no event."""


class Meta(msgspec.Struct, frozen=True):
    """Who an object is, and in which version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the wire's spelling


class Envelope(msgspec.Struct, frozen=True):
    """What is read of every object, whatever its kind."""

    metadata: Meta
    kind: str = ""

    @property
    def key(self) -> Key:
        """Where a store keeps it."""
        return (self.metadata.namespace, self.metadata.name)


class Event(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class PageMeta(msgspec.Struct, frozen=True, rename={"more": "continue", "version": "resourceVersion"}):
    """Where a page stands in its list."""

    version: str = ""
    more: str | None = ""


class Page(msgspec.Struct, frozen=True):
    """One page of a list, its objects not yet decoded."""

    metadata: PageMeta
    items: list[msgspec.Raw] | None = None
    kind: str = ""


decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_event = msgspec.json.Decoder(Event).decode
decode_page = msgspec.json.Decoder(Page).decode
_decode_status = msgspec.json.Decoder(Status).decode


def stream_error(raw: msgspec.Raw) -> ApiError:
    """Turn the object of an ERROR event into the exception that the same HTTP answer would have been."""
    try:
        status = _decode_status(raw)
    except BAD_ITEM:
        return ApiError(500, "", "an ERROR event without a Status")
    if status.reason == "Expired":
        status = msgspec.structs.replace(status, code=410)
    return status.error(500)
