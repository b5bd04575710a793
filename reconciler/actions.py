"""What the reconciler may do: values that `decisions` returns and `writing` carries out."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from schedulers.contract import GroupKind


class CreateGroup(msgspec.Struct, frozen=True):
    """Create a group object."""

    kind: GroupKind
    namespace: str
    name: str
    body: Mapping[str, object]


class PatchGroup(msgspec.Struct, frozen=True):
    """Change a group object by a merge patch that names its UID."""

    kind: GroupKind
    namespace: str
    name: str
    body: Mapping[str, object]


class PatchPod(msgspec.Struct, frozen=True):
    """Change a pod's labels and annotations by a merge patch that names its UID."""

    namespace: str
    name: str
    body: Mapping[str, object]


class OpenGate(msgspec.Struct, frozen=True):
    """Take our scheduling gate off a pod, and write on it what its scheduler reads, by one strategic merge patch."""

    namespace: str
    name: str
    body: Mapping[str, object]


class DeletePod(msgspec.Struct, frozen=True):
    """Delete a pod, only if it still is the one with this UID."""

    namespace: str
    name: str
    uid: str


class DeleteShared(msgspec.Struct, frozen=True):
    """Delete an object of ours that no replica needs any more, only if it still is the one with this UID."""

    kind: GroupKind
    namespace: str
    name: str
    uid: str


class Say(msgspec.Struct, frozen=True):
    """Tell the users of the LWS, by an event.

    Attributes:
        reason: CamelCase, for machines.
        message: for people.
        subject: what it is said about; one event for each reason and subject.
        type: `Warning` when something is wrong, else `Normal`.
    """

    reason: str
    message: str
    subject: str
    type: Literal["Normal", "Warning"] = "Warning"


class LookAgain(msgspec.Struct, frozen=True):
    """Decide again after some seconds, whatever happens meanwhile."""

    seconds: float
    reason: str


Action = CreateGroup | PatchGroup | PatchPod | OpenGate | DeletePod | DeleteShared | Say | LookAgain


def describe(action: Action) -> str:
    """Describe an action in a few words, for logs."""
    match action:
        case CreateGroup(kind, _, name, _):
            text = f"creates {kind.title} {name}"
        case PatchGroup(kind, _, name, body):
            text = f"changes {kind.title} {name}: {body}"
        case PatchPod(_, name, _) | OpenGate(_, name, _):
            text = f"{'writes on' if isinstance(action, PatchPod) else 'opens the gate of'} pod {name}"
        case DeletePod(_, name, uid):
            text = f"deletes pod {name} ({uid})"
        case DeleteShared(kind, _, name, uid):
            text = f"deletes {kind.title} {name} ({uid})"
        case Say(reason, message, _, _):
            text = f"says {reason}: {message}"
        case LookAgain(seconds, reason):
            text = f"looks again in {seconds:.1f} s: {reason}"
    return text
