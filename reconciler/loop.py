"""The reconciler: watches into caches, changes into keys, keys into decisions, decisions into writes."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from gangs import keys
from gangs.members import Malformed
from reconciler import claims
from reconciler.actions import Action, DeletePod, LookAgain, Say, describe
from reconciler.cache import Cache
from reconciler.capacity import Rounds, Waiting, oldest_first
from reconciler.clocks import Clock, SystemClock
from reconciler.contract import Api, ApiError, CallFailed, Conflict, NotFound, TooManyRequests
from reconciler.decisions import Outcome, decide
from reconciler.discovery import Discovery
from reconciler.fence import FencedApi, NotLeader
from reconciler.followed import Followed
from reconciler.gatekeeper import Gatekeeper
from reconciler.gauges import Findings
from reconciler.leases import Durations, Elector, LeaseName
from reconciler.lives import Lives
from reconciler.objects import LeaderWorkerSet, Pod
from reconciler.pacing import TokenBucket
from reconciler.recorder import Recorder
from reconciler.served_fields import ServedFields
from reconciler.sharing import Leftovers, shared_kinds_of
from reconciler.store import Key
from reconciler.telemetry import Meters
from reconciler.watches import Hints, Watches
from reconciler.watching import Watch
from reconciler.work_queue import WorkQueue
from reconciler.writing import Writer
from schedulers.abilities import Declares, ForgetsWaiting
from schedulers.configuration import Configuration
from schedulers.registry import all_providers

log = logging.getLogger(__name__)

WORKERS: Final = 4
RESYNC: Final = 60.0
TIDY: Final = 5.0
LONGEST_MEMORY: Final = 3600.0
NOT_SYNCED: Final = 0.3
NO_NAMESPACE: Final = ""
"""Of the keys that stand for the line of a whole scheduler; a leader always has one."""
SOON: Final = 0.05
"""Seconds in which changes of many replicas are one look at their line, at the least."""
RESTS: Final = 4.0
"""Times as long as it took to look at a long line until it is looked at again: 0.15 s for a thousand that wait."""
SETTLING: Final = 1.0
"""Seconds after taking over until gates are opened: the watch may not yet show what the one before has opened."""
REFUSED: Final = range(400, 500)


class Settings(msgspec.Struct, frozen=True):
    """How one process runs.

    Attributes:
        namespaces: where to work, empty for everywhere.
        lease: the Lease that elects the writer.
        durations: of the election.
        discovery: seconds between looks at what the cluster serves.
        touches: most touches of waiting groups a second.
    """

    namespaces: Sequence[str] = ()
    lease: LeaseName = LeaseName("default", "lockstep-reconciler")
    durations: Durations = Durations()
    discovery: float = 5.0
    touches: float = 20.0


class Reconciler:
    """Keeps one group object per replica. Start it once; stop it once.

    Attributes:
        meters: what is counted.
        fenced: the API as the leader may use it; whoever writes beside the reconciler writes through it.
    """

    def __init__(
        self,
        api: Api,
        configuration: Configuration,
        settings: Settings,
        *,
        identity: str,
    ) -> None:
        """Wire everything up; nothing runs yet."""
        self.meters = Meters()
        self._configuration, self._settings = configuration, settings
        self._clock: Clock = SystemClock()
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue(clock=self._clock)
        self._findings = Findings(self.meters.registry)
        self._elector = Elector(
            api,
            settings.lease,
            identity,
            durations=settings.durations,
            on_gained=self._take_over,
            on_lost=self._findings.clear,
            clock=self._clock,
        )
        self.fenced = FencedApi(api, self._elector.fence, self.meters, longest=settings.durations.write)
        self._recorder = Recorder(self.fenced, instance=identity, meters=self.meters)
        self._writer = Writer(self.fenced, self._cache, self._recorder)
        self._providers = configuration.providers()
        self._gatekeepers = self._new_gatekeepers()
        self._opens_from, self._rest = 0.0, SOON
        kinds = [kind for provider in self._providers for kind in provider.kinds]
        self._shared_kinds = shared_kinds_of(self._providers)
        followed = [*kinds, *self._shared_kinds, *claims.CLAIMS, *claims.TEMPLATES]
        self._discovery = Discovery(api, followed, on_change=lambda _: self._follow(), every=settings.discovery)
        self._fields = ServedFields(api, (*settings.namespaces, "default")[0], self._providers, self._discovery.first)
        self._cache.kept = self._fields.kept
        self._leftovers = Leftovers(self._cache)
        hints = Hints(self._cache, self._queue.add, self._grow)
        factory = Watches(api, self._cache, hints, settings.namespaces, self.meters)
        self._followed = Followed(factory, self._discovery, self._providers, self._cache)
        self._lives = Lives(self._clock)
        self._rounds = Rounds()
        self._rounds_lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker {number}", daemon=True) for number in range(WORKERS)
        ]
        self._threads.append(threading.Thread(target=self._tick, name="ticker", daemon=True))
        self.meters.queue(lambda: len(self._queue), self._queue.oldest_wait)
        self.meters.leading(self._elector.fence.held)

    # --- life of the process ---

    def start(self) -> None:
        """Begin: watches and discovery first, workers as soon as the caches are whole."""
        self._followed.start()
        self._discovery.start()
        self._recorder.start()
        self._elector.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End in an order that loses nothing: no new work, writes done, Lease handed back, watches closed."""
        self._stopping.set()
        self._queue.shut_down(discard=True)
        for thread in self._threads:
            thread.join(10.0)
        self._recorder.stop()
        self._elector.stop()
        self._discovery.stop()
        self._followed.stop()

    def leads(self) -> bool:
        """Tell whether this process is the writer now."""
        return self._elector.fence.held()

    def alive(self) -> dict[str, str]:
        """Check what a restart would mend: watches that hang, threads that have ended."""
        watches = self._followed.watches()
        checks = _checks(watches, lambda watch: "" if watch.progress_age() < watch.longest_silence() else "hangs")
        checks["election"] = "" if self._elector.alive else "has ended"
        checks["workers"] = "" if all(thread.is_alive() for thread in self._threads) else "have ended"
        return checks

    def ready(self) -> dict[str, str]:
        """Check what is needed before this process is of use: whole caches and an answer about kinds."""
        checks = _checks(self._followed.watches(), lambda watch: "" if watch.has_synced else "not synced")
        checks["discovery"] = "" if self._discovery.complete else "no answer yet"
        return checks

    # --- hints ---

    def _take_over(self) -> None:
        """Begin to lead: whatever happened while nobody did is looked at now, growth of capacity included."""
        self._gatekeepers = self._new_gatekeepers()
        self._opens_from = self._clock.now() + SETTLING
        self._look_at_all()
        self._grow()

    def _new_gatekeepers(self) -> dict[str, Gatekeeper]:
        declaring = [provider for provider in self._providers if isinstance(provider, Declares)]
        return {of.name: Gatekeeper(of, self._cache, self._configuration) for of in declaring}

    def _look_at_all(self) -> None:
        for key in self._cache.leaders():
            self._queue.add(key)

    def _grow(self) -> None:
        with self._rounds_lock:
            self._rounds.growth(self._clock.now())

    def _follow(self) -> None:
        """Follow what the cluster serves, and look at everything with that."""
        self._followed.update()
        self._look_at_all()

    # --- work ---

    def _work(self) -> None:
        while (key := self._queue.get()) is not None:
            begun = self._clock.now()
            outcome = "error"
            try:
                outcome = self._reconcile(key)
            except NotLeader:
                # Whoever leads next looks at everything.
                outcome = "fenced"
            except CallFailed as error:
                self._retry(key, error)
            except Exception:
                log.exception("reconcile of %s/%s failed: this is a bug", *key)
                self._queue.add_failed(key)
            finally:
                self._queue.done(key)
                self.meters.reconciled(self._clock.now() - begun, outcome)

    def _retry(self, key: Key, error: CallFailed) -> None:
        wait = self._queue.add_failed(key, error.retry_after or 0.0)
        self.meters.retried()
        log.info("reconcile of %s/%s: %s; again in %.1f s", *key, error, wait)

    def _reconcile(self, key: Key) -> str:
        if not self._elector.fence.held():
            return "fenced"
        if not self._in_sync():
            self._queue.add_after(key, NOT_SYNCED)
            return "not synced"
        if key[0] == NO_NAMESPACE:
            return self._take_turns(key)
        leader = self._cache.pods.get(*key)
        if leader is None:
            self._forget(key)
            return "gone"
        return self._bring_about(key, leader, self._judge(key, leader))

    def _in_sync(self) -> bool:
        """Tell whether all is known; without the watch of a kind that is served, every group of it would be missing."""
        return self._discovery.complete and self._followed.whole()

    def _judge(self, key: Key, leader: Pod) -> Outcome:
        provider = self._configuration.provider(leader.spec.scheduler_name)
        kind = None if provider is None else self._discovery.first(provider.kinds)
        life = self._lives.of(key, leader)
        age = self._clock.now() - life.seen
        now = self._clock.utc().timestamp()
        sight = self._cache.sight(key, kind, age=age, recreations=life.recreations, now=now)
        if isinstance(sight, Malformed) and provider is not None:
            return Outcome((Say("MalformedPod", f"pod {'/'.join(key)}: {sight}", leader.metadata.uid),))
        if sight is None or isinstance(sight, Malformed):
            return Outcome()
        return decide(sight, self._configuration, self._discovery.first)

    def _bring_about(self, key: Key, leader: Pod, outcome: Outcome) -> str:
        self._findings.note(key, outcome)
        life = self._lives.of(key, leader)
        if outcome.provider and not outcome.unstamped:
            life.recreations = 0
        provider = self._configuration.provider(leader.spec.scheduler_name)
        if provider is not None and provider.name in self._gatekeepers:
            self._queue.add_after((NO_NAMESPACE, provider.name), self._rest)
        lws = self._cache.lws_of(leader)
        failures = [error for action in outcome.actions if (error := self._carry_out(key, action, lws)) is not None]
        if failures:
            raise failures[0]
        self._queue.forget(key)
        return "ok"

    def _take_turns(self, key: Key) -> str:
        """Open the gates of one scheduler's replicas: work on a key of its own, so that no turn is given twice."""
        if (left := self._opens_from - self._clock.now()) > 0:
            self._queue.add_after(key, left)
            return "settling"
        keeper = self._gatekeepers[key[1]]
        begun = self._clock.now()
        works, again = keeper.look(self._lives.age, self._clock.utc().timestamp())
        self._rest = max(SOON, RESTS * (self._clock.now() - begun))
        if again is not None:
            self._queue.add_after(key, again.seconds)
        failures = []
        for work in works:
            leader = self._cache.pods.get(*work[0])
            lws = None if leader is None else self._cache.lws_of(leader)
            error = self._carry_out(work[0], work[1], lws)
            keeper.tried(work, error)
            failures += [] if error is None else [error]
        if failures:
            raise failures[0]
        self._queue.forget(key)
        return "ok"

    def _carry_out(self, key: Key, action: Action, lws: LeaderWorkerSet | None) -> CallFailed | None:
        """Carry out one action; one that fails doesn't hold up the others. A refusal is told as an event."""
        if isinstance(action, LookAgain):
            self._queue.add_after(key, action.seconds)
            return None
        if isinstance(action, DeletePod):
            self._lives.recreated(key)
        try:
            self._writer.carry_out(action, lws)
        except CallFailed as error:
            if isinstance(error, ApiError) and is_refusal(error):
                self._writer.carry_out(Say("WriteRefused", f"{key[1]}: {error}", str(error)), lws)
            return error
        if not isinstance(action, Say):
            log.info("%s/%s: %s", *key, describe(action))
        return None

    def _forget(self, key: Key) -> None:
        """Forget a leader; how often it was recreated is kept until its successor is stamped or it stays away."""
        self._findings.note(key, None)
        for name in self._gatekeepers:
            self._queue.add_after((NO_NAMESPACE, name), self._rest)
        self._lives.end(key)

    # --- time ---

    def _tick(self) -> None:
        bucket = TokenBucket(self._settings.touches, 1)
        resync, tidy = self._clock.now() + RESYNC, self._clock.now() + TIDY
        while not self._stopping.wait(0.1):
            now = self._clock.now()
            with self._rounds_lock:
                due = self._rounds.take(now)
            if due and self._elector.fence.held():
                self._touch_waiting(bucket)
            if self._elector.fence.held() and self._fields.look(now):
                self._look_at_all()
            if now >= tidy:
                tidy = now + TIDY
                self._tidy()
            if now >= resync:
                resync = now + RESYNC
                self._look_at_all()
                self._lives.tidy(lambda key: self._cache.pods.get(*key) is not None)

    def _tidy(self) -> None:
        """Delete what no replica shares any more."""
        if not self._shared_kinds or not self._elector.fence.held() or not self._in_sync():
            return
        for action in self._leftovers.find(self._shared_kinds):
            try:
                self._writer.carry_out(action, None)
                log.info("%s: %s", action.namespace, describe(action))
            except (CallFailed, NotLeader) as error:
                log.info("%s: %s: %s", action.namespace, describe(action), error)

    def _touch_waiting(self, bucket: TokenBucket) -> None:
        """Touch every group that waits under a scheduler that forgets, oldest first."""
        when = self._clock.utc().isoformat(timespec="milliseconds")
        for group in oldest_first(self._waiting()):
            provider = all_providers()[group.provider]
            kind = self._discovery.first(provider.kinds)
            if kind is None or not isinstance(provider, ForgetsWaiting):
                continue
            if self._stopping.wait(bucket.reserve(self._clock.now())):
                return
            try:
                self._writer.touch(kind, group.key[0], group.group, provider.touch, when)
            except (CallFailed, NotLeader) as error:
                log.info("touch of %s/%s: %s", group.key[0], group.group, error)

    def _waiting(self) -> dict[Key, Waiting]:
        found = {}
        for key, outcome in self._findings.outcomes().items():
            leader = self._cache.pods.get(*key)
            if outcome.waiting and leader is not None:
                group = leader.labels.get(keys.LOCKSTEP_GROUP, "")
                found[key] = Waiting(leader.metadata.creation_timestamp, key, group, outcome.provider)
        return found


def _checks(watches: Iterable[Watch[object]], problem: Callable[[Watch[object]], str]) -> dict[str, str]:
    """Check every watch; where two have one title, such as the two of pods, the one with a problem counts."""
    found: dict[str, str] = {}
    for watch in watches:
        found[watch.target.title] = found.get(watch.target.title) or problem(watch)
    return found


def is_refusal(error: ApiError) -> bool:
    """Tell whether the server will say no again until somebody changes something."""
    return error.status in REFUSED and not isinstance(error, Conflict | NotFound | TooManyRequests)
