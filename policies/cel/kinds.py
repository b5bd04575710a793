"""What static types and nodes say: is it JSON, is it optional, is it a field of a typed object."""

import re
from typing import Final

from policies.cel.errors import RefusedError
from policies.cel.functions import BOOL, DOUBLE, DYN, INT, NULL, OPTIONAL, STRING
from policies.cel.scopes import SHAPES, Shape
from policies.cel.syntax import Call, Constant, Ident, Loop, Node, Select, Tree, Type, children

BINDING: Final = "#unused"
"""The variable of a loop that only binds a name, as the engine expands `optMap` and `sortBy`."""

_MAKERS: Final = ("_?._", "_[?_]", "or", "optional.of", "optional.none", "optional.ofNonZeroValue")
_JSON: Final = frozenset({BOOL, INT, DOUBLE, STRING, NULL, DYN})
_CLAUSE: Final = re.compile(r"%(?:%|([a-zA-Z]))")


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


def of_json(kind: Type) -> bool:
    """Tell whether all values of this type are JSON."""
    return kind in _JSON or (kind.name in ("list", "map") and all(map(of_json, kind.inner)))


def literal(node: Node) -> bool:
    """Tell whether a node is a constant in the text."""
    return isinstance(node, Constant)


def clauses(pattern: str) -> list[str]:
    """Give the letters of a format's clauses in order."""
    return [letter for letter in _CLAUSE.findall(pattern) if letter]


def has_unknown_clauses(pattern: str) -> bool:
    """Tell whether a format has clauses beside `%s` and the like: precision, a lone percent sign."""
    return "%" in _CLAUSE.sub("", pattern)


def mentions(kind: Type, name: str) -> bool:
    """Tell whether a type or one within it has this name."""
    return kind.name == name or any(mentions(part, name) for part in kind.inner)


def refused(tree: Tree, node: Node, rule: str, got: str) -> RefusedError:
    """Make the refusal of a node, with its place."""
    return RefusedError(f"{rule}, got {got}", tree.positions.get(node.id, 0))


def shape_of(node: Node | None) -> Shape | None:
    """Give the fields of a typed object that this node is, if it is one."""
    if isinstance(node, Ident):
        return SHAPES.get(node.name)
    if isinstance(node, Select) and not node.test:
        inner = (shape_of(node.operand) or {}).get(node.field)
        return None if isinstance(inner, Type) else inner
    return None
