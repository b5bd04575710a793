"""Answers to our own writes, kept until the watch has caught up, so that nothing is written twice."""

import threading
from collections import deque
from typing import Final

from reconciler.objects import GroupObject
from schedulers.contract import GroupKind

Place = tuple[GroupKind, str, str]

REMEMBERED_GONE: Final = 1000
"""UIDs of objects that ended; an answer to a write is never as late as that many deletions."""


class Written:
    """Group objects as the API server answered our writes. Safe to use from any thread."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._answers: dict[Place, GroupObject] = {}
        self._gone: deque[str] = deque(maxlen=REMEMBERED_GONE)

    def remember(self, kind: GroupKind, answer: GroupObject) -> None:
        """Keep an answer, unless the watch has shown the end of that object before the answer came."""
        with self._lock:
            if answer.metadata.uid in self._gone:
                return
            self._answers[kind, answer.metadata.namespace, answer.metadata.name] = answer

    def forget(self, kind: GroupKind, namespace: str, name: str) -> None:
        """Drop an answer: it is known to be out of date."""
        with self._lock:
            self._answers.pop((kind, namespace, name), None)

    def seen(self, kind: GroupKind, old: GroupObject | None, new: GroupObject | None) -> None:
        """Take note of what the watch shows; an answer it has caught up with is dropped."""
        shown = new or old
        if shown is None:
            return
        place = (kind, shown.metadata.namespace, shown.metadata.name)
        with self._lock:
            if new is None:
                self._gone.append(shown.metadata.uid)
            elif old is not None and old.metadata.uid != new.metadata.uid:
                self._gone.append(old.metadata.uid)
            answer = self._answers.get(place)
            if answer is None:
                return
            gone = new is None and shown.metadata.uid == answer.metadata.uid
            if gone or (new is not None and version(new) >= version(answer)):
                del self._answers[place]

    def latest(self, kind: GroupKind, namespace: str, name: str, shown: GroupObject | None) -> GroupObject | None:
        """Give the newer of what the watch shows and what a write was answered with."""
        with self._lock:
            answer = self._answers.get((kind, namespace, name))
        if answer is None or (shown is not None and version(shown) >= version(answer)):
            return shown
        return answer


def version(group: GroupObject) -> int:
    """Read a resource version; API servers compare them as numbers (KEP-5504)."""
    text = group.metadata.resource_version
    return int(text) if text.isascii() and text.isdigit() else 0
