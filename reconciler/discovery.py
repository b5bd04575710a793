"""Which kinds the API server serves now, asked again and again: a scheduler may be installed or removed at any time."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from reconciler.contract import Api, CallFailed, NotFound
from schedulers.contract import GroupKind

T = TypeVar("T")

log = logging.getLogger(__name__)

ABSENT_TWICE: Final = 2
"""A server that has just started may not know its custom kinds yet, so a kind is gone when it is absent twice."""


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Group(msgspec.Struct, frozen=True):
    versions: list[_Version]


class _Resource(msgspec.Struct, frozen=True):
    name: str


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource]


def served_versions(api: Api, group: str) -> tuple[str, ...]:
    """List the versions of an API group in the server's order, empty when it is not served.

    Raises:
        CallFailed: the server did not tell; nothing is known then.
    """
    try:
        body = api.request("GET", f"/apis/{group}").body
    except NotFound:
        return ()
    return tuple(item.version for item in _decoded(body, _Group).versions)


def served_plurals(api: Api, group: str, version: str) -> frozenset[str]:
    """List the resources of a group's version, subresources as `pods/status`; empty when it is not served.

    Raises:
        CallFailed: the server did not tell; nothing is known then.
    """
    try:
        body = api.request("GET", f"/apis/{group}/{version}" if group else f"/api/{version}").body
    except NotFound:
        return frozenset()
    return frozenset(item.name for item in _decoded(body, _Resources).resources)


def serves(api: Api, kind: GroupKind) -> bool:
    """Tell whether a kind is served in its version; raises `CallFailed` when the server did not tell."""
    return kind.plural in served_plurals(api, kind.api_group, kind.version)


def _decoded(body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.MsgspecError as error:
        raise CallFailed(f"discovery: must be a discovery document, got {error}") from error


class Discovery:
    """Remembers which of some kinds are served."""

    def __init__(
        self,
        api: Api,
        kinds: Iterable[GroupKind],
        *,
        on_change: Callable[[frozenset[GroupKind]], None] = lambda _: None,
        every: float = 30.0,
    ) -> None:
        """Know nothing yet.

        Args:
            api: whom to ask.
            kinds: what to ask for.
            on_change: called in the polling thread with all kinds served, when that is another set than before.
            every: seconds between polls.
        """
        self._api, self._kinds = api, tuple(dict.fromkeys(kinds))
        self._on_change, self._every = on_change, every
        self._served: frozenset[GroupKind] = frozenset()
        self._absent: dict[GroupKind, int] = {}
        self._told: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)

    @property
    def served(self) -> frozenset[GroupKind]:
        """The kinds that are served."""
        return self._served

    @property
    def complete(self) -> bool:
        """Whether the server has told about every kind at least once, and that has been passed on."""
        return {(kind.api_group, kind.version) for kind in self._kinds} <= self._told

    def first(self, kinds: Iterable[GroupKind]) -> GroupKind | None:
        """Find the first of some kinds, the preferred one first, that is served."""
        return next((kind for kind in kinds if kind in self._served), None)

    def poll(self) -> None:
        """Ask once; where the server does not tell, what was known stays."""
        found = {pair: self._ask(*pair) for pair in {(kind.api_group, kind.version) for kind in self._kinds}}
        served = frozenset(kind for kind in self._kinds if self._is_served(kind, found[kind.api_group, kind.version]))
        if served != self._served:
            for kind in served ^ self._served:
                log.info("%s is %s", kind.title, "served" if kind in served else "no longer served")
            self._served = served
            self._on_change(served)
        self._told |= {pair for pair, plurals in found.items() if plurals is not None}

    def start(self) -> None:
        """Poll in a thread from now on."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread; tells whether it ended in time."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.poll()
            self._stopping.wait(self._every if self.complete else min(self._every, 2.0))

    def _ask(self, group: str, version: str) -> frozenset[str] | None:
        try:
            return served_plurals(self._api, group, version)
        except CallFailed as error:
            log.warning("discovery of %s/%s: %s", group, version, error)
            return None

    def _is_served(self, kind: GroupKind, plurals: frozenset[str] | None) -> bool:
        if plurals is not None:
            self._absent[kind] = 0 if kind.plural in plurals else self._absent.get(kind, 0) + 1
        if kind in self._served:
            return self._absent.get(kind, 0) < ABSENT_TWICE
        return plurals is not None and kind.plural in plurals
