"""Bounds what an expression may build: the engine counts the steps of loops, not the bytes of texts and lists.

The measure is how many times over a value may hold what it is made of: `x + x` is 2, and 50 variables that each double
the one before would be 2^50. The API server stops such a thing by its cost at run time.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from policies.cel.errors import RefusedError
from policies.cel.functions import BOOL, DOUBLE, INT
from policies.cel.kinds import BINDING
from policies.cel.syntax import (
    Call,
    Constant,
    Ident,
    ListLiteral,
    Loop,
    Node,
    StructLiteral,
    Tree,
    children,
    walk,
)

MOST: Final = 1000
"""Times an expression may hold its input."""

STEPS: Final = 10_000
"""Steps of loops that the engine makes in one evaluation."""

_SLOW: Final = ("replace",)
_SLOWNESS: Final = 8
"""`replace` takes 100 ns a character."""

_SPLITTING: Final = ("split", "regex.extractAll")
_SCANNING: Final = frozenset(
    {"_+_", "contains", "endsWith", "format", "join", "lowerAscii", "matches", "regex.extract", "regex.extractAll",
     "replace", "size", "split", "startsWith", "string", "substring", "trim", "upperAscii", "@in", "_==_", "_!=_",
     "indexOf", "lastIndexOf", "sets.contains", "sets.equivalent", "sets.intersects", "distinct", "sort", "slice"}
)  # fmt: skip
"""Functions that take time or room by the size of their input."""

_SMALL: Final = (BOOL, INT, DOUBLE)
_PRODUCTS: Final = ("replace", "join", "lists.range")


class Loops(msgspec.Struct, frozen=True):
    """What loops of an expression may cost beside their steps.

    Attributes:
        depth: how many loops stand within each other around a function that reads or builds texts or lists; 0 for none.
        reach: rounds of the longest loop over a range.
        splits: whether a text becomes a list, which may have as many members as the text has characters.
        weight: how much slower than reading its slowest function is.
    """

    depth: int = 0
    reach: int = 0
    splits: bool = False
    weight: int = 1

    def rounds(self, widest: int, longest: int) -> int:
        """Bound the weighted rounds, given the longest list and the longest text of the input."""
        width = max(widest, self.reach, longest if self.splits else 0)
        return int(min(STEPS, width**self.depth)) * self.weight


def loops_of(*roots: Node) -> Loops:
    """Look at the loops of an expression and of the variables it uses."""
    nodes = [node for root in roots for node in walk(root)]
    calls = [node for node in nodes if isinstance(node, Call)]
    ranges = [
        arg.value for call in calls if call.function == "lists.range" for arg in call.args if isinstance(arg, Constant)
    ]
    return Loops(
        depth=max((_depth(root) for root in roots), default=0)
        if any(call.function in _SCANNING for call in calls)
        else 0,
        reach=max((value for value in ranges if isinstance(value, int)), default=0),
        splits=any(call.function in _SPLITTING for call in calls),
        weight=_SLOWNESS if any(call.function in _SLOW for call in calls) else 1,
    )


def _depth(node: Node) -> int:
    below = max(map(_depth, children(node)), default=0)
    return below + (isinstance(node, Loop) and node.variable != BINDING and not isinstance(node.over, ListLiteral))


def growth_of(tree: Tree, variables: Mapping[str, int]) -> int:
    """Give the growth of an expression.

    Args:
        tree: the expression.
        variables: the growth of each variable, by its dotted name.

    Raises:
        RefusedError: it or a part of it may grow beyond `MOST`.
    """
    return _Growth(tree, variables).of(tree.root)


class _Growth:
    def __init__(self, tree: Tree, variables: Mapping[str, int]) -> None:
        self._tree, self._names = tree, dict(variables)

    def of(self, node: Node) -> int:
        grown = self._grown(node)
        if grown > MOST:
            offset = self._tree.positions.get(node.id, 0)
            raise RefusedError(f"must hold its input at most {MOST} times, got up to {grown} times", offset)
        return 1 if self._tree.type_of(node) in _SMALL else grown

    def _grown(self, node: Node) -> int:
        match node:
            case Ident():
                return self._names.get(node.name, 1)
            case Loop():
                return self._looped(node)
            case Call(function="_?_:_"):
                return max(map(self.of, node.args))
            case Call() if node.function in _PRODUCTS:
                product = 1
                for part in children(node):
                    product *= 1 + self.of(part)
                return product
            case Call() | ListLiteral() | StructLiteral():
                return max(1, sum(map(self.of, children(node))))
            case _:
                return max(map(self.of, children(node)), default=1)

    def _looped(self, node: Loop) -> int:
        over = self.of(node.over)
        self._names[node.variable] = self._names[node.second or node.variable] = over
        # Within a step what has been gathered is there once; each round adds what the step adds.
        self._names[node.accumulator] = self.of(node.start)
        step = self.of(node.step)
        self._names[node.accumulator] = over * step
        self.of(node.condition)
        return self.of(node.result)
