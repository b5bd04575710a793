"""Rules about calls: which arguments of which functions both engines treat alike."""

from collections.abc import Callable
from typing import Final

from policies.cel.functions import BOOL, DOUBLE, DYN, INT, LEVELS, NULL, OPTIONAL, QUANTITY, STRING, TIMESTAMP, UINT
from policies.cel.kinds import clauses, has_unknown_clauses, literal, mentions, of_json, refused, shape_of
from policies.cel.scopes import Shape
from policies.cel.syntax import Call, Constant, ListLiteral, Node, Tree, Type

LARGEST_RANGE: Final = 1000
"""Elements that `lists.range` may make: the engine has no budget for them."""

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

_FORMATS: Final = {
    "d": frozenset({INT, DYN}),
    "x": frozenset({INT}),
    "X": frozenset({INT}),
    "o": frozenset({INT}),
    "b": frozenset({INT}),
}


def _check_conversion(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kind = tree.type_of(node.args[0])
    if literal(node.args[0]) or kind in _CONVERTIBLE[node.function]:
        return
    rule = f'must convert by "{node.function}" what both engines read alike'
    raise refused(tree, node, rule, f"a value of type {kind}")


def _check_dyn(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kind = tree.type_of(node.args[0])
    if not of_json(kind):
        raise refused(tree, node, 'must hide only JSON types by "dyn"', str(kind))


def _check_type(tree: Tree, node: Call, parent: Node | None) -> None:
    compared = isinstance(parent, Call) and parent.function in _EQUALITIES
    if not compared or any(tree.type_of(arg).name in (OPTIONAL, QUANTITY.name) for arg in node.args):
        raise refused(tree, node, 'must only compare the result of "type"', "another use")


def _check_one_overload(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    found = tree.overloads.get(node.id, ())
    if len(found) != 1:
        raise refused(
            tree, node, f'must call "{node.function}" on a list of known type', str(tree.type_of(node.target or node))
        )


def _check_range(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    size = node.args[0]
    if not (isinstance(size, Constant) and isinstance(size.value, int) and size.value <= LARGEST_RANGE):
        raise refused(tree, node, f'must call "lists.range" with a literal up to {LARGEST_RANGE}', "another argument")


def _check_flatten(tree: Tree, node: Call, parent: Node | None) -> None:
    """The engine flattens any list and forgets the type of its elements."""
    del parent
    kind = tree.type_of(node.target or node)
    if node.args or (kind != DYN and kind.inner not in ((DYN,), (Type("list", (DYN,)),))):
        raise refused(tree, node, 'must call "flatten" without a depth on lists of dyn', str(kind))


def _check_sorting(tree: Tree, node: Call, parent: Node | None) -> None:
    """The engine forgets the type of the elements, and would let through what the API server refuses."""
    del parent
    kind = tree.type_of(node.target or node)
    if kind not in (DYN, Type("list", (DYN,))):
        raise refused(tree, node, 'must call "sortBy" on lists of dyn', str(kind))


def _check_zone(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    if node.args:
        raise refused(tree, node, f'must call "{node.function}" without a time zone', "one")


def _check_equality(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    kinds = [tree.type_of(arg) for arg in node.args]
    names = {kind.name for kind in kinds}
    if node.function != "@in" and len(names) > 1 and names & {"list", "map"} and not {DYN, NULL} & set(kinds):
        raise refused(tree, node, "must compare values of one type", " and ".join(map(str, kinds)))
    alike = kinds[0] == kinds[1] or (node.function == "@in" and kinds[1].inner[:1] == (kinds[0],))
    if not alike and any(mentions(kind, QUANTITY.name) for kind in kinds):
        raise refused(tree, node, "must compare quantities with quantities", " and ".join(map(str, kinds)))


def _check_index(tree: Tree, node: Call, parent: Node | None) -> None:
    _check_optional_select(tree, node, parent)
    kind = tree.type_of(node.args[1])
    if kind not in (STRING, INT, DYN):
        raise refused(tree, node, "must index by text or whole number", str(kind))


def _check_membership(tree: Tree, node: Call, parent: Node | None) -> None:
    """A key that no JSON object can have is an error in some API servers, false in others, an error here."""
    _check_equality(tree, node, parent)
    key, container = map(tree.type_of, node.args)
    if isinstance(node.args[1], ListLiteral) and not node.args[1].elements:
        raise refused(tree, node, "must not look for anything in an empty list", "one")
    if container.name != "list" and key not in (STRING, INT, BOOL, DYN):
        raise refused(tree, node, 'must look for a key of JSON with "in"', str(key))


def _check_optional_select(tree: Tree, node: Call, parent: Node | None) -> None:
    kind = _optional_of(node)
    if kind is None:
        return
    if not isinstance(kind, Type):
        raise refused(tree, node, "must be a plain field of a typed object", _shown(node.args[1]))
    fits = isinstance(parent, Call) and (
        parent.function == "hasValue"
        or (parent.function == "orValue" and tree.type_of(parent.args[0]) == kind)
        or (parent.function == "_[?_]" and kind.name == "map")
    )
    if not fits:
        raise refused(tree, node, f'must be followed by "hasValue()" or "orValue()" of type {kind}', "another use")


def _check_format(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    values = node.args[0]
    pattern = node.target
    if not (isinstance(pattern, Constant) and isinstance(pattern.value, str) and isinstance(values, ListLiteral)):
        raise refused(tree, node, 'must call "format" on a literal with a literal list', "another expression")
    if has_unknown_clauses(pattern.value):
        raise refused(tree, node, 'must give "format" known clauses', f'"{pattern.value}"')
    letters = clauses(pattern.value)
    if len(letters) != len(values.elements):
        raise refused(tree, node, f'must give "format" {len(letters)} values', str(len(values.elements)))
    for letter, value in zip(letters, values.elements, strict=True):
        kind = tree.type_of(value)
        if not (of_json(kind) and kind != DOUBLE if letter == "s" else kind in _FORMATS.get(letter, ())):
            raise refused(tree, node, f'must give "%{letter}" a value that both engines write alike', str(kind))


def _check_offset(tree: Tree, node: Call, parent: Node | None) -> None:
    """Beyond the end, and backwards, the engines count differently."""
    del parent
    if len(node.args) > 1:
        raise refused(tree, node, f'must call "{node.function}" without an offset', "one")


def _check_milliseconds(tree: Tree, node: Call, parent: Node | None) -> None:
    """Of a duration the API server gives all milliseconds, the engine those of the last second."""
    _check_zone(tree, node, parent)
    if node.target is not None and tree.type_of(node.target) != TIMESTAMP:
        raise refused(tree, node, 'must call "getMilliseconds" on a timestamp', str(tree.type_of(node.target)))


def _check_pattern(tree: Tree, node: Call, parent: Node | None) -> None:
    del parent
    if not literal(node.args[0]):
        raise refused(tree, node, f'must give "{node.function}" a literal pattern', "an expression")
    if isinstance(node.args[0], Constant) and "\\C" in str(node.args[0].value):
        raise refused(tree, node, "must be a pattern of Go", "\\C")


def _check_limit(tree: Tree, node: Call, parent: Node | None) -> None:
    _check_pattern(tree, node, parent)
    if not all(map(literal, node.args)):
        raise refused(tree, node, f'must give "{node.function}" a literal number of matches', "an expression")


def _optional_of(node: Node) -> Type | Shape | None:
    """Give the type within an optional of a typed object, an empty shape where there is no such field."""
    if not isinstance(node, Call) or node.function not in ("_?._", "_[?_]"):
        return None
    if (shape := shape_of(node.args[0])) is not None:
        field = node.args[1]
        return shape.get(str(field.value), {}) if isinstance(field, Constant) else {}
    within = _optional_of(node.args[0])
    if within is None:
        return None
    return within.inner[1] if isinstance(within, Type) and within.name == "map" and node.function == "_[?_]" else {}


def _shown(node: Node) -> str:
    return f'"{node.value}"' if isinstance(node, Constant) and isinstance(node.value, str) else "an expression"


_Rule = Callable[[Tree, Call, Node | None], None]

CALL_RULES: Final[dict[str, _Rule]] = {
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
"""By function; those that are not here have no rule of their own."""
