# ruff: noqa: PLR2004 - field numbers of the schema
"""Reads the engine's checked tree from its serialized form, and writes a tree for it to run.

Source: `cel.expr.CheckedExpr` and `cel.expr.Expr` (cel-spec, `proto/cel/expr/checked.proto` and `syntax.proto`).
"""

import struct
from collections.abc import Callable
from typing import Final

from policies.cel.syntax import (
    DYN,
    Call,
    Constant,
    Entry,
    Ident,
    ListLiteral,
    Loop,
    Node,
    Select,
    StructLiteral,
    Tree,
    Type,
)
from policies.cel.wire import Field, Writable, read_fields, read_integers, signed, write_fields

_CHECKED: Final = "type.googleapis.com/cel.expr.CheckedExpr"
_PRIMITIVES: Final = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN: Final = ("", "any", "timestamp", "duration")


def read_tree(serialized: bytes) -> Tree:
    """Read what the engine's `Expression.serialize` gives."""
    body = _first(serialized, 2)
    root: Node | None = None
    types: dict[int, Type] = {}
    overloads: dict[int, tuple[str, ...]] = {}
    positions: dict[int, int] = {}
    for number, value in read_fields(body):
        data = _bytes(value)
        if number == 2:
            key, entry = _pair(data)
            overloads[key] = tuple(_text(item) for at, item in read_fields(entry) if at == 3)
        elif number == 3:
            key, entry = _pair(data)
            types[key] = _type(entry)
        elif number == 4:
            root = _node(data)
        elif number == 5:
            positions = dict(_position(item) for at, item in read_fields(data) if at == 4)
    if root is None:
        raise ValueError("no expression")
    return Tree(root, types, overloads, positions)


def write_tree(root: Node) -> bytes:
    """Write a tree for the engine's `Env.deserialize`, without types and overloads: it resolves by name at run time."""
    return write_fields([(1, _CHECKED), (2, write_fields([(4, _written(root))]))])


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message belongs")  # noqa: TRY004 - malformed data, not a caller's slip
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _first(data: bytes, number: int) -> bytes:
    return next(_bytes(value) for at, value in read_fields(data) if at == number)


def _pair(data: bytes) -> tuple[int, bytes]:
    fields = dict(read_fields(data))
    return int(fields.get(1, 0)), _bytes(fields.get(2, b""))


def _position(data: int | bytes) -> tuple[int, int]:
    fields = dict(read_fields(_bytes(data)))
    return int(fields.get(1, 0)), int(fields.get(2, 0))


def _type(data: bytes) -> Type:  # noqa: PLR0911 - one line a kind
    number, value = next(iter(read_fields(data)), (1, b""))
    match number:
        case 2:
            return Type("null_type")
        case 3:
            return Type(_PRIMITIVES[int(value)])
        case 4:
            return Type("wrapper", (Type(_PRIMITIVES[int(value)]),))
        case 5:
            return Type(_WELL_KNOWN[int(value)])
        case 6:
            return Type("list", tuple(_type(_bytes(item)) for _, item in read_fields(_bytes(value))))
        case 7:
            return Type("map", tuple(_type(_bytes(item)) for _, item in read_fields(_bytes(value))))
        case 9 | 10:
            return Type(_text(value))
        case 11:
            return Type("type", (_type(_bytes(value)),))
        case 14:
            fields = list(read_fields(_bytes(value)))
            name = next(_text(item) for at, item in fields if at == 1)
            return Type(name, tuple(_type(_bytes(item)) for at, item in fields if at == 2))
        case _:
            return DYN


def _node(data: bytes) -> Node:
    ident, number, body = 0, 0, b""
    for at, value in read_fields(data):
        if at == 2:
            ident = int(value)
        else:
            number, body = at, _bytes(value)
    return _READERS[number](ident, list(read_fields(body)))


def _nodes(fields: list[Field], number: int) -> tuple[Node, ...]:
    return tuple(_node(_bytes(value)) for at, value in fields if at == number)


def _one(fields: list[Field], number: int) -> Node:
    return _nodes(fields, number)[0]


def _name(fields: list[Field], number: int) -> str:
    return next((_text(value) for at, value in fields if at == number), "")


def _constant(ident: int, fields: list[Field]) -> Node:  # noqa: PLR0911 - one line a kind
    number, value = fields[0] if fields else (1, 0)
    match number:
        case 2:
            return Constant(ident, bool(value))
        case 3:
            return Constant(ident, signed(int(value)))
        case 4:
            return Constant(ident, int(value), uint=True)
        case 5:
            return Constant(ident, struct.unpack("<d", _bytes(value))[0])
        case 6:
            return Constant(ident, _text(value))
        case 7:
            return Constant(ident, _bytes(value))
        case _:
            return Constant(ident, None)


def _select(ident: int, fields: list[Field]) -> Node:
    return Select(ident, _one(fields, 1), _name(fields, 2), any(at == 3 and value for at, value in fields))


def _call(ident: int, fields: list[Field]) -> Node:
    return Call(ident, _name(fields, 2), _nodes(fields, 3), next(iter(_nodes(fields, 1)), None))


def _list(ident: int, fields: list[Field]) -> Node:
    optional = [number for at, value in fields if at == 2 for number in read_integers(value)]
    return ListLiteral(ident, _nodes(fields, 1), tuple(optional))


def _struct(ident: int, fields: list[Field]) -> Node:
    entries = tuple(_entry(_bytes(value)) for at, value in fields if at == 2)
    return StructLiteral(ident, _name(fields, 1), entries)


def _entry(data: bytes) -> Entry:
    fields = list(read_fields(data))
    numbers = {at: value for at, value in fields if isinstance(value, int)}
    key: Node | str = _name(fields, 2) or _one(fields, 3)
    return Entry(numbers.get(1, 0), key, _one(fields, 4), bool(numbers.get(5)))


def _loop(ident: int, fields: list[Field]) -> Node:
    return Loop(
        ident,
        _name(fields, 1),
        _name(fields, 8),
        _one(fields, 2),
        _name(fields, 3),
        _one(fields, 4),
        _one(fields, 5),
        _one(fields, 6),
        _one(fields, 7),
    )


_READERS: Final[dict[int, Callable[[int, list[Field]], Node]]] = {
    3: _constant,
    4: lambda ident, fields: Ident(ident, _name(fields, 1)),
    5: _select,
    6: _call,
    7: _list,
    8: _struct,
    9: _loop,
}


def _written(node: Node) -> bytes:
    number, body = _body(node)
    return write_fields([(2, node.id), (number, write_fields(body))])


def _body(node: Node) -> tuple[int, list[tuple[int, Writable]]]:  # noqa: PLR0911 - one line a kind
    match node:
        case Constant():
            return 3, [_literal(node)]
        case Ident():
            return 4, [(1, node.name)]
        case Select():
            return 5, [(1, _written(node.operand)), (2, node.field), (3, int(node.test))]
        case Call():
            target = [] if node.target is None else [(1, _written(node.target))]
            return 6, [*target, (2, node.function), *((3, _written(arg)) for arg in node.args)]
        case ListLiteral():
            optional = [(2, index) for index in node.optional]
            return 7, [*((1, _written(element)) for element in node.elements), *optional]
        case StructLiteral():
            return 8, [(1, node.message), *((2, _written_entry(entry)) for entry in node.entries)]
        case Loop():
            names = [(1, node.variable), (8, node.second), (3, node.accumulator)]
            parts = enumerate((node.start, node.condition, node.step, node.result), 4)
            return 9, [*names, (2, _written(node.over)), *((at, _written(part)) for at, part in parts)]


def _written_entry(entry: Entry) -> bytes:
    key = (2, entry.key) if isinstance(entry.key, str) else (3, _written(entry.key))
    return write_fields([(1, entry.id), key, (4, _written(entry.value)), (5, int(entry.optional))])


def _literal(node: Constant) -> tuple[int, Writable]:
    match node.value:
        case None:
            return 1, 0
        case bool():
            return 2, int(node.value)
        case int():
            return (4 if node.uint else 3), node.value
        case float():
            return 5, node.value
        case str():
            return 6, node.value
        case _:
            return 7, node.value
