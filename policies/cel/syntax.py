"""The engine's syntax tree as values, to be walked and rewritten.

Shapes follow `cel.expr.Expr` and `cel.expr.Type` (cel-spec, `proto/cel/expr/syntax.proto` and `checked.proto`).
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec


class Type(msgspec.Struct, frozen=True):
    """A static type: `name` is `int`, `list`, `map`, `dyn`, `optional_type`, ...; `inner` its parameters."""

    name: str
    inner: "tuple[Type, ...]" = ()

    def __str__(self) -> str:
        """Write it as CEL's checker does."""
        return f"{self.name}({', '.join(map(str, self.inner))})" if self.inner else self.name


DYN: Final = Type("dyn")


class Constant(msgspec.Struct, frozen=True):
    """A literal; `uint` tells 1u from 1."""

    id: int
    value: bool | int | float | str | bytes | None
    uint: bool = False


class Ident(msgspec.Struct, frozen=True):
    """A name, with dots where the checker resolved one such as `variables.size`."""

    id: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`, or `has(operand.field)` when `test`."""

    id: int
    operand: "Node"
    field: str
    test: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function or operator; `target` is the receiver."""

    id: int
    function: str
    args: "tuple[Node, ...]"
    target: "Node | None" = None


class ListLiteral(msgspec.Struct, frozen=True):
    """`[a, ?b]`."""

    id: int
    elements: "tuple[Node, ...]"
    optional: tuple[int, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    """One entry of a map or message literal; `key` is a text for a message."""

    id: int
    key: "Node | str"
    value: "Node"
    optional: bool = False


class StructLiteral(msgspec.Struct, frozen=True):
    """`{k: v}`, or `Name{k: v}` when `message`."""

    id: int
    message: str
    entries: tuple[Entry, ...]


class Loop(msgspec.Struct, frozen=True):
    """An expanded macro."""

    id: int
    variable: str
    second: str
    over: "Node"
    accumulator: str
    start: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node: TypeAlias = Constant | Ident | Select | Call | ListLiteral | StructLiteral | Loop


class Tree(msgspec.Struct, frozen=True):
    """A checked expression.

    Attributes:
        root: the expression.
        types: by node id.
        overloads: by node id, the ids of the overloads that may apply.
        positions: by node id, the offset in characters.
    """

    root: Node
    types: dict[int, Type]
    overloads: dict[int, tuple[str, ...]]
    positions: dict[int, int]

    def type_of(self, node: Node) -> Type:
        """Give the static type of a node, `dyn` when the checker kept none."""
        return self.types.get(node.id, DYN)


def children(node: Node) -> Iterator[Node]:
    """Give the nodes directly below."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListLiteral():
            yield from node.elements
        case StructLiteral():
            for entry in node.entries:
                if not isinstance(entry.key, str):
                    yield entry.key
                yield entry.value
        case Loop():
            yield from (node.over, node.start, node.condition, node.step, node.result)
        case _:
            return


def walk(node: Node) -> Iterator[Node]:
    """Give the node and all below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(children(current))


def depth_of(node: Node) -> int:
    """Count the levels of a tree."""
    return 1 + max(map(depth_of, children(node)), default=0)


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rewrite the nodes directly below."""
    match node:
        case Select():
            return Select(node.id, change(node.operand), node.field, node.test)
        case Call():
            target = None if node.target is None else change(node.target)
            return Call(node.id, node.function, tuple(map(change, node.args)), target)
        case ListLiteral():
            return ListLiteral(node.id, tuple(map(change, node.elements)), node.optional)
        case StructLiteral():
            return StructLiteral(node.id, node.message, tuple(_entry_with(entry, change) for entry in node.entries))
        case Loop():
            parts = map(change, (node.over, node.start, node.condition, node.step, node.result))
            over, start, condition, step, result = parts
            return Loop(node.id, node.variable, node.second, over, node.accumulator, start, condition, step, result)
        case _:
            return node


def _entry_with(entry: Entry, change: Callable[[Node], Node]) -> Entry:
    key = entry.key if isinstance(entry.key, str) else change(entry.key)
    return Entry(entry.id, key, change(entry.value), entry.optional)
