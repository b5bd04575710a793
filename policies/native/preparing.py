"""What the API server makes of an object before it judges it: nulls and zeros are nothing, some fields go, some come.

Source: pkg/registry/scheduling/{workload,podgroup,compositepodgroup}/strategy.go and pkg/api/pod/util.go of
kubernetes/kubernetes: a field whose gate is off is removed unless the stored object has it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from policies.native.fields import Schema, Value
from policies.native.problems import DROPPED, Path, Problem, problem
from policies.targets import Target

Json = dict[str, Any]

MOST_VALUES: Final = 20_000
DEEPEST: Final = 64


class Prepared(msgspec.Struct, frozen=True):
    """An object as it would be stored, and what was left out on the way."""

    content: Json
    dropped: list[Problem]


def is_too_large(value: object) -> str | None:
    """Give the rule that an object breaks by its sheer size, before anything walks through it."""
    count = 0
    level: list[object] = [value]
    for _ in range(DEEPEST):
        count += len(level)
        if not level:
            return None
        if count > MOST_VALUES:
            return f"hold at most {MOST_VALUES} values"
        level = [child for parent in level for child in _children(parent)]
    return f"be at most {DEEPEST} levels deep"


def without_nulls(value: Value) -> Value:
    """Copy a value without what is null: on the wire null means not set, and in a list an empty struct."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [{} if child is None else without_nulls(child) for child in value]
    return value


def prepare(content: Json, stored: Json | None, schema: Schema, target: Target) -> Prepared:
    """Drop and default.

    Args:
        content: the object without nulls; its types are known to fit.
        stored: the stored object, prepared, on an update.
        schema: the kind's schema.
        target: its gates decide.
    """
    preparing = _Preparing(schema, target)
    return Prepared(preparing.struct(content, stored or {}, schema, ()), preparing.dropped)


def prepare_stored(content: Json, schema: Schema, target: Target) -> Json:
    """Take a stored object for what it is: nothing is dropped from it."""
    return _Preparing(schema, target, keeping=True).struct(content, content, schema, ())


def resolved(schema: Schema, root: Schema) -> Schema:
    """Follow a reference into the root's definitions; its own annotations win."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Schema = root["$defs"][reference.rpartition("/")[2]]
    return found


def key_of(item: object, keys: list[str]) -> tuple[object, ...]:
    """Give what tells an item of a list apart; an item without the key has the empty one."""
    return tuple(item.get(key, "") for key in keys) if isinstance(item, dict) else ()


class _Preparing:
    def __init__(self, root: Schema, target: Target, *, keeping: bool = False) -> None:
        self.dropped: list[Problem] = []
        self._root = root
        self._target = target
        self._keeping = keeping

    def struct(self, value: Json, stored: Json, schema: Schema, path: Path) -> Json:
        """Prepare a struct."""
        schema = resolved(schema, self._root)
        fields: Schema = schema["properties"]
        out: Json = {key: child for key, child in value.items() if key not in fields} if "x-open" in schema else {}
        if "x-open" not in schema:
            self._note_unknown(value, fields, path)
        for name, field in fields.items():
            prepared = self._field(value.get(name), stored.get(name), field, (*path, name))
            if prepared is not None:
                out[name] = prepared
        return out

    def _note_unknown(self, value: Json, fields: Schema, path: Path) -> None:
        for key in value:
            if key not in fields:
                self.dropped.append(problem((*path, key), DROPPED, "be a field that the API server knows", value[key]))

    def _field(self, value: Value, stored: Value, field: Schema, path: Path) -> Value:
        if value is not None and not self._kept(value, stored, field, path):
            return None
        if value is None:
            return self._missing(field, stored, path)
        kind = resolved(field, self._root)
        if kind.get("type") == "object" and "properties" in kind:
            return self.struct(value, stored if isinstance(stored, dict) else {}, kind, path)
        if kind.get("type") == "array":
            return self._list(value, stored if isinstance(stored, list) else [], kind, path) or None
        return None if "x-plain" in kind and not value else value

    def _missing(self, field: Schema, stored: Value, path: Path) -> Value:
        gate = field.get("x-default-gate")
        if "default" in field and (gate is None or self._target.enabled(gate)):
            return field["default"]
        if "x-plain" in field and field["type"] == "object":
            return self.struct({}, stored if isinstance(stored, dict) else {}, field, path)
        return None

    def _list(self, value: list[Value], stored: list[Value], field: Schema, path: Path) -> list[Value]:
        items = resolved(field.get("items", {}), self._root)
        if "properties" not in items:
            return list(value)
        old = by_key(stored, field)
        return [
            self.struct(item, old.get(key_of(item, keys_of(field))) or {}, items, (*path, index))
            for index, item in enumerate(value)
        ]

    def _kept(self, value: Value, stored: Value, field: Schema, path: Path) -> bool:
        if self._keeping:
            return True
        if "x-unknown" in field:
            self.dropped.append(problem(path, DROPPED, "be a field that the API server knows", value))
            return False
        gate = field.get("x-gate")
        if gate is None or self._target.enabled(gate) or stored is not None:
            return True
        self.dropped.append(problem(path, DROPPED, f"be left out while the gate {gate} is off", value))
        return False


def keys_of(field: Schema) -> list[str]:
    """Give the keys that tell a list's items apart; none where they are not told apart."""
    return list(field.get("x-kubernetes-list-map-keys", ()))


def by_key(items: list[Value], field: Schema) -> Mapping[tuple[object, ...], Value]:
    """Index a list's items by their key; the first of several equal ones counts."""
    keys = keys_of(field)
    return {key_of(item, keys): item for item in reversed(items)} if keys else {}


def _children(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value) if isinstance(value, list) else iter(())
