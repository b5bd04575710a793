"""`lockstep breakglass on|off`: lets LWS pods be created while Lockstep is away, and closes that again.

What is changed carries a mark with the reason and the values that were there; each change is an Event. The reconciler
writes nothing of these objects but `caBundle`, so it does not fight it.
"""

import argparse
import datetime as dt
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from lockstep.doctoring.opening_patches import Operation, closing_patch, opening_patch
from lockstep.doctoring.places import BINDING, FINAL_CHECK, MUTATING, MUTATING_NAME, VALIDATING, VALIDATING_NAME
from lockstep.doctoring.seeing import ADMISSION, plural_of
from lockstep.exit_codes import BAD_CONFIGURATION, FINE, WRONG_USAGE, fail
from lockstep.failures import FAILURES, end_by
from reconciler.api import load_api
from reconciler.contract import JSON_PATCH, Api, ApiError, Conflict, NotFound

OBJECTS: Final = ((MUTATING, MUTATING_NAME), (VALIDATING, VALIDATING_NAME), (BINDING, FINAL_CHECK))
TRIES: Final = 5
LONGEST_REASON: Final = 500
EVENTS_OF_CLUSTER_OBJECTS: Final = "default"
"""Where the API server wants the Events of objects that are in no namespace."""

Patch = Callable[[dict[str, Any]], list[Operation]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", metavar="on|off", required=True)
    opens = actions.add_parser("on", help="admit LWS pods whether Lockstep answers or not")
    opens.add_argument("--reason", required=True, metavar="TEXT", help="kept on every object that is changed")
    opens.add_argument("--uncalled", action="store_true", help="don't have the webhooks called at all, answer or not")
    closes = actions.add_parser("off", help="put back what was there before")
    for action in (opens, closes):
        action.add_argument("--kubeconfig", type=Path, help="a kubeconfig file; else the pod's own account is used")


def run(args: argparse.Namespace) -> int:
    """Change every object; give the exit code."""
    if args.action == "on" and not 0 < (length := len(args.reason.strip())) <= LONGEST_REASON:
        return fail(f"--reason: must have 1 to {LONGEST_REASON} characters, got {length}", WRONG_USAGE)
    try:
        api = load_api(args.kubeconfig)
        told = list(_switch(api, args))
    except FAILURES as error:
        return end_by(error, "read and patch")
    except ValueError as error:
        return fail(f"api server: must let us read and patch, got {error}", BAD_CONFIGURATION)
    sys.stdout.write("".join(f"{line}\n" for line in told))
    return FINE


def _switch(api: Api, args: argparse.Namespace) -> Iterator[str]:
    """Change every object and say what became of it."""
    now = dt.datetime.now(dt.UTC)
    since = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    if args.action == "on":
        who, reason = _user(api), args.reason.strip()
        words = ("BreakglassOn", "opened", f"opened by {who or 'someone'}: {reason}")

        def patch(content: dict[str, Any]) -> list[Operation]:
            return opening_patch(content, reason, who, since, uncalled=args.uncalled)
    else:
        words, patch = ("BreakglassOff", "closed", "closed again"), closing_patch
    for kind, name in OBJECTS:
        changed = _change(api, kind, name, patch)
        if isinstance(changed, str):
            yield f'{kind} "{name}": {changed}'
            continue
        yield f'{kind} "{name}": {words[1]}'
        _tell(api, changed, words[0], words[2], now)


def _change(api: Api, kind: str, name: str, patch: Patch) -> dict[str, Any] | str:
    """Patch one object, once more when someone else was quicker; gives it, or why it is as it was."""
    path = f"/apis/{ADMISSION}/{plural_of(kind)}/{name}"
    for attempt in range(TRIES):
        try:
            content: dict[str, Any] = msgspec.json.decode(api.request("GET", path).body)
            operations = patch({"kind": kind, **content})
            if not operations:
                return "as it was"
            body = msgspec.json.encode(operations)
            api.request("PATCH", path, body=body, content_type=JSON_PATCH)
        except NotFound:
            return "not there"
        except ApiError as error:
            # A failed test of a JSON patch is 422.
            if attempt == TRIES - 1 or (not isinstance(error, Conflict) and error.status != 422):  # noqa: PLR2004
                raise
            continue
        return content
    raise AssertionError("the last try returns or raises")


def _user(api: Api) -> str:
    """Ask who we are; empty where the API server does not tell."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    try:
        answer: dict[str, Any] = msgspec.json.decode(api.request("POST", path, body=body).body)
    except ApiError:
        return ""
    return str(answer["status"]["userInfo"]["username"])


def _tell(api: Api, content: dict[str, Any], reason: str, message: str, now: dt.datetime) -> None:
    """Leave an Event; that it can't be left is no reason to stop."""
    meta, stamp = content["metadata"], f"{now:%Y-%m-%dT%H:%M:%SZ}"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": EVENTS_OF_CLUSTER_OBJECTS},
        "involvedObject": {"apiVersion": ADMISSION, "kind": content["kind"], "name": meta["name"], "uid": meta["uid"]},
        "reason": reason,
        "message": message,
        "type": "Warning" if reason == "BreakglassOn" else "Normal",
        "source": {"component": "lockstep-breakglass"},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    path = f"/api/v1/namespaces/{EVENTS_OF_CLUSTER_OBJECTS}/events"
    try:
        api.request("POST", path, body=msgspec.json.encode(event))
    except ApiError as error:
        print(f"event: must be written, got {error}", file=sys.stderr)  # noqa: T201
