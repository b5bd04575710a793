"""What a watch knows: objects by namespace and name, with indexes, safe to read from any thread."""

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""

Index = Callable[[T], Iterable[Hashable]]
"""Gives the values under which an object is found."""

Change = tuple[T | None, T | None]
"""Old and new object; `None` where there was or is none."""


class Entry(NamedTuple, Generic[T]):
    """A stored object with what tells its lives and versions apart, and where the indexes file it."""

    uid: str
    version: str
    value: T
    filed: tuple[tuple[str, Hashable], ...] = ()


class Store(Generic[T]):
    """A cache of one kind. Objects in it are shared: treat them as frozen."""

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        """Start empty, with named indexes."""
        self._lock = threading.Lock()
        self._entries: dict[Key, Entry[T]] = {}
        self._indexes = dict(indexes or {})
        self._tables: dict[str, dict[Hashable, dict[Key, None]]] = {name: {} for name in self._indexes}

    def __len__(self) -> int:
        """Count the objects."""
        return len(self._entries)

    def get(self, namespace: str, name: str) -> T | None:
        """Find one object."""
        entry = self.entry((namespace, name))
        return None if entry is None else entry.value

    def entry(self, key: Key) -> Entry[T] | None:
        """Find one object with its identity."""
        with self._lock:
            return self._entries.get(key)

    def objects(self) -> list[T]:
        """Copy out all objects, as they are at one moment."""
        with self._lock:
            return [entry.value for entry in self._entries.values()]

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """Copy out the objects that `index` files under `value`, the longest known first."""
        with self._lock:
            return [self._entries[key].value for key in self._tables[index].get(value, ())]

    def index_values(self, index: str) -> list[Hashable]:
        """Copy out the values that an index has at least one object for."""
        with self._lock:
            return list(self._tables[index])

    def make_entry(self, uid: str, version: str, value: T) -> Entry[T]:
        """Make an entry to put or replace with; here the indexes look at the object, once, and may raise."""
        filed = tuple((name, found) for name, index in self._indexes.items() for found in index(value))
        return Entry(uid, version, value, filed)

    def put(self, key: Key, entry: Entry[T]) -> T | None:
        """Store an object and give the one it replaces."""
        with self._lock:
            old = self._remove(key)
            self._insert(key, entry)
        return None if old is None else old.value

    def drop(self, key: Key) -> T | None:
        """Forget an object and give it."""
        with self._lock:
            old = self._remove(key)
        return None if old is None else old.value

    def replace(self, entries: Mapping[Key, Entry[T]], namespace: str = "") -> list[Change[T]]:
        """Make the store hold exactly `entries`, at one moment for all readers.

        Args:
            entries: what a list found.
            namespace: limits the exchange to one namespace where several watches fill one store; empty for all.

        Returns:
            What is different now; objects of the same version are left out and stay the same object.
        """
        changes: list[Change[T]] = []
        with self._lock:
            gone = [key for key in self._entries if key not in entries and namespace in ("", key[0])]
            changes += [(old.value, None) for key in gone if (old := self._remove(key)) is not None]
            for key, entry in entries.items():
                known = self._entries.get(key)
                if known is not None and known.version and known[:2] == entry[:2]:
                    continue
                self._remove(key)
                self._insert(key, entry)
                changes.append((None if known is None else known.value, entry.value))
        return changes

    def _insert(self, key: Key, entry: Entry[T]) -> None:
        self._entries[key] = entry
        for name, value in entry.filed:
            self._tables[name].setdefault(value, {})[key] = None

    def _remove(self, key: Key) -> Entry[T] | None:
        entry = self._entries.pop(key, None)
        for name, value in entry.filed if entry is not None else ():
            keys = self._tables[name].get(value, {})
            keys.pop(key, None)
            if not keys:
                self._tables[name].pop(value, None)
        return entry
