"""What an update may not change, and which other problems it is not asked about: what was stored may stay as it was."""

from collections.abc import Iterator
from typing import Final

from policies.native.fields import FIXED, NO_SET_NO_UNSET, SAME_ITEMS, SET_ONCE, Schema, Value
from policies.native.preparing import Json, by_key, key_of, keys_of, resolved
from policies.native.problems import FORBIDDEN, INVALID, TOO_MANY, Path, Problem, problem

_SPEC: Final = "spec"


class Broken:
    """A field that an update may not change, changed; what is below it is not looked at any more."""

    def __init__(self, path: Path, *problems: Problem) -> None:
        """Keep where, and what to say."""
        self.path, self.problems = path, problems

    def covers(self, path: Path, found: Problem) -> bool:
        """Whether another problem is not looked for because of this one."""
        return path[: len(self.path)] == self.path and not (path == self.path and found.type == TOO_MANY)


def broken(content: Json, stored: Json, root: Schema) -> list[Broken]:
    """Find every change that is not allowed."""
    return list(_struct(content, stored, root, root, ()))


def is_unchanged(content: Value, stored: Value, path: Path, root: Schema) -> bool:
    """Whether the value at a path is the stored one, items of lists matched by their keys.

    The API server does not look again at what did not change ("ratcheting").
    """
    schema = root
    for step in path:
        schema = resolved(schema, root)
        if isinstance(step, int):
            content, stored = _items_at(content, stored, step, schema)
            schema = schema.get("items", {})
        else:
            content = content.get(step) if isinstance(content, dict) else None
            stored = stored.get(step) if isinstance(stored, dict) else None
            schema = schema.get("properties", {}).get(step, {})
    return bool(content == stored)


def _items_at(content: Value, stored: Value, index: int, schema: Schema) -> tuple[Value, Value]:
    item = content[index]
    matching = by_key(stored, schema).get(key_of(item, keys_of(schema))) if isinstance(stored, list) else None
    return item, matching


def _struct(content: Json, stored: Json, schema: Schema, root: Schema, path: Path) -> Iterator[Broken]:
    for name, field in resolved(schema, root)["properties"].items():
        new, old = content.get(name), stored.get(name)
        if new == old:
            continue
        found = _change(new, old, field, (*path, name))
        if found is not None:
            yield found
        elif isinstance(new, dict) and isinstance(old, dict) and "properties" in resolved(field, root):
            yield from _struct(new, old, field, root, (*path, name))
        elif isinstance(new, list) and isinstance(old, list) and keys_of(field):
            yield from _items(new, old, field, root, (*path, name))


def _items(new: list[Value], old: list[Value], field: Schema, root: Schema, path: Path) -> Iterator[Broken]:
    stored = by_key(old, field)
    for index, item in enumerate(new):
        match = stored.get(key_of(item, keys_of(field)))
        if match is not None:
            yield from _struct(item, match, field["items"], root, (*path, index))


def _change(new: Value, old: Value, field: Schema, path: Path) -> Broken | None:
    """Judge one changed field."""
    rule = field.get("x-update")
    if rule == FIXED or (rule == SET_ONCE and old is not None):
        where = field.get("x-update-path")
        kind = FORBIDDEN if where == _SPEC else INVALID
        return Broken(path, problem(where or path, kind, _fixed_rule(where, path), new))
    if rule == NO_SET_NO_UNSET and (new is None or old is None):
        return Broken(path, problem(path, INVALID, "stay set, or unset, as it was created", new))
    if rule == SAME_ITEMS:
        found = list(_other_items(new or [], old or [], field, path))
        return Broken(path, *found) if found else None
    return None


def _fixed_rule(where: str | None, path: Path) -> str:
    return f"keep its {path[-1]}" if where == _SPEC else "stay as it was created"


def _other_items(new: list[Value], old: list[Value], field: Schema, path: Path) -> Iterator[Problem]:
    keys = keys_of(field)
    before, after = by_key(old, field), by_key(new, field)
    for index, item in enumerate(new):
        if key_of(item, keys) not in before:
            yield problem((*path, index), FORBIDDEN, "be an item that was there at creation", key_of(item, keys)[0])
    if any(key not in after for key in before):
        gone = [key[0] for key in before if key not in after]
        yield problem(path, FORBIDDEN, f"keep the items {', '.join(map(str, gone))[:80]}", [key[0] for key in after])
