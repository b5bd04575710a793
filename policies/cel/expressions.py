"""Compiles an expression of a policy and evaluates it: the face of this package."""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from policies.cel.checking import level_of, refuse_differences, refuse_lost_tests
from policies.cel.environment import Activation, Program, Value, activate, check, program
from policies.cel.errors import Failure, RefusedError
from policies.cel.growth import STEPS, Loops, growth_of, loops_of
from policies.cel.kinds import literal, of_json, with_optionals
from policies.cel.lowering import FOREIGN_PREFIX, bind, lower, numbered
from policies.cel.scopes import VARIABLES, declarations
from policies.cel.syntax import Call, Constant, Ident, Node, Select, Tree, Type, depth_of, walk
from policies.cel.trees import read_tree, write_tree
from policies.cel.values import TooDeepError, as_decoded, extent_of

LONGEST: Final = 16 << 10
"""Characters of an expression."""

MOST_BYTES: Final = 128 << 20
"""Bytes that loops of one evaluation may read or build by this bound, which is a high one: two seconds at worst."""

_NAMES: Final = ("object", "oldObject", "request", "namespaceObject", "params")
_CONVERSIONS: Final = ("int", "uint", "double", "string", "bool", "timestamp", "duration")
_PATTERNS: Final = ("matches", "find", "findAll")


class Variable(msgspec.Struct, frozen=True):
    """A variable of a policy, checked and lowered, not evaluated on its own.

    Attributes:
        name: without `variables.`.
        type: its static type.
        root: its lowered tree, which may use earlier variables.
        uses: names of the earlier variables it uses itself.
        level: the minor version of Kubernetes that it needs.
        growth: see `policies.cel.growth`.
    """

    name: str
    type: Type
    root: Node
    uses: frozenset[str]
    level: int
    growth: int


class Scope(msgspec.Struct, frozen=True):
    """What an expression may use beside `object`, `oldObject`, `request` and `namespaceObject`.

    Attributes:
        params: whether the policy has a paramKind.
        variables: in the order of the policy.
    """

    params: bool = False
    variables: tuple[Variable, ...] = ()


class Expression:
    """A compiled expression.

    Attributes:
        text: as written.
        type: its static type.
        level: the minor version of Kubernetes that it needs.
        foreign: whether it calls Python (quantities), which costs memory for good.
        depth: levels of nesting of its own text.
        tested: fields that it asks for with `has()`.
        patterns: literal regular expressions.
        loops: what its loops may cost.
    """

    def __init__(self, text: str, tree: Tree, level: int, root: Node, loops: Loops) -> None:
        """Prepare the program."""
        self.loops = loops
        self.text, self.type, self.level = text, tree.type_of(tree.root), level
        nodes = list(walk(tree.root))
        self.depth = depth_of(tree.root)
        self.tested = frozenset(node.field for node in nodes if isinstance(node, Select) and node.test)
        self.patterns = tuple(map(str, filter(None, map(_pattern, nodes))))
        self.foreign = any(isinstance(node, Call) and node.function.startswith(FOREIGN_PREFIX) for node in walk(root))
        self._program: Program = program(write_tree(numbered(root)))

    def evaluate(self, bindings: "Bindings") -> Value | Failure:
        """Give the value, or why there is none; at most 10,000 steps of loops."""
        if isinstance(bindings.activation, Failure):
            return bindings.activation
        if self.loops.depth and bindings.size * STEPS > MOST_BYTES and self._costs(bindings) > MOST_BYTES:
            return Failure(f"must be evaluated on a smaller object, got one of {bindings.size} bytes", exhausted=True)
        return self._program.run(bindings.activation)

    def _costs(self, bindings: "Bindings") -> int:
        return bindings.size * self.loops.rounds(*bindings.extent)


class Bindings:
    """The values of one request, converted once for all its expressions.

    What evaluations build stays until these go: they are for one request, not for longer.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Take JSON values of `object`, `oldObject`, `request`, `namespaceObject`, `params`; absent ones are null."""
        self.size = 0
        bound: dict[str, Any] = {}
        try:
            for name in _NAMES:
                bound[name], size = as_decoded(values.get(name))
                self.size += size
            self.activation: Activation | Failure = activate(bound)
        except TooDeepError as error:
            self.activation = Failure(str(error))
        self._values = list(bound.values())

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The longest list and the longest text."""
        return extent_of(self._values)


def compile_variable(name: str, text: str, scope: Scope) -> Variable:
    """Compile a variable.

    Raises:
        RefusedError: see `compile_expression`.
    """
    tree = _checked(text, scope)
    root = lower(tree)
    return Variable(name, tree.type_of(tree.root), root, _used(root), level_of(tree), _growth(tree, scope))


def compile_expression(text: str, scope: Scope, results: Iterable[str] = ()) -> Expression:
    """Compile an expression.

    Args:
        text: CEL.
        scope: what it may use.
        results: names of the types it may give (`bool`, `string`, `null_type`); none for any JSON type.

    Raises:
        RefusedError: for what the API server refuses, and for what it and our engine are known to do differently.
    """
    tree = _checked(text, scope)
    kind = tree.type_of(tree.root)
    allowed = tuple(results)
    if not (kind.name in allowed if allowed else of_json(kind)):
        raise RefusedError(f"must give {' or '.join(allowed) or 'a JSON value'}, got {kind}")
    _growth(tree, scope)
    root = lower(tree)
    needed = _needed(_used(root), scope)
    for variable in reversed(needed):
        root = bind(f"{VARIABLES}.{variable.name}", variable.root, root)
    level = max((level_of(tree), *(variable.level for variable in needed)))
    return Expression(text, tree, level, root, loops_of(tree.root, *(variable.root for variable in needed)))


def _checked(text: str, scope: Scope) -> Tree:
    if len(text) > LONGEST:
        raise RefusedError(f"must be at most {LONGEST} characters, got {len(text)}")
    names = declarations(params=scope.params)
    names.update({f"{VARIABLES}.{variable.name}": variable.type for variable in scope.variables})
    tree = with_optionals(read_tree(check(text, names)))
    refuse_lost_tests(tree, text)
    refuse_differences(tree)
    for node in walk(tree.root):
        if isinstance(node, Call):
            _refuse_bad_literals(tree, node)
    return tree


def _growth(tree: Tree, scope: Scope) -> int:
    return growth_of(tree, {f"{VARIABLES}.{variable.name}": variable.growth for variable in scope.variables})


def _refuse_bad_literals(tree: Tree, node: Call) -> None:
    """The API server converts literals and compiles literal patterns when it loads a policy."""
    probe: Node | None = None
    if node.function in _CONVERSIONS and literal(node.args[0]):
        probe = Call(0, node.function, node.args)
    elif node.function in _PATTERNS and literal(node.args[0]):
        probe = Call(0, "matches", node.args[:1], Constant(0, ""))
    if probe is None:
        return
    outcome = _outcome(write_tree(numbered(probe)))
    offset = tree.positions.get(node.id, 0)
    if node.function in _CONVERSIONS and _padded(node.args[0]):
        outcome = Failure("white space")
    if isinstance(outcome, Failure):
        raise RefusedError(f'must give "{node.function}" a fitting literal, got {outcome.message}', offset)
    if node.function == "findAll" and (outcome is True or _finds_nothing(node.args[0])):
        raise RefusedError('must give "findAll" a pattern that never matches the empty text, got one that may', offset)


def _pattern(node: Node) -> str | None:
    if isinstance(node, Call) and node.function in _PATTERNS and isinstance(node.args[0], Constant):
        return str(node.args[0].value)
    return None


def _padded(node: Node) -> bool:
    return isinstance(node, Constant) and isinstance(node.value, str) and node.value != node.value.strip()


def _finds_nothing(pattern: Node) -> bool:
    """Tell whether a pattern has assertions, which may match the empty text inside another."""
    return isinstance(pattern, Constant) and any(
        sign in str(pattern.value) for sign in ("\\b", "\\B", "^", "$", "\\A", "\\z")
    )


@lru_cache(maxsize=1024)
def _outcome(tree: bytes) -> Value | Failure:
    return program(tree).run(activate({}))


def _used(root: Node) -> frozenset[str]:
    prefix = f"{VARIABLES}."
    return frozenset(
        node.name.removeprefix(prefix)
        for node in walk(root)
        if isinstance(node, Ident) and node.name.startswith(prefix)
    )


def _needed(used: frozenset[str], scope: Scope) -> list[Variable]:
    """Give the variables that are used, directly or by each other, in the order of the policy."""
    wanted = set(used)
    for variable in reversed(scope.variables):
        if variable.name in wanted:
            wanted |= variable.uses
    return [variable for variable in scope.variables if variable.name in wanted]
