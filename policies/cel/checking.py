"""Refuses at load what the API server would refuse, and what our engine is known to do differently.

The engine's checker is laxer than Kubernetes' (mixed lists, functions Kubernetes lacks) and its library is not quite
the same. A function that `LEVELS` does not name is refused, whatever it is.
"""

from collections.abc import Callable, Iterator
from typing import Final

from policies.cel.calls import CALL_RULES
from policies.cel.functions import (
    LEVELS,
    OPTIONAL,
    TWO_VARIABLES,
)
from policies.cel.kinds import mentions, refused, shape_of
from policies.cel.scopes import RESERVED, SHAPES
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
    children,
    walk,
)

_OF_OPTIONALS: Final = frozenset({"hasValue", "value", "or", "orValue", "_?._", "_[?_]", "_==_", "_!=_", "_?_:_"})
_EQUALITIES: Final = ("_==_", "_!=_")


def refuse_lost_tests(tree: Tree, text: str) -> None:
    """Refuse `has(request.dryRun)`: a field that is a name for the engine is read by it instead of looked for.

    The tree does not show it; the place does, as a field stands at its dot and the macro at its parenthesis.
    """
    for node in walk(tree.root):
        if isinstance(node, Ident) and "." in node.name and text[tree.positions.get(node.id, 0)] != ".":
            field = node.name.rpartition(".")[2]
            raise refused(tree, node, f'must ask for "{node.name}" by ".?{field}.hasValue()"', "has()")


def refuse_differences(tree: Tree) -> None:
    """Walk the tree once.

    Raises:
        RefusedError: with the offset of the first offender.
    """
    for node, parent in _with_parents(tree.root):
        kind = tree.type_of(node)
        if mentions(kind, "bytes"):
            raise refused(tree, node, "must not use bytes", str(kind))
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


def _with_parents(root: Node) -> Iterator[tuple[Node, Node | None]]:
    stack: list[tuple[Node, Node | None]] = [(root, None)]
    while stack:
        node, parent = stack.pop()
        yield node, parent
        stack.extend((child, node) for child in children(node))


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
    raise refused(tree, node, "must be used by its fields", f'"{node.name}" as a value')


def _bare(node: Node) -> Node:
    return Constant(0, node.value) if isinstance(node, Constant) else node


def _check_select(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, Select)  # noqa: S101 - by dispatch
    shape = shape_of(node.operand)
    if shape is None:
        return
    if node.field not in shape:
        raise refused(tree, node, f"must be one of the fields {', '.join(sorted(shape))}", f'"{node.field}"')
    if node.test or isinstance(parent, Select) or (isinstance(parent, Call) and parent.function == "_?._"):
        return
    raise refused(tree, node, "must be used by its fields", f'"{node.field}" as a value')


def _check_list(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, ListLiteral)  # noqa: S101 - by dispatch
    if node.optional:
        raise refused(tree, node, "must have no optional elements", "one")
    if not (isinstance(parent, Call) and parent.function == "format"):
        _refuse_mixture(tree, node, node.elements)


def _check_map(tree: Tree, node: Node, parent: Node | None) -> None:
    del parent
    assert isinstance(node, StructLiteral)  # noqa: S101 - by dispatch
    if node.message or any(entry.optional for entry in node.entries):
        raise refused(tree, node, "must be a plain map", node.message or "an optional entry")
    _refuse_mixture(tree, node, tuple(entry.key for entry in node.entries if not isinstance(entry.key, str)))
    _refuse_mixture(tree, node, tuple(entry.value for entry in node.entries))


def _refuse_mixture(tree: Tree, node: Node, parts: tuple[Node, ...]) -> None:
    kinds = list(dict.fromkeys(map(tree.type_of, parts)))
    if len(kinds) > 1:
        raise refused(tree, node, "must hold values of one type", " and ".join(map(str, kinds)))
    if kinds and mentions(kinds[0], OPTIONAL):
        raise refused(tree, node, "must hold no optional values", str(kinds[0]))


def _check_loop(tree: Tree, node: Node, parent: Node | None) -> None:
    del parent
    assert isinstance(node, Loop)  # noqa: S101 - by dispatch
    for name in (node.variable, node.second, node.accumulator):
        if name in RESERVED:
            raise refused(tree, node, "must not bind a name of the environment anew", f'"{name}"')


def _check_call(tree: Tree, node: Node, parent: Node | None) -> None:
    assert isinstance(node, Call)  # noqa: S101 - by dispatch
    if node.function not in LEVELS:
        raise refused(tree, node, "must call functions of Kubernetes that we evaluate as it does", f'"{node.function}"')
    parts = ((node.target,) if node.target is not None else ()) + node.args
    kinds = tuple(map(tree.type_of, parts))
    if node.function not in _OF_OPTIONALS and any(mentions(kind, OPTIONAL) for kind in kinds):
        raise refused(tree, node, f'must not pass an optional value to "{node.function}"', ", ".join(map(str, kinds)))
    if rule := CALL_RULES.get(node.function):
        rule(tree, node, parent)


_Rule = Callable[[Tree, Node, Node | None], None]

_RULES: Final[dict[type, _Rule]] = {
    Constant: _check_constant,
    Ident: _check_name,
    Select: _check_select,
    ListLiteral: _check_list,
    StructLiteral: _check_map,
    Loop: _check_loop,
    Call: _check_call,
}
