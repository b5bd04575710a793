"""Reads manifests, strictly: YAML or JSON text in, objects out, each with its lines.

libyaml's events are read one by one, so depth and size cost no more than they are allowed to. Refused: aliases, tags,
a key twice, keys that are no strings, numbers that JSON has not. A YAML list object is opened into its members.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from policies.findings import Source
from policies.objects import Subject

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LONGEST_NUMBER: Final = 40
_LONGEST_SHOWN: Final = 40
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

JSON_LIST: Final = "List"

_Entry = tuple[int, Any]
"""A value's line, and the lines below it."""


class Limits(msgspec.Struct, frozen=True):
    """What a text may hold.

    Attributes:
        characters: of the whole text.
        objects: members of lists counted one by one.
        depth: levels of one object.
    """

    characters: int = 16 << 20
    objects: int = 100_000
    depth: int = 100


LIMITS: Final = Limits()


class Unreadable(ValueError):  # noqa: N818 - reads as what the text is
    """A text that holds no objects.

    Attributes:
        file: its name.
        line: where, from 1.
        problem: `must <rule>, got <value>`.
    """

    def __init__(self, file: str, line: int, problem: str) -> None:
        """Keep the parts and render `<file>:<line>: must <rule>, got <value>`."""
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}")


def read_objects(text: str, file: str, *, limits: Limits = LIMITS) -> list[Subject]:
    """Read every object of a text, as to be created.

    Args:
        text: YAML with any number of documents, or JSON.
        file: its name, for messages and sources.
        limits: beyond which nothing is read.

    Raises:
        Unreadable: with the line.
    """
    if len(text) > limits.characters:
        raise Unreadable(file, 1, f"must be at most {limits.characters} characters, got {len(text)}")
    subjects: list[Subject] = []
    for value, line, lines in read_documents(text, file, limits=limits):
        subjects += _opened(value, line, lines, file)
        if len(subjects) > limits.objects:
            raise Unreadable(file, line, f"must hold at most {limits.objects} objects, got more")
    return subjects


def read_documents(text: str, file: str, *, limits: Limits = LIMITS) -> Iterator[tuple[Any, int, Any]]:
    """Give each document that is not empty: its value, its first line, and the lines below it; see `read_objects`."""
    try:
        yield from _Builder(text, file, limits).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        if not text.lstrip("\ufeff \t\r\n").startswith("{"):
            raise Unreadable(file, line, f"must be YAML, got {error.problem}") from error
        yield _json(text, file, limits), 1, None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Unreadable(file, 1, "must be YAML, got a character that it does not allow") from error


def _opened(value: object, line: int, lines: Any, file: str) -> Iterator[Subject]:  # noqa: ANN401 - a line tree
    if not isinstance(value, dict):
        raise Unreadable(file, line, f"must hold objects, got {_shown(value)}")
    if value.get("kind") != JSON_LIST or not isinstance(value.get("items"), list):
        yield Subject(value, Source(file, line), lines=lines or {})
        return
    places = (lines or {}).get("items", (line, None))[1] or [(line, None)] * len(value["items"])
    for item, (item_line, item_lines) in zip(value["items"], places, strict=True):
        if not isinstance(item, dict):
            raise Unreadable(file, item_line, f"must hold objects, got {_shown(item)}")
        yield Subject(item, Source(file, item_line), lines=item_lines or {})


class _Level:
    """A mapping or list that is being read."""

    def __init__(self, entry_line: int, *, mapping: bool) -> None:
        self.line = entry_line
        self.mapping: dict[str, Any] | None = {} if mapping else None
        self.items: list[Any] = []
        self.lines: Any = {} if mapping else []
        self.key: str | None = None
        self.key_line = entry_line

    @property
    def value(self) -> Any:  # noqa: ANN401 - JSON
        return self.items if self.mapping is None else self.mapping

    @property
    def wants_key(self) -> bool:
        return self.mapping is not None and self.key is None

    def put(self, value: Any, line: int, lines: Any) -> None:  # noqa: ANN401 - JSON
        if self.mapping is None:
            self.items.append(value)
            self.lines.append((line, lines))
        else:
            assert self.key is not None  # noqa: S101 - a key comes first
            self.mapping[self.key] = value
            self.lines[self.key] = (self.key_line, lines)
            self.key = None


class _Builder:
    """Turns libyaml's events into values and lines, without recursion."""

    def __init__(self, text: str, file: str, limits: Limits) -> None:
        self._loader = yaml.CSafeLoader(text)
        self._file, self._limits = file, limits
        self._levels: list[_Level] = []

    def documents(self) -> Iterator[tuple[Any, int, Any]]:
        while True:
            event = self._loader.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                return
            done = self._step(event)
            if done is not None and done[0] is not None:
                yield done

    def _step(self, event: Any) -> tuple[Any, int, Any] | None:  # noqa: ANN401 - libyaml's events have no types
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            level = self._levels.pop()
            return self._place(level.value, level.line, level.lines)
        elif isinstance(event, yaml.AliasEvent):
            raise self._refused(event, f'must hold no YAML alias, got "*{str(event.anchor)[:_LONGEST_SHOWN]}"')
        return None

    def _begin(self, event: Any) -> None:  # noqa: ANN401
        mapping = isinstance(event, yaml.MappingStartEvent)
        if self._levels and self._levels[-1].wants_key:
            raise self._refused(event, "must have strings as keys, got a mapping or list")
        if len(self._levels) == self._limits.depth:
            raise self._refused(event, f"must be at most {self._limits.depth} levels deep, got more")
        self._plain_tag(event, "map" if mapping else "seq")
        self._levels.append(_Level(event.start_mark.line + 1, mapping=mapping))

    def _scalar(self, event: Any) -> tuple[Any, int, Any] | None:  # noqa: ANN401
        value, line = self._value(event), event.start_mark.line + 1
        level = self._levels[-1] if self._levels else None
        if level is None or not level.wants_key:
            return self._place(value, line, None)
        if not isinstance(value, str):
            raise self._refused(event, f"must have strings as keys, got {_shown(event.value)}")
        if level.mapping is not None and value in level.mapping:
            raise self._refused(event, f"must hold each key once, got {_shown(value)} twice")
        level.key, level.key_line = value, line
        return None

    def _place(self, value: Any, line: int, lines: Any) -> tuple[Any, int, Any] | None:  # noqa: ANN401
        if not self._levels:
            return value, line, lines
        self._levels[-1].put(value, line, lines)
        return None

    def _value(self, event: Any) -> Any:  # noqa: ANN401
        text: str = event.value
        if event.tag is not None:
            self._plain_tag(event, "str")
        elif event.implicit[0]:
            kind = self._loader.resolve(yaml.ScalarNode, text, event.implicit)  # type: ignore[no-untyped-call]
            return self._plain(event, text, kind.removeprefix(_TAG))
        return text

    def _plain(self, event: Any, text: str, kind: str) -> Any:  # noqa: ANN401
        match kind:
            case "null":
                return None
            case "bool":
                return _WORDS[text.lower()]
            case "int" if len(text) <= _LONGEST_NUMBER and _INTEGER.fullmatch(text):
                return int(text)
            case "float" if len(text) <= _LONGEST_NUMBER and _FLOAT.fullmatch(text):
                return self._float(event, text)
            case "int" | "float" if ":" not in text and "_" not in text:
                raise self._refused(event, f"must hold plain decimal numbers, got {_shown(text)}")
        return text

    def _float(self, event: Any, text: str) -> float:  # noqa: ANN401
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise self._refused(event, f"must hold numbers that JSON has, got {_shown(text)}")
        return number

    def _plain_tag(self, event: Any, tag: str) -> None:  # noqa: ANN401
        if event.tag not in (None, "!", _TAG + tag):
            raise self._refused(event, f"must hold no YAML tag, got {_shown(event.tag)}")

    def _refused(self, event: Any, problem: str) -> Unreadable:  # noqa: ANN401
        return Unreadable(self._file, event.start_mark.line + 1, problem)


def _json(text: str, file: str, limits: Limits) -> Any:  # noqa: ANN401
    """Read what is JSON but not YAML, such as an escaped pair of surrogates; it is one document without lines."""
    if _depth(text) > limits.depth:
        raise Unreadable(file, 1, f"must be at most {limits.depth} levels deep, got more")
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise Unreadable(file, error.lineno, f"must be JSON, got {error.msg[:1].lower()}{error.msg[1:]}") from error
    except ValueError as error:
        raise Unreadable(file, 1, str(error)) from error


def _depth(text: str) -> int:
    """Give an upper bound of the nesting, brackets in strings included."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"must hold each key once, got {_shown(key)} twice")
        found[key] = value
    return found


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"must hold plain decimal numbers, got {_shown(text)}")
    return int(text)


def _no_constant(name: str) -> Any:  # noqa: ANN401
    raise ValueError(f"must hold numbers that JSON has, got {name}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
