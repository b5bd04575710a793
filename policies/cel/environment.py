"""The only door to Google's engine (`cel-expr-python`): declares, compiles, runs.

Two environments: the checking one knows the types of the variables at hand and Kubernetes' functions by signature; the
running one takes the lowered tree, which uses the engine's own functions and, for quantities alone, ours.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from cel_expr_python import cel  # type: ignore[import-untyped]

from policies.cel.errors import Failure, RefusedError
from policies.cel.functions import DECLARED, Signature
from policies.cel.quantities import ARITHMETIC
from policies.cel.syntax import Type
from policies.cel.texts import WRITING

_EXTENSIONS: Final = ("optional", "strings", "lists", "sets", "two-var-comprehensions", "regex")
_EXHAUSTED: Final = "budget exceeded"

Activation: TypeAlias = cel.Activation
"""Values converted for the engine."""

Value: TypeAlias = bool | int | float | str | bytes | list[Any] | dict[Any, Any] | None
"""What an expression may give: JSON."""


class Program:
    """An expression ready to run; safe to use from several threads."""

    def __init__(self, expression: cel.Expression) -> None:
        """Take the engine's own."""
        self._expression = expression

    def run(self, activation: Activation) -> Value | Failure:
        """Evaluate; the result must be of a JSON type, which the caller has checked."""
        try:
            value = self._expression.eval(activation)
            if value.type() == cel.Type.ERROR:
                return Failure(str(value.plain_value()))
            plain: Value = value.plain_value()
        except (RuntimeError, ValueError, TypeError, OverflowError) as error:
            # What the binding can't convert, and the end of the step budget, come as Python exceptions.
            return Failure(_first_line(error), exhausted=_EXHAUSTED in str(error))
        return plain


def check(text: str, variables: Mapping[str, Type]) -> bytes:
    """Compile with types.

    Args:
        text: the expression.
        variables: the types of all names, dotted ones included.

    Returns:
        The checked syntax tree, serialized.

    Raises:
        RefusedError: for a text that does not compile.
    """
    environment = _checking(tuple(variables.items()))
    try:
        serialized: bytes = environment.compile(text).serialize()
    except (RuntimeError, ValueError) as error:
        raise RefusedError(*_located(str(error), text)) from error
    return serialized


def program(tree: bytes) -> Program:
    """Prepare a lowered tree.

    Raises:
        RefusedError: for a tree that is too deep for the engine.
    """
    try:
        return Program(_running().deserialize(tree))
    except (RuntimeError, ValueError) as error:
        raise RefusedError("must be less deeply nested, got a tree that the engine does not take") from error


def activate(bindings: Mapping[str, Any]) -> Activation:
    """Bind JSON values to names, for any number of runs."""
    return _running().Activation(dict(bindings))


@lru_cache(maxsize=256)
def _checking(variables: tuple[tuple[str, Type], ...]) -> cel.Env:
    declared = [{"name": name, **_described(kind)} for name, kind in variables]
    config = {"extensions": [{"name": name} for name in _EXTENSIONS], "variables": declared}
    functions = [_declaration(name, overloads) for name, overloads in DECLARED.items()]
    # JSON is YAML.
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(json.dumps(config)), functions=functions)


@lru_cache(maxsize=1)
def _running() -> cel.Env:
    config = {"extensions": [{"name": name} for name in _EXTENSIONS]}
    functions = [
        cel.FunctionDecl(name, [_overload(name, kinds, implementation) for kinds in signatures])
        for name, (signatures, implementation) in {**ARITHMETIC, **WRITING}.items()
    ]
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(json.dumps(config)), functions=functions)


def _overload(name: str, kinds: tuple[Type, ...], implementation: Callable[..., Any]) -> cel.Overload:
    parameters = list(map(_engine_type, kinds))
    return cel.Overload("_".join((name, *map(str, kinds))), cel.Type.DYN, parameters, impl=implementation)


def _described(kind: Type) -> dict[str, object]:
    inner = {"params": [_described(part) for part in kind.inner]} if kind.inner else {}
    return {"type_name": kind.name, **inner}


def _declaration(name: str, overloads: tuple[Signature, ...]) -> cel.FunctionDecl:
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(item.id, _engine_type(item.result), list(map(_engine_type, item.args)), item.member)
            for item in overloads
        ],
    )


def _engine_type(kind: Type) -> cel.Type:
    match kind.name:
        case "list":
            return cel.Type.List(_engine_type(kind.inner[0]))
        case "map":
            return cel.Type.Map(*map(_engine_type, kind.inner))
        case name:
            return cel.Type(name)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].removesuffix(" [INTERNAL]")


def _located(message: str, text: str) -> tuple[str, int]:
    """Take the first complaint and its place out of `... ERROR: <input>:line:column: problem`."""
    first = message.partition("ERROR: <input>:")[2].partition("\n")[0]
    line, _, rest = first.partition(":")
    column, _, problem = rest.partition(": ")
    if not (line.isdigit() and column.isdigit()):
        return _first_line(ValueError(message)), 0
    start = sum(len(item) for item in text.splitlines(keepends=True)[: int(line) - 1])
    return problem, start + int(column) - 1
