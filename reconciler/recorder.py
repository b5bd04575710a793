"""Events on objects: each thing worth saying once, without making a worker wait."""

import collections
import hashlib
import logging
import threading
from typing import Final, Literal

import msgspec

from reconciler.clocks import Clock, SystemClock, seconds_time
from reconciler.contract import Api, ApiError, CallFailed, Conflict, TooManyRequests, Unauthorized, object_path
from reconciler.fence import NotLeader
from reconciler.pacing import Backoff, TokenBucket
from reconciler.telemetry import Meters
from reconciler.work_queue import WorkQueue
from schedulers.contract import GroupKind

log = logging.getLogger(__name__)

EVENTS: Final = GroupKind("", "v1", "Event", "events")
LONGEST_NAME: Final = 253
LONGEST_MESSAGE: Final = 1024
LONGEST_REASON: Final = 128
SERVER_ERROR: Final = 500

EventType = Literal["Normal", "Warning"]


class ObjectRef(msgspec.Struct, frozen=True):
    """What an Event is about.

    Attributes:
        api_version: as in the object.
        kind: as in the object.
        namespace: empty for cluster-wide kinds.
        name: the object's name.
        uid: the object's uid.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Remark(msgspec.Struct, frozen=True):
    """One thing said about one object; see `Recorder.say`."""

    about: ObjectRef
    type: EventType
    reason: str
    message: str
    subject: str

    @property
    def namespace(self) -> str:
        """Namespace of the Event; that of cluster-wide objects is `default`, as everywhere in Kubernetes."""
        return self.about.namespace or "default"

    @property
    def name(self) -> str:
        """Name of the Event: the same for the same thing said, whoever says it and however often."""
        told = "\0".join((self.about.uid, self.reason, self.subject or self.message))
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        return f"{self.about.name[: LONGEST_NAME - 17].rstrip('.-')}.{digest}"

    def event(self, component: str, instance: str, when: str) -> dict[str, object]:
        """Build the Event object."""
        about = self.about
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": self.type,
            "reason": self.reason[:LONGEST_REASON],
            "message": _shortened(self.message),
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": instance,
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }


class Recorder:
    """Writes Events from a thread of its own."""

    def __init__(  # noqa: PLR0913 - everything it touches is passed in
        self,
        api: Api,
        *,
        component: str = "lockstep",
        instance: str = "",
        meters: Meters | None = None,
        clock: Clock | None = None,
        bucket: TokenBucket | None = None,
        most: int = 1000,
        remember: float = 3600.0,
    ) -> None:
        """Prepare.

        Args:
            api: where Events go; a fenced one, so that only the leader speaks.
            component: who speaks.
            instance: which process of it.
            meters: where to count.
            clock: the recorder's time.
            bucket: bound on Events a second.
            most: remarks that may wait; the oldest is dropped for a new one. As many are remembered as said.
            remember: seconds after which a remark that is made again is written again, because API servers forget
                Events after an hour.
        """
        self._api, self._component, self._instance = api, component, instance
        self._meters = meters or Meters()
        self._clock = clock or SystemClock()
        self._bucket = bucket or TokenBucket(5.0, 25)
        self._most, self._remember = most, remember
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], Remark] = {}
        self._said: collections.OrderedDict[tuple[str, str], float] = collections.OrderedDict()
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(clock=self._clock, backoff=Backoff(1.0, 60.0))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def say(self, about: ObjectRef, kind: EventType, reason: str, message: str, subject: str = "") -> None:
        """Say something about an object; returns at once.

        Args:
            about: the object; its uid is part of the Event's identity.
            kind: `Normal` or `Warning`.
            reason: one word in CamelCase.
            message: for people, 1,024 characters at most are kept.
            subject: what makes this remark the same as an earlier one though its words differ; the message by default.
        """
        remark = Remark(about, kind, reason, message, subject)
        key = (remark.namespace, remark.name)
        with self._lock:
            if key in self._waiting or self._said.get(key, float("-inf")) > self._clock.now() - self._remember:
                return
            if len(self._waiting) >= self._most:
                del self._waiting[next(iter(self._waiting))]
                self._meters.event("dropped")
            self._waiting[key] = remark
        self._queue.add(key)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread; remarks that still wait are lost. Tells whether it ended in time."""
        self._stopping.set()
        self._queue.shut_down(discard=True)
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (key := self._queue.get()) is not None:
            with self._lock:
                remark = self._waiting.get(key)
            if remark is None:
                self._queue.forget(key)
            elif not self._stopping.wait(self._bucket.reserve(self._clock.now())):
                self._settle(key, self._write(remark))
            self._queue.done(key)

    def _write(self, remark: Remark) -> str:
        """Write one Event; gives what became of it: `ok`, `known`, `retried`, `refused` or `fenced`."""
        event = remark.event(self._component, self._instance, seconds_time(self._clock.utc()))
        try:
            path = object_path(EVENTS, remark.namespace)
            self._api.request("POST", path, body=msgspec.json.encode(event))
        except Conflict:
            return "known"
        except NotLeader:
            return "fenced"
        except CallFailed as error:
            log.warning("event %s/%s: %s", remark.namespace, remark.name, error)
            return "refused" if _lasting(error) else "retried"
        return "ok"

    def _settle(self, key: tuple[str, str], outcome: str) -> None:
        self._meters.event(outcome)
        if outcome == "retried":
            self._queue.add_failed(key)
            return
        self._queue.forget(key)
        with self._lock:
            self._waiting.pop(key, None)
            if outcome in ("ok", "known"):
                self._said[key] = self._clock.now()
                self._said.move_to_end(key)
            while len(self._said) > self._most:
                self._said.popitem(last=False)


def _lasting(error: CallFailed) -> bool:
    """Tell whether the server will say the same next time: the namespace is being deleted, the Event is not valid."""
    if not isinstance(error, ApiError) or isinstance(error, TooManyRequests | Unauthorized):
        return False
    return error.status < SERVER_ERROR


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
