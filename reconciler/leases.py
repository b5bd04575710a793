"""Leader election by a Lease.

Same protocol as client-go's leaderelection (coordination.k8s.io/v1, holderIdentity), so `kubectl get lease` reads as
usual. Nobody's wall clock decides: an own term is counted from before the request that renewed it was sent, another's
from when we saw it change, both on the local clock that only runs forward.
"""

import logging
import math
import random
import threading
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from reconciler.clocks import Clock, SystemClock, micro_time
from reconciler.contract import JSON, MERGE_PATCH, Api, CallFailed, Conflict, NotFound, object_path
from reconciler.fence import Fence
from schedulers.contract import GroupKind

log = logging.getLogger(__name__)

LEASES: Final = GroupKind("coordination.k8s.io", "v1", "Lease", "leases")

CLOCK_DRIFT: Final = 0.05
"""By how much two machines' clocks may differ in speed, together; real ones stay far below."""


class Durations(msgspec.Struct, frozen=True):
    """Seconds of an election.

    Attributes:
        lease: how long others wait after the last renewal they saw.
        renew: how long we count ourselves as leader after our last renewal; below `lease`.
        retry: between attempts.
    """

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Refuse durations under which two could lead at once."""
        if not self.lease > self.renew > self.retry > 0 or self.lease < 1 or self.write <= 0:
            message = (
                f"lease durations: must fall from lease (1 or more) to renew (below 0.95 of it) to retry, got {self}"
            )
            raise ValueError(message)

    @property
    def safe(self) -> float:
        """Seconds after our last renewal until which nobody else can lead, however their clock runs."""
        return self.lease * (1 - CLOCK_DRIFT)

    @property
    def write(self) -> float:
        """Longest time in seconds that a write may take, so that one begun at the last moment is done in time."""
        return self.safe - self.renew


class LeaseName(msgspec.Struct, frozen=True):
    """Where the Lease is."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Path of the object."""
        return object_path(LEASES, self.namespace, self.name)


class _Meta(msgspec.Struct, frozen=True):
    resourceVersion: str = ""  # noqa: N815 - the wire's spelling


class _Spec(msgspec.Struct, frozen=True):
    holderIdentity: str | None = None  # noqa: N815
    leaseDurationSeconds: int | None = None  # noqa: N815
    leaseTransitions: int | None = None  # noqa: N815


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()

    @property
    def holder(self) -> str:
        return self.spec.holderIdentity or ""


class Elector:
    """Wants the Lease, keeps it, and opens the fence while it has it."""

    def __init__(  # noqa: PLR0913 - everything it touches is passed in
        self,
        api: Api,
        lease: LeaseName,
        identity: str,
        *,
        durations: Durations | None = None,
        on_gained: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Prepare.

        Args:
            api: where the Lease is; not a fenced one.
            lease: which Lease; it is created where missing.
            identity: name of this process among its rivals, different for each.
            durations: seconds of the election.
            on_gained: called in the election's thread when this process begins to lead, and when it leads on after a
                write had to be held back: everything is to be looked at then.
            on_lost: called there when it no longer does; the fence is closed by then.
            clock: decides about terms.
            luck: draws from [0, 1).
        """
        self.identity = identity
        self._api, self._lease = api, lease
        self._durations = durations or Durations()
        self._on_gained, self._on_lost = on_gained, on_lost
        self._clock = clock or SystemClock()
        self._luck = luck
        self.fence = Fence(self._clock)
        self._seen = _Lease()
        self._seen_at = self._clock.now()
        self._leading = False
        self._renewed = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)

    @property
    def holder(self) -> str:
        """Who was the leader when we last looked, empty for nobody."""
        return self._seen.holder

    @property
    def alive(self) -> bool:
        """Whether the election goes on; false before the start and after an end, wanted or not."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Stand for election in a thread of its own."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Step down: close the fence, wait for writes under way, hand the Lease back; tells whether all that worked.

        A Lease that can't be handed back with certainty is left to run out.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self.attempt())
        self._step_down()

    def attempt(self) -> float:
        """Try once to get or keep the Lease; gives the seconds until the next try."""
        if self._leading and not self.fence.held():
            self._lose("it could not be renewed in time")
        try:
            if self._leading:
                self._renew()
            else:
                self._stand()
        except CallFailed as error:
            log.warning("lease %s: %s", self._lease.path, error)
        if self._leading and not self.fence.held():
            self._lose("it could not be renewed in time")
        return self._durations.retry * (1.0 if self._leading else 1.0 + self._luck())

    def _renew(self) -> None:
        try:
            self._write(self._seen)
        except (Conflict, NotFound):
            # Somebody wrote or removed it: look, and go on only when it still names us.
            self._look()
            if self._seen.holder != self.identity:
                self._lose(f'its holder is now "{self._seen.holder}"')
            else:
                self._write(self._seen)

    def _stand(self) -> None:
        self._look()
        term = self._seen.spec.leaseDurationSeconds or self._durations.lease
        theirs = self._seen.holder not in ("", self.identity)
        if theirs and self._clock.now() < self._seen_at + term:
            return
        try:
            self._write(self._seen)
        except Conflict:
            log.info("lease %s: another was faster", self._lease.path)

    def _look(self) -> None:
        try:
            body = self._api.request("GET", self._lease.path, timeout=self._patience()).body
            lease = _decode_lease(body)
        except NotFound:
            lease = _Lease()
        if lease != self._seen:
            self._seen, self._seen_at = lease, self._clock.now()

    def _write(self, base: _Lease) -> None:
        """Write the Lease in our name on top of the version we saw; our term counts from before the request."""
        began = self._clock.now()
        spec = self._wanted(base)
        if base.metadata.resourceVersion:
            change = {"metadata": {"resourceVersion": base.metadata.resourceVersion}, "spec": spec}
            answer = self._send("PATCH", self._lease.path, change)
        else:
            made = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._lease.name, "namespace": self._lease.namespace},
                "spec": spec,
            }
            answer = self._send("POST", object_path(LEASES, self._lease.namespace), made)
        self._seen, self._seen_at = answer, self._clock.now()
        refused = self.fence.open_until(began + self._durations.renew, began + self._durations.safe)
        if not self.fence.held():
            return
        if not self._leading:
            log.info("lease %s: %s leads", self._lease.path, self.identity)
        # A renewal that came late may have held a write back whose key is not worked on again by itself.
        if refused or not self._leading:
            self._leading = True
            self._on_gained()

    def _wanted(self, base: _Lease) -> dict[str, object]:
        now = micro_time(self._clock.utc())
        spec: dict[str, object] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._durations.lease),
            "renewTime": now,
        }
        if base.holder != self.identity:
            count = base.spec.leaseTransitions
            spec |= {"acquireTime": now, "leaseTransitions": 0 if count is None else count + 1}
        return spec

    def _send(self, method: str, path: str, content: Mapping[str, object]) -> _Lease:
        kind = MERGE_PATCH if method == "PATCH" else JSON
        body = msgspec.json.encode(content)
        return _decode_lease(
            self._api.request(method, path, body=body, content_type=kind, timeout=self._patience()).body
        )

    def _patience(self) -> float:
        """Give a call half of the renewal time, so that a hung one leaves room for another."""
        return self._durations.renew / 2

    def _lose(self, why: str) -> None:
        self.fence.close()
        self._leading = False
        log.warning("lease %s: %s no longer leads: %s", self._lease.path, self.identity, why)
        self._on_lost()

    def _step_down(self) -> None:
        if not self._leading:
            return
        mine = self.fence.held()
        self._lose("it stops")
        if not mine or not self.fence.wait_idle(self._durations.lease - self._durations.renew):
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(self._clock.utc())}
        change = {"metadata": {"resourceVersion": self._seen.metadata.resourceVersion}, "spec": spec}
        try:
            self._send("PATCH", self._lease.path, change)
        except CallFailed as error:
            log.warning("lease %s: not handed back: %s", self._lease.path, error)


def _decode_lease(body: bytes) -> _Lease:
    try:
        return msgspec.json.decode(body, type=_Lease)
    except msgspec.MsgspecError as error:
        raise CallFailed(f"lease: must be a Lease, got {error}") from error
