"""Reads one YAML or JSON document into plain values, strictly, and knows the line of each.

Strings, whole numbers, numbers, booleans and null only: no alias, no tag, no key twice, no key that is not a string.
YAML's own constructors are not used, since they raise whatever a date or a huge number makes them raise.
"""

import re
from collections.abc import Iterable
from typing import Final

import yaml

LARGEST: Final = 1 << 18
"""Bytes of a configuration file."""

DEEPEST: Final = 16
"""Levels of a configuration file; the scanner's time grows with the square of the depth."""

LONGEST_SHOWN: Final = 40
"""Characters of a culprit that are repeated to the user."""

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")

Path = tuple[str, ...]
"""Keys from the document down to a value; a configuration has no lists."""


class Unreadable(ValueError):  # noqa: N818 - reads as what the text is
    """A text that is no plain document.

    Attributes:
        line: where, from 1.
        problem: `must <rule>, got <value>`.
    """

    def __init__(self, line: int, problem: str) -> None:
        """Keep both."""
        self.line, self.problem = line, problem
        super().__init__(problem)


class _Strict(yaml.SafeLoader):
    """A loader that stops at the first alias and below a depth, before anything is built."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event: yaml.NodeEvent = self.peek_event()  # type: ignore[no-untyped-call]
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable(line, f'must hold no YAML alias, got "*{event.anchor}"')
        if self.depth == DEEPEST:
            raise Unreadable(line, f"must be at most {DEEPEST} levels deep, got more")
        self.depth += 1
        node = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= 1
        return node


def read_document(text: str) -> tuple[object, yaml.Node | None]:
    """Read a document.

    Args:
        text: YAML or JSON, of at most `LARGEST` characters.

    Returns:
        Its value, and the node tree that `line_of` takes; `None` twice for an empty document.

    Raises:
        Unreadable: for everything else.
    """
    if len(text) > LARGEST:
        raise Unreadable(1, f"must be at most {LARGEST} bytes, got more")
    try:
        node = _Strict(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(line, f"must be YAML, got character U+{error.character:04X}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(1 if mark is None else mark.line + 1, f"must be YAML, got {error.problem}") from error
    return (None, None) if node is None else (_value(node), node)


def line_of(node: yaml.Node | None, where: Path) -> int:
    """Find the line, from 1, of the value at `where`, which has to be there."""
    found = _at(node, where)
    return 1 if found is None else found.start_mark.line + 1


def key_line(node: yaml.Node | None, where: Path, key: str) -> int:
    """Find the line, from 1, of a key of the mapping at `where`."""
    pairs = getattr(_at(node, where), "value", ())
    marks: Iterable[yaml.Mark] = (name.start_mark for name, _ in pairs if name.value == key)
    return next(iter(marks)).line + 1


def _at(node: yaml.Node | None, where: Path) -> yaml.Node | None:
    for step in where:
        node = next(value for key, value in getattr(node, "value", ()) if key.value == step)
    return node


def _value(node: yaml.Node) -> object:
    if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
        return dict(_pairs(node))
    if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
        return [_value(item) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    raise _unfit(node, f"tag {node.tag}")


def _pairs(node: yaml.MappingNode) -> Iterable[tuple[str, object]]:
    seen: set[str] = set()
    for key, value in node.value:
        if key.tag != _TAG + "str":
            raise Unreadable(key.start_mark.line + 1, f"must have strings as keys, got {_shown(key)}")
        if key.value in seen:
            raise Unreadable(key.start_mark.line + 1, f"must hold each key once, got {_shown(key)} twice")
        seen.add(key.value)
        yield key.value, _value(value)


def _scalar(node: yaml.ScalarNode) -> object:
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() in ("true", "yes", "on")
        case "int" if _INTEGER.fullmatch(text):
            return int(text)
        case "float":
            return _float(node)
    raise _unfit(node, _shown(node))


def _float(node: yaml.ScalarNode) -> float:
    try:
        return float(node.value)
    except ValueError as error:
        raise _unfit(node, _shown(node)) from error


def _unfit(node: yaml.Node, got: str) -> Unreadable:
    rule = "must hold strings, decimal numbers, booleans, mappings and lists only"
    return Unreadable(node.start_mark.line + 1, f"{rule}, got {got}")


def _shown(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a mapping or list"
    text: str = node.value
    return f'"{text}"' if len(text) <= LONGEST_SHOWN else f'"{text[:LONGEST_SHOWN]}..."'
