"""Carries out actions: the one place that writes objects of the cluster."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gangs import keys
from reconciler.actions import (
    Action,
    CreateGroup,
    DeletePod,
    DeleteShared,
    LookAgain,
    OpenGate,
    PatchGroup,
    PatchPod,
    Say,
)
from reconciler.cache import PODS, Cache
from reconciler.contract import JSON, MERGE_PATCH, STRATEGIC_PATCH, Api, ApiError, Conflict, NotFound, object_path
from reconciler.objects import GroupObject, LeaderWorkerSet
from reconciler.recorder import ObjectRef, Recorder
from schedulers.contract import GroupKind

INVALID: Final = 422
ANOTHER_UID: Final = "metadata.uid"
"""In the message with which API servers refuse a patch that names a UID which is not the pod's."""

_decode_group: Final = msgspec.json.Decoder(GroupObject).decode


class Writer:
    """Carries out actions on one API server."""

    def __init__(self, api: Api, cache: Cache, recorder: Recorder) -> None:
        """Take a fenced `Api`."""
        self._api, self._cache, self._recorder = api, cache, recorder

    def carry_out(self, action: Action, lws: LeaderWorkerSet | None) -> None:
        """Carry out one action.

        Args:
            action: what to do; `LookAgain` is the loop's own.
            lws: whom events are about; without it nothing is said.

        Raises:
            reconciler.contract.CallFailed: the write did not succeed; the key is to be tried again.
            reconciler.leases.NotLeader: the write was held back.
        """
        match action:
            case CreateGroup(kind, namespace, name, body):
                self._create(kind, namespace, name, body)
            case PatchGroup(kind, namespace, name, body):
                self._patch(kind, namespace, name, body)
            case PatchPod(namespace, name, body):
                self._change_pod(namespace, name, body)
            case OpenGate(namespace, name, body):
                self._change_pod(namespace, name, body, STRATEGIC_PATCH)
            case DeletePod(namespace, name, uid):
                self._delete(PODS, namespace, name, uid)
            case DeleteShared(kind, namespace, name, uid):
                self._delete(kind, namespace, name, uid)
            case Say(reason, message, subject, type):
                if lws is not None:
                    self._recorder.say(reference(lws), type, reason, message, subject)
            case LookAgain():
                pass

    def touch(self, kind: GroupKind, namespace: str, name: str, annotation: str, value: str) -> None:
        """Write an annotation on a group object, so that its scheduler looks again; a missing object is no matter."""
        body = {"metadata": {"annotations": {annotation: value}}}
        try:
            self._patch(kind, namespace, name, body)
        except NotFound:
            return

    def _create(self, kind: GroupKind, namespace: str, name: str, body: Mapping[str, object]) -> None:
        """Create a group object; one that exists already is read, so that the next decision sees whose it is."""
        try:
            answer = self._api.request("POST", object_path(kind, namespace), body=msgspec.json.encode(body))
        except Conflict:
            answer = self._api.request("GET", object_path(kind, namespace, name))
            self._cache.written.remember(kind, _decode_group(answer.body))
            raise
        self._cache.written.remember(kind, _decode_group(answer.body))

    def _patch(self, kind: GroupKind, namespace: str, name: str, body: Mapping[str, object]) -> None:
        path = object_path(kind, namespace, name)
        try:
            answer = self._api.request("PATCH", path, body=msgspec.json.encode(body), content_type=MERGE_PATCH)
        except (Conflict, NotFound):
            self._cache.written.forget(kind, namespace, name)
            raise
        self._cache.written.remember(kind, _decode_group(answer.body))

    def _change_pod(self, namespace: str, name: str, body: Mapping[str, object], how: str = MERGE_PATCH) -> None:
        path = object_path(PODS, namespace, name)
        try:
            self._api.request("PATCH", path, body=msgspec.json.encode(body), content_type=how)
        except ApiError as error:
            if error.status == INVALID and ANOTHER_UID in error.message:
                # Another pod of that name, and so no refusal: the watch will show it.
                raise Conflict(409, "Conflict", error.message) from error
            raise

    def _delete(self, kind: GroupKind, namespace: str, name: str, uid: str) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        path = object_path(kind, namespace, name)
        try:
            self._api.request("DELETE", path, body=msgspec.json.encode(options), content_type=JSON)
        except (NotFound, Conflict):
            return


def reference(lws: LeaderWorkerSet) -> ObjectRef:
    """Refer to an LWS in an event."""
    metadata = lws.metadata
    return ObjectRef(keys.LWS_API_VERSION, keys.LWS_KIND, metadata.namespace, metadata.name, metadata.uid)
