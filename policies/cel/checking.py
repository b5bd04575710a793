"""Refuses at load what the API server would refuse, and what our engine is known to do differently.

The engine's checker is laxer than Kubernetes' (mixed lists, functions Kubernetes lacks) and its library is not quite
the same. A function that `LEVELS` does not name is refused, whatever it is.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from policies.cel.errors import RefusedError
from policies.cel.functions import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    LEVELS,
    NULL,
    OPTIONAL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TWO_VARIABLES,
    UINT,
)
from policies.cel.scopes import RESERVED, SHAPES, Shape
from policies.cel.syntax import (
    Call,
    Constant,
    Ident,
    ListLiteral,
    Loop,
    Node,
    Select,
    StructLiteral,
    Tree,
    Type,
    children,
    walk,
)

BINDING: Final = "#unused"
"""The variable of a loop that only binds a name, as the engine expands `optMap` and `sortBy`."""

LARGEST_RANGE: Final = 1000
"""Elements that `lists.range` may make: the engine has no budget for them."""

_OF_OPTIONALS: Final = frozenset({"hasValue", "value", "or", "orValue", "_?._", "_[?_]", "_==_", "_!=_", "_?_:_"})
_MAKERS: Final = ("_?._", "_[?_]", "or", "optional.of", "optional.none", "optional.ofNonZeroValue")
_JSON: Final = frozenset({BOOL, INT, DOUBLE, STRING, NULL, DYN})
_EQUALITIES: Final = ("_==_", "_!=_")

_CONVERTIBLE: Final = {
    "int": frozenset({INT, UINT, DOUBLE, STRING, DYN}),
    "uint": frozenset({UINT}),
    "double": frozenset({INT, UINT, DOUBLE}),
    "bool": frozenset({BOOL}),
    "string": frozenset({STRING, INT, UINT, BOOL, DYN}),
    "timestamp": frozenset({STRING, DYN}),
    "duration": frozenset[Type](),
}
"""What each conversion may take beside a literal: on the rest the engines differ (spellings of floats and times)."""

_CLAUSE: Final = re.compile(r"%(?:%|([a-zA-Z]))")
_FORMATS: Final = {
    "d": frozenset({INT, DYN}),
    "x": frozenset({INT}),
    "X": frozenset({INT}),
    "o": frozenset({INT}),
    "b": frozenset({INT}),
}


def with_optionals(tree: Tree) -> Tree:
    """Mend the types: the engine calls `x[?0]`, what is chosen from it, and what is sorted `dyn`."""
    types = dict(tree.types)

    def mend(node: Node) -> None:
        for child in children(node):
            mend(child)
        if isinstance(node, Loop) and node.variable == BINDING:
            types[node.id] = types.get(node.result.id, DYN)
        if not isinstance(node, Call) or tree.type_of(node) != DYN:
            return
        chosen = node.function == "_?_:_" and any(types.get(arg.id, DYN).name == OPTIONAL for arg in node.args[1:])
        if chosen or node.function in _MAKERS:
            types[node.id] = Type(OPTIONAL, (DYN,))
        elif node.function == "@sortByAssociatedKeys" and node.target is not None:
            types[node.id] = types.get(node.target.id, DYN)

    mend(tree.root)
    return Tree(tree.root, types, tree.overloads, tree.positions)


def refuse_lost_tests(tree: Tree, text: str) -> None:
    """Refuse `has(request.dryRun)`: a field that is a name for the engine is read by it instead of looked for.

    The tree does not show it; the place does, as a field stands at its dot and the macro at its parenthesis.
    """
    for node in walk(tree.root):
        if isinstance(node, Ident) and "." in node.name and text[tree.positions.get(node.id, 0)] != ".":
            field = node.name.rpartition(".")[2]
            raise _refused(tree, node, f'must ask for "{node.name}" by ".?{field}.hasValue()"', "has()")


def refuse_differences(tree: Tree) -> None:
    """Walk the tree once.

    Raises:
        RefusedError: with the offset of the first offender.
    """
    for node, parent in _with_parents(tree.root):
        kind = tree.type_of(node)
        if _mentions(kind, "bytes"):
            raise _refused(tree, node, "must not use bytes", str(kind))
        _RULES[type(node)](tree, node, parent)


def level_of(tree: Tree) -> int:
    """Give the minor version of Kubernetes that knows all the functions and macros used."""
    levels = [0]
    for node in walk(tree.root):
        if isinstance(node, Call):
            levels.append(LEVELS.get(node.function, 0))
        elif isinstance(node, Loop) and node.second:
            levels.append(TWO_VARIABLES)
    return max(levels)


def of_json(kind: Type) -> bool:
    """Tell whether all values of this type are JSON."""
    return kind in _JSON or (kind.name in ("list", "map") and all(map(of_json, kind.inner)))


def literal(node: Node) -> bool:
    """Tell whether a node is a constant in the text."""
    return isinstance(node, Constant)


def clauses(pattern: str) -> list[str]:
    """Give the letters of a format's clauses in order."""
    return [letter for letter in _CLAUSE.findall(pattern) if letter]


def _with_parents(root: Node) -> Iterator[tuple[Node, Node | None]]:
    stack: list[tuple[Node, Node | None]] = [(root, None)]
    while stack:
        node, parent = stack.pop()
        yield node, parent
        stack.extend((child, node) for child in children(node))


def _mentions(kind: Type, name: str) -> bool:
    return kind.name == name or any(_mentions(part, name) for part in kind.inner)


def _refused(tree: Tree, node: Node, rule: str, got: str) -> RefusedError:
    return RefusedError(f"{rule}, got {got}", tree.positions.get(node.id, 0))


def _check_constant(tree: Tree, node: Node, parent: Node | None) -> None:
    del tree, node, parent


def _check_name(tree: Tree, node: Node, parent: Node | None) -> None:
    """`request` and `namespaceObject` have types that the engine does not know: only their known fields may be used."""
    assert isinstance(node, Ident)  # noqa: S101 - by dispatch
    if node.name not in SHAPES:
        return
    if isinstance(parent, Select):
        return
    if isinstance(parent, Call) and parent.function in _EQUALITIES and Constant(0, None) in map(_bare, parent.args):
        return
    if isinstance(parent, Call) and parent.function == "_?._":
        return
    raise _refused(tree, node, "must be used by its fields", f'"{node.name}" as a value')


def _bare(node: Node) -> Node:
    return Constant(0, node.value) if isinstance(node, Constant) else node


def _check_select(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, Select)  # noqa: S101 - by dispatch
    shape = _shape(node.operand)
    if shape is None:
        return
    if node.field not in shape:
        raise _refused(tree, node, f"must be one of the fields {', '.join(sorted(shape))}", f'"{node.field}"')
    if node.test or isinstance(parent, Select) or (isinstance(parent, Call) and parent.function == "_?._"):
        return
    raise _refused(tree, node, "must be used by its fields", f'"{node.field}" as a value')


def _shape(node: Node | None) -> Shape | None:
    """Give the fields of a typed object that this node is, if it is one."""
    if isinstance(node, Ident):
        return SHAPES.get(node.name)
    if isinstance(node, Select) and not node.test:
        inner = (_shape(node.operand) or {}).get(node.field)
        return None if isinstance(inner, Type) else inner
    return None


def _check_list(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, ListLiteral)  # noqa: S101 - by dispatch
    if node.optional:
        raise _refused(tree, node, "must have no optional elements", "one")
    if not (isinstance(parent, Call) and parent.function == "format"):
        _refuse_mixture(tree, node, node.elements)


def _check_map(tree: Tree, node: Node, parent: Node | None) -> None:
    del parent
    assert isinstance(node, StructLiteral)  # noqa: S101 - by dispatch
    if node.message or any(entry.optional for entry in node.entries):
        raise _refused(tree, node, "must be a plain map", node.message or "an optional entry")
    _refuse_mixture(tree, node, tuple(entry.key for entry in node.entries if not isinstance(entry.key, str)))
    _refuse_mixture(tree, node, tuple(entry.value for entry in node.entries))


def _refuse_mixture(tree: Tree, node: Node, parts: tuple[Node, ...]) -> None:
    kinds = list(dict.fromkeys(map(tree.type_of, parts)))
    if len(kinds) > 1:
        raise _refused(tree, node, "must hold values of one type", " and ".join(map(str, kinds)))
    if kinds and _mentions(kinds[0], OPTIONAL):
        raise _refused(tree, node, "must hold no optional values", str(kinds[0]))


def _check_loop(tree: Tree, node: Node, parent: Node | None) -> None:
    del parent
    assert isinstance(node, Loop)  # noqa: S101 - by dispatch
    for name in (node.variable, node.second, node.accumulator):
        if name in RESERVED:
            raise _refused(tree, node, "must not bind a name of the environment anew", f'"{name}"')


def _check_call(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, Call)  # noqa: S101 - by dispatch
    if node.function not in LEVELS:
        raise _refused(
            tree, node, "must call functions of Kubernetes that we evaluate as it does", f'"{node.function}"'
        )
    parts = ((node.target,) if node.target is not None else ()) + node.args
    kinds = tuple(map(tree.type_of, parts))
    if node.function not in _OF_OPTIONALS and any(_mentions(kind, OPTIONAL) for kind in kinds):
        raise _refused(tree, node, f'must not pass an optional value to "{node.function}"', ", ".join(map(str, kinds)))
    if rule := _CALL_RULES.get(node.function):
        rule(tree, node, parent)


def _check_conversion(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kind = tree.type_of(node.args[0])
    if literal(node.args[0]) or kind in _CONVERTIBLE[node.function]:
        return
    rule = f'must convert by "{node.function}" what both engines read alike'
    raise _refused(tree, node, rule, f"a value of type {kind}")


def _check_dyn(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kind = tree.type_of(node.args[0])
    if not of_json(kind):
        raise _refused(tree, node, 'must hide only JSON types by "dyn"', str(kind))


def _check_type(tree: Tree, node: Call, parent: Node | None) -> None:
    compared = isinstance(parent, Call) and parent.function in _EQUALITIES
    if not compared or any(tree.type_of(arg).name in (OPTIONAL, QUANTITY.name) for arg in node.args):
        raise _refused(tree, node, 'must only compare the result of "type"', "another use")


def _check_one_overload(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    found = tree.overloads.get(node.id, ())
    if len(found) != 1:
        raise _refused(
            tree, node, f'must call "{node.function}" on a list of known type', str(tree.type_of(node.target or node))
        )


def _check_range(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    size = node.args[0]
    if not (isinstance(size, Constant) and isinstance(size.value, int) and size.value <= LARGEST_RANGE):
        raise _refused(tree, node, f'must call "lists.range" with a literal up to {LARGEST_RANGE}', "another argument")


def _check_flatten(tree: Tree, node: Call, parent: Node | None) -> None:
    """The engine flattens any list and forgets the type of its elements."""
    del parent
    kind = tree.type_of(node.target or node)
    if node.args or (kind != DYN and kind.inner not in ((DYN,), (Type("list", (DYN,)),))):
        raise _refused(tree, node, 'must call "flatten" without a depth on lists of dyn', str(kind))


def _check_sorting(tree: Tree, node: Call, parent: Node | None) -> None:
    """The engine forgets the type of the elements, and would let through what the API server refuses."""
    del parent
    kind = tree.type_of(node.target or node)
    if kind not in (DYN, Type("list", (DYN,))):
        raise _refused(tree, node, 'must call "sortBy" on lists of dyn', str(kind))


def _check_zone(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    if node.args:
        raise _refused(tree, node, f'must call "{node.function}" without a time zone', "one")


def _check_equality(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kinds = [tree.type_of(arg) for arg in node.args]
    names = {kind.name for kind in kinds}
    if node.function != "@in" and len(names) > 1 and names & {"list", "map"} and not {DYN, NULL} & set(kinds):
        raise _refused(tree, node, "must compare values of one type", " and ".join(map(str, kinds)))
    alike = kinds[0] == kinds[1] or (node.function == "@in" and kinds[1].inner[:1] == (kinds[0],))
    if not alike and any(_mentions(kind, QUANTITY.name) for kind in kinds):
        raise _refused(tree, node, "must compare quantities with quantities", " and ".join(map(str, kinds)))


def _check_index(tree: Tree, node: Call, parent: Node | None) -> None:
    _check_optional_select(tree, node, parent)
    kind = tree.type_of(node.args[1])
    if kind not in (STRING, INT, DYN):
        raise _refused(tree, node, "must index by text or whole number", str(kind))


def _check_membership(tree: Tree, node: Call, parent: Node | None) -> None:
    """A key that no JSON object can have is an error in some API servers, false in others, an error here."""
    _check_equality(tree, node, parent)
    key, container = map(tree.type_of, node.args)
    if isinstance(node.args[1], ListLiteral) and not node.args[1].elements:
        raise _refused(tree, node, "must not look for anything in an empty list", "one")
    if container.name != "list" and key not in (STRING, INT, BOOL, DYN):
        raise _refused(tree, node, 'must look for a key of JSON with "in"', str(key))


def _check_optional_select(tree: Tree, node: Call, parent: Node | None) -> None:
    kind = _optional_of(node)
    if kind is None:
        return
    if not isinstance(kind, Type):
        raise _refused(tree, node, "must be a plain field of a typed object", _shown(node.args[1]))
    fits = isinstance(parent, Call) and (
        parent.function == "hasValue"
        or (parent.function == "orValue" and tree.type_of(parent.args[0]) == kind)
        or (parent.function == "_[?_]" and kind.name == "map")
    )
    if not fits:
        raise _refused(tree, node, f'must be followed by "hasValue()" or "orValue()" of type {kind}', "another use")


def _optional_of(node: Node) -> Type | Shape | None:
    """Give the type within an optional of a typed object, an empty shape where there is no such field."""
    if not isinstance(node, Call) or node.function not in ("_?._", "_[?_]"):
        return None
    if (shape := _shape(node.args[0])) is not None:
        field = node.args[1]
        return shape.get(str(field.value), {}) if isinstance(field, Constant) else {}
    within = _optional_of(node.args[0])
    if within is None:
        return None
    return within.inner[1] if isinstance(within, Type) and within.name == "map" and node.function == "_[?_]" else {}


def _shown(node: Node) -> str:
    return f'"{node.value}"' if isinstance(node, Constant) and isinstance(node.value, str) else "an expression"


def _check_format(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    values = node.args[0]
    pattern = node.target
    if not (isinstance(pattern, Constant) and isinstance(pattern.value, str) and isinstance(values, ListLiteral)):
        raise _refused(tree, node, 'must call "format" on a literal with a literal list', "another expression")
    if "%" in _CLAUSE.sub("", pattern.value):
        raise _refused(tree, node, 'must give "format" known clauses', f'"{pattern.value}"')
    letters = clauses(pattern.value)
    if len(letters) != len(values.elements):
        raise _refused(tree, node, f'must give "format" {len(letters)} values', str(len(values.elements)))
    for letter, value in zip(letters, values.elements, strict=True):
        kind = tree.type_of(value)
        if not (of_json(kind) and kind != DOUBLE if letter == "s" else kind in _FORMATS.get(letter, ())):
            raise _refused(tree, node, f'must give "%{letter}" a value that both engines write alike', str(kind))


def _check_offset(tree: Tree, node: Call, parent: Node | None) -> None:
    """Beyond the end, and backwards, the engines count differently."""
    del parent
    if len(node.args) > 1:
        raise _refused(tree, node, f'must call "{node.function}" without an offset', "one")


def _check_milliseconds(tree: Tree, node: Call, parent: Node | None) -> None:
    """Of a duration the API server gives all milliseconds, the engine those of the last second."""
    _check_zone(tree, node, parent)
    if node.target is not None and tree.type_of(node.target) != TIMESTAMP:
        raise _refused(tree, node, 'must call "getMilliseconds" on a timestamp', str(tree.type_of(node.target)))


def _check_pattern(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    if not literal(node.args[0]):
        raise _refused(tree, node, f'must give "{node.function}" a literal pattern', "an expression")


def _check_limit(tree: Tree, node: Call, parent: Node | None) -> None:
    _check_pattern(tree, node, parent)
    if not all(map(literal, node.args)):
        raise _refused(tree, node, f'must give "{node.function}" a literal number of matches', "an expression")


_Rule = Callable[[Tree, Node, Node | None], None]
_CallRule = Callable[[Tree, Call, Node | None], None]

_RULES: Final[dict[type, _Rule]] = {
    Constant: _check_constant,
    Ident: _check_name,
    Select: _check_select,
    ListLiteral: _check_list,
    StructLiteral: _check_map,
    Loop: _check_loop,
    Call: _check_call,
}

_CALL_RULES: Final[dict[str, _CallRule]] = {
    **dict.fromkeys(_CONVERTIBLE, _check_conversion),
    **dict.fromkeys(("sum", "min", "max", "isSorted"), _check_one_overload),
    **dict.fromkeys((name for name in LEVELS if name.startswith("get")), _check_zone),
    "_==_": _check_equality,
    "_!=_": _check_equality,
    "dyn": _check_dyn,
    "type": _check_type,
    "lists.range": _check_range,
    "flatten": _check_flatten,
    "@sortByAssociatedKeys": _check_sorting,
    "_[_]": _check_index,
    "_[?_]": _check_index,
    "@in": _check_membership,
    "_?._": _check_optional_select,
    "format": _check_format,
    "indexOf": _check_offset,
    "lastIndexOf": _check_offset,
    "getMilliseconds": _check_milliseconds,
    "matches": _check_pattern,
    "find": _check_pattern,
    "findAll": _check_limit,
}
