"""One LeaderWorkerSet on the API server: read as it stands, changed by patches, its leaders deleted."""

from collections.abc import Callable
from typing import Final

import msgspec

from lockstep.templates import Json
from reconciler.cache import LEADER_WORKER_SETS, PODS
from reconciler.contract import MERGE_PATCH, Api, Conflict, NotFound, object_path

TRIES: Final = 5
"""How often a change is made anew because the LWS has changed meanwhile."""


def split(name: str) -> tuple[str, str]:
    """Read `NAME` or `NAMESPACE/NAME`, also with `lws/` before it; gives namespace and name."""
    namespace, _, last = name.removeprefix("lws/").rpartition("/")
    return namespace or "default", last


def read(api: Api, namespace: str, name: str) -> Json:
    """Read an LWS.

    Raises:
        reconciler.contract.CallFailed: there is none, or the server did not answer.
    """
    answer = api.request("GET", object_path(LEADER_WORKER_SETS, namespace, name))
    return msgspec.json.decode(answer.body, type=Json)


def change(api: Api, lws: Json, patch_of: Callable[[Json], Json | None]) -> bool:
    """Patch an LWS; tells whether there was something to change.

    Args:
        api: whom to ask.
        lws: as it was read.
        patch_of: builds the patch out of the LWS; asked again when the LWS has changed meanwhile.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused.
    """
    namespace, name = lws["metadata"]["namespace"], lws["metadata"]["name"]
    path = object_path(LEADER_WORKER_SETS, namespace, name)
    for tries in range(1, TRIES + 1):
        patch = patch_of(lws)
        if patch is None:
            return False
        try:
            api.request("PATCH", path, body=msgspec.json.encode(patch), content_type=MERGE_PATCH)
        except Conflict:
            if tries == TRIES:
                raise
            lws = read(api, namespace, name)
        else:
            return True
    return False


def delete_leader(api: Api, namespace: str, name: str, uid: str) -> None:
    """Delete a leader pod, only if it still is the one with this UID; LWS makes its replica anew.

    Raises:
        reconciler.contract.CallFailed: the server did not answer, or refused.
    """
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    try:
        api.request("DELETE", object_path(PODS, namespace, name), body=msgspec.json.encode(options))
    except (NotFound, Conflict):
        return
