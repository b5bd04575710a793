"""List and watch: keeps a `Store` equal to what the API server has, through whatever happens to the connection.

The rules are those of the API concepts page (https://kubernetes.io/docs/reference/using-api/api-concepts/): list in
pages, watch from the list's version, go on from the last version seen, list anew when a version is too old. Beyond
them: after an outage list anew, because a server that came back may have another history.
"""

import contextlib
import logging
import math
import random
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from reconciler.clocks import Clock, SystemClock
from reconciler.contract import Api, CallFailed, Gone, Stream, Unreachable, object_path
from reconciler.pacing import Backoff
from reconciler.store import Change, Entry, Key, Store
from reconciler.telemetry import Meters
from reconciler.wire import (
    BAD_ITEM,
    BadAnswer,
    Envelope,
    Page,
    decode_envelope,
    decode_event,
    decode_page,
    stream_error,
)
from schedulers.contract import GroupKind

T = TypeVar("T")

log = logging.getLogger(__name__)


class Target(msgspec.Struct, frozen=True):
    """What to watch.

    Attributes:
        kind: the kind; its version must be served.
        namespace: one namespace, empty for all.
        label_selector: as in a query, empty for all objects.
        field_selector: as in a query, empty for all objects.
    """

    kind: GroupKind
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def path(self) -> str:
        """Path of the collection."""
        return object_path(self.kind, self.namespace)

    @property
    def title(self) -> str:
        """Name in logs and metrics: `pods`, `podgroups.scheduling.k8s.io in team-a`."""
        name = f"{self.kind.plural}.{self.kind.api_group}" if self.kind.api_group else self.kind.plural
        return f"{name} in {self.namespace}" if self.namespace else name

    @property
    def query(self) -> dict[str, str]:
        """Selectors as parameters."""
        pairs = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in pairs.items() if value}


class Settings(msgspec.Struct, frozen=True):
    """Sizes and seconds of a watch.

    Attributes:
        page: objects a page.
        call: longest time for a page.
        server_timeout: after which the server ends a stream; drawn anew within a fifth around it for each.
        margin: how much later than the server we give a silent stream up.
        settled: a stream that lived this long counts as healthy even when nothing came.
        trust: how long after the last sign of life a broken stream may still be resumed; above the minute between
            two bookmarks.
        backoff: between attempts that fail.
    """

    page: int = 500
    call: float = 60.0
    server_timeout: float = 300.0
    margin: float = 30.0
    settled: float = 5.0
    trust: float = 90.0
    backoff: Backoff = Backoff(0.5, 15.0)


class Watch(Generic[T]):
    """Keeps one store up to date from one thread. Start it once; it goes on until stopped."""

    def __init__(  # noqa: PLR0913 - everything it touches is passed in
        self,
        api: Api,
        target: Target,
        decode: Callable[[msgspec.Raw], T],
        store: Store[T],
        on_change: Callable[[T | None, T | None], None],
        *,
        settings: Settings | None = None,
        meters: Meters | None = None,
        clock: Clock | None = None,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Prepare.

        Args:
            api: where the objects are.
            target: which objects.
            decode: makes an object of its JSON; may raise for one that is odd. That object is counted and logged, and
                the store keeps the last good state of the same life of it.
            store: what to fill; several watches of different namespaces may share one.
            on_change: called in the watch's thread after the store has changed, with old and new object. A hint: runs
                of changes may be seen as one, and a re-created object as a change from one uid to another.
            settings: sizes and seconds.
            meters: where to count.
            clock: for ages and deadlines.
            luck: draws from [0, 1).
        """
        self.target = target
        self._api, self._decode, self._store, self._on_change = api, decode, store, on_change
        self._settings = settings or Settings()
        self._meters = meters or Meters()
        self._clock = clock or SystemClock()
        self._luck = luck
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._opened: float | None = None
        self._version = ""
        self._failures = 0
        self._problem = ""
        self._begun = False
        self._active = self._progress = self._clock.now()
        self._thread = threading.Thread(target=self._run, name=f"watch {target.title}", daemon=True)

    @property
    def has_synced(self) -> bool:
        """Whether the store has held a whole list."""
        return self._synced.is_set()

    @property
    def problem(self) -> str:
        """Why the last attempt failed, empty when it did not."""
        return self._problem

    def activity_age(self) -> float:
        """Seconds since the server last gave a sign of life: a page, an event, a bookmark, an orderly end."""
        return self._clock.now() - self._active

    def progress_age(self) -> float:
        """Seconds since this watch last did anything at all, failed attempts included: only a hung one grows old."""
        if self._begun and not self._thread.is_alive():
            return math.inf
        return self._clock.now() - max(self._progress, self._active)

    def longest_silence(self) -> float:
        """Seconds of `progress_age` that can be in order."""
        s = self._settings
        return max(1.2 * s.server_timeout + s.margin, s.call) + s.backoff.cap + s.margin

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._meters.watch_age(self.target.title, self.activity_age)
        self._thread.start()
        self._begun = True

    def wait_synced(self, timeout: float) -> bool:
        """Wait for the first whole list; tells whether it came."""
        return self._synced.wait(timeout)

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread, waking it from whatever it waits for; tells whether it ended in time."""
        self._stopping.set()
        with self._lock:
            if self._stream is not None:
                self._stream.close()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            delay = self._step()
            self._progress = self._clock.now()
            self._stopping.wait(delay)

    def _step(self) -> float:
        """List or follow once; gives the seconds to wait before the next step."""
        self._opened, active = None, self._active
        try:
            if not self._version:
                self._relist()
                return 0.0
            self._follow()
        except CallFailed as error:
            self._settle(active)
            return self._failed(error)
        if not self._settle(active):
            return self._failed(Unreachable("the stream ended at once"))
        return 0.0

    def _settle(self, active: float) -> bool:
        """Forget former failures when this step's stream has proved to work."""
        if self._opened is None:
            return False
        works = self._active > active or self._clock.now() - self._opened >= self._settings.settled
        if works:
            self._failures = 0
        return works

    def _failed(self, error: CallFailed) -> float:
        if self._stopping.is_set():
            return 0.0
        self._failures += 1
        self._doubt(error)
        self._problem = str(error)
        self._meters.watch_failed(self.target.title)
        delay = max(self._settings.backoff.delay(self._failures, self._luck()), error.retry_after or 0.0)
        log.warning("watch of %s: %s; next attempt in %.1f s", self.target.title, error, delay)
        return delay

    def _doubt(self, error: CallFailed) -> None:
        """Give up the version where the server may no longer go on from it.

        A server that was away may come back from a backup, with lower versions, and a watch from a version of the
        future hears nothing. So only a short interruption is resumed.
        """
        reasons = {
            "gone": isinstance(error, Gone),
            "broken": isinstance(error, BadAnswer),
            "resumed in vain": self._failures > 1,
            "silent": self.activity_age() > self._settings.trust,
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if self._version and reason is not None:
            self._version = ""
            self._meters.relisted(self.target.title, reason)

    def _alive(self) -> None:
        self._active = self._clock.now()

    # --- list ---

    def _relist(self) -> None:
        entries, version = self._list()
        self._version, self._problem = version, ""
        changes = self._store.replace(entries, self.target.namespace)
        self._synced.set()
        for change in changes:
            self._hint(change)

    def _list(self) -> tuple[dict[Key, Entry[T]], str]:
        """List in pages; when a list outlives the server's history, once more, and then in one piece."""
        for limit in (self._settings.page, self._settings.page):
            with contextlib.suppress(Gone):
                return self._list_pages(limit)
            self._meters.relisted(self.target.title, "gone while paging")
        return self._list_pages(0)

    def _list_pages(self, limit: int) -> tuple[dict[Key, Entry[T]], str]:
        """Walk the pages. The first page's version is the one to watch from: no later change can be missed."""
        entries: dict[Key, Entry[T]] = {}
        query = self.target.query | ({"limit": str(limit)} if limit else {})
        version, more = "", ""
        while not self._stopping.is_set():
            page = self._page(query | ({"continue": more} if more else {}))
            version, more = version or page.metadata.version, page.metadata.more or ""
            for raw in page.items or ():
                self._collect(raw, entries)
            if not more:
                return entries, version
        raise Unreachable("stopped while listing")

    def _page(self, query: dict[str, str]) -> Page:
        body = self._api.request("GET", self.target.path, query, timeout=self._settings.call).body
        try:
            page = decode_page(body)
        except BAD_ITEM as error:
            raise BadAnswer(f"{self.target.path}: must be a list, got {error}") from error
        if page.kind == "Status" or not page.metadata.version:
            raise BadAnswer(f'{self.target.path}: must be a list with a version, got kind "{page.kind}"')
        self._alive()
        return page

    def _collect(self, raw: msgspec.Raw, entries: dict[Key, Entry[T]]) -> None:
        envelope = self._envelope(raw)
        if envelope is None:
            return
        entry = self._entry(envelope, raw)
        if entry is not None:
            entries[envelope.key] = entry

    # --- watch ---

    def _follow(self) -> None:
        """Follow one stream to its end."""
        seconds = max(1, round(self._settings.server_timeout * (0.8 + 0.4 * self._luck())))
        patience = seconds + self._settings.margin
        deadline = self._clock.now() + patience
        query = self.target.query | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        with self._api.stream(self.target.path, query, read_timeout=patience) as stream, self._held(stream):
            for line in stream:
                self._event(line)
                self._alive()
                if self._clock.now() > deadline:
                    raise Unreachable("the stream outlived the timeout that the server was asked for")

    @contextlib.contextmanager
    def _held(self, stream: Stream) -> Iterator[None]:
        """Let `stop` reach the stream; one opened while stopping ends at once."""
        self._opened, self._problem = self._clock.now(), ""
        with self._lock:
            self._stream = stream
            if self._stopping.is_set():
                stream.close()
        try:
            yield
        finally:
            with self._lock:
                self._stream = None

    def _event(self, line: bytes) -> None:
        try:
            event = decode_event(line)
        except BAD_ITEM as error:
            # Whatever it said is lost, so only a list tells the truth again.
            raise BadAnswer(f"{self.target.path}: must send events, got {error}") from error
        if event.type == "ERROR":
            raise stream_error(event.object)
        envelope = self._envelope(event.object)
        if envelope is None:
            return
        if event.type in ("ADDED", "MODIFIED"):
            self._upsert(envelope, event.object)
        elif event.type == "DELETED":
            self._changed((self._store.drop(envelope.key), None))
        self._version = envelope.metadata.resourceVersion or self._version

    def _upsert(self, envelope: Envelope, raw: msgspec.Raw) -> None:
        entry = self._entry(envelope, raw)
        if entry is None:
            self._changed((self._store.drop(envelope.key), None))
        else:
            self._changed((self._store.put(envelope.key, entry), entry.value))

    def _changed(self, change: Change[T]) -> None:
        if change != (None, None):
            self._hint(change)

    def _hint(self, change: Change[T]) -> None:
        try:
            self._on_change(*change)
        except Exception:
            # A hint that fails must not end the watch that gives all the others.
            self._meters.bad_item(self.target.title)
            log.exception("watch of %s: a change could not be passed on", self.target.title)

    # --- items ---

    def _envelope(self, raw: msgspec.Raw) -> Envelope | None:
        """Read who an object is; `None` for what is no object, which then is counted."""
        try:
            envelope = decode_envelope(raw)
        except BAD_ITEM as error:
            self._bad("an object without identity", error)
            return None
        return envelope

    def _entry(self, envelope: Envelope, raw: msgspec.Raw) -> Entry[T] | None:
        """Decode an object; an odd one keeps the last good state of the same life, if there is one."""
        meta = envelope.metadata
        if envelope.kind == "Status" or not meta.name:
            self._bad("what has no name", ValueError(f'kind "{envelope.kind}"'))
            return None
        try:
            return self._store.make_entry(meta.uid, meta.resourceVersion, self._decode(raw))
        except Exception as error:  # noqa: BLE001 - the decoder's and indexes' trouble with one object must not stop the rest
            self._bad(f'"{meta.namespace}/{meta.name}"', error)
            known = self._store.entry(envelope.key)
            return known if known is not None and known.uid == meta.uid else None

    def _bad(self, what: str, error: Exception) -> None:
        self._meters.bad_item(self.target.title)
        log.warning("watch of %s: skipped %s: %s", self.target.title, what, error)
