"""One object under review."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from policies.findings import ObjectRef, Source, ref_of

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

Lines: TypeAlias = Mapping[str, Any]
"""Key -> `(line, Lines | list | None)`: where each value of an object stands; `None` below a plain value."""

NOTHING: Final[Mapping[str, Any]] = {}

_MOST_DIGITS: Final = 10
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class User(msgspec.Struct, frozen=True):
    """Who makes a change, as the API server names them; empty when nobody does (a file, a stored object)."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Subject(msgspec.Struct, frozen=True):
    """One object under review.

    Attributes:
        content: the object as decoded from JSON or YAML.
        source: the object's first line, `None` for one that comes from no file.
        operation: what is being done; a manifest counts as created.
        old: the object before an update.
        namespace_labels: labels of its namespace, where they are known.
        user: who does it.
        lines: where its values stand.
    """

    content: Mapping[str, Any]
    source: Source | None = None
    operation: Operation = CREATE
    old: Mapping[str, Any] | None = None
    namespace_labels: Mapping[str, str] = NOTHING
    user: User = User()
    lines: Lines = NOTHING

    @property
    def ref(self) -> ObjectRef:
        """The object's name."""
        return ref_of(self.content)

    @property
    def kind(self) -> str:
        """See `kind_of`."""
        return kind_of(self.content)

    @property
    def stored(self) -> bool:
        """Whether it is as the API server has stored it: only stored objects have a resource version."""
        metadata = self.content.get("metadata")
        return self.operation == CREATE and isinstance(metadata, Mapping) and bool(metadata.get("resourceVersion"))

    def source_of(self, path: str) -> Source | None:
        """Give the line of the value at a field path, or of the nearest field around it that is there."""
        if self.source is None:
            return None
        return Source(self.source.file, _line(self.lines, path) or self.source.line)


def kind_of(content: Mapping[str, Any]) -> str:
    """Name an object's kind without its version: `Pod`, `PodGroup.scheduling.k8s.io`."""
    api_version, kind = content.get("apiVersion"), content.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return ""
    group, slash, _ = api_version.partition("/")
    return f"{kind}.{group}" if slash else kind


def version_of(content: Mapping[str, Any]) -> str:
    """Give the version of an object's API: `v1`, `v1beta1`."""
    return str(content.get("apiVersion", "")).rpartition("/")[2]


def steps_of(path: str) -> tuple[str, ...]:
    """Split a field path: `spec.containers[0].env` into `spec`, `containers`, `0`, `env`; keys may stand in `[...]`."""
    return tuple(name or inner for name, inner in _STEP.findall(path))


def value_at(content: object, path: str) -> object:
    """Read the value at a field path, `None` where there is none."""
    value = content
    for step in steps_of(path):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list):
            value = _item(value, step)
        else:
            return None
    return value


def _item(items: list[Any], step: str) -> Any:  # noqa: ANN401 - JSON
    fits = step.isascii() and step.isdigit() and len(step) < _MOST_DIGITS and int(step) < len(items)
    return items[int(step)] if fits else None


def _line(lines: object, path: str) -> int | None:
    found: int | None = None
    for step in steps_of(path):
        if isinstance(lines, Mapping):
            entry = lines.get(step)
        else:
            entry = _item(lines, step) if isinstance(lines, list) else None
        if entry is None:
            break
        found, lines = entry
    return found
