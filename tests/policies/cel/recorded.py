"""Expressions with the API server's own answers, recorded with the admission packages of Kubernetes 1.34.1."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from policies.cel.errors import Failure, RefusedError
from policies.cel.expressions import Bindings, Expression, Scope, compile_expression, compile_variable

DATA: Final = Path(__file__).parents[2] / "data" / "policies"

SAME: Final = "as recorded"
REFUSED: Final = "refused"
FAILED: Final = "an error where the server has a value"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One expression: what it may use, and what the API server made of it."""

    expr: str
    outcome: str
    group: str = ""
    type: str = ""
    value: Any = None
    object: str = ""
    oldObject: str = ""  # noqa: N815 - as recorded
    variables: tuple[dict[str, str], ...] = ()


class Edge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One expression and its outcome; `old` tells a random one and whether there was an oldObject."""

    expr: str
    outcome: str
    type: str = ""
    value: Any = None
    old: bool | None = None


class Recording:
    """The objects that the expressions were evaluated on."""

    def __init__(self) -> None:
        """Read the file."""
        content = json.loads((DATA / "expected-cel-1.34.json").read_text())
        fixtures: Mapping[str, Any] = content["fixtures"]
        self.cases = msgspec.convert(content["cases"], list[Case])
        self._fixtures = fixtures
        pod = fixtures["object"]
        changed = copy.deepcopy(pod)
        changed["spec"]["schedulingGroup"]["podGroupName"] = "other"
        self._objects = {"": pod, "pod-with-numbers": {**pod, "num1": 1, "num10": 1.0, "big": 2**53 + 1, "bool": True}}
        self._old = {"": None, "same": pod, "changed": changed}

    def random(self) -> Iterator[Case]:
        """Give the random expressions."""
        for line in (DATA / "expected-fuzz-1.34.jsonl").read_text().splitlines():
            yield msgspec.json.decode(line, type=Case)

    def bindings(self, case: Case) -> Bindings:
        """Give what the case was evaluated on."""
        names = ("params", "request", "namespaceObject")
        fixed = {name: self._fixtures[name] for name in names}
        return Bindings({"object": self._objects[case.object], "oldObject": self._old[case.oldObject], **fixed})

    def compared(self, case: Case, bindings: Bindings | None = None) -> str:
        """Compare: `SAME`, `REFUSED` where the server has an outcome, or the difference in words."""
        try:
            expression = _compiled(case)
        except RefusedError:
            return SAME if case.outcome == REFUSED else REFUSED
        value = expression.evaluate(bindings or self.bindings(case))
        if isinstance(value, Failure):
            return (
                SAME if case.outcome == "error" else f"{case.expr}: {case.outcome} {case.value!r}, got {value.message}"
            )
        fits = case.outcome == "value" and _equal(case, value)
        return SAME if fits else f"{case.expr}: {case.outcome} {case.value!r}, got {value!r}"


class Edges:
    """Expressions at the borders of functions, and random ones on a hostile object, recorded with Kubernetes 1.37.2."""

    def __init__(self) -> None:
        """Read both files."""
        edges = json.loads((DATA / "expected-edges-1.37.json").read_text())
        self.cases = [Edge(**case) for case in edges["cases"]]
        self._table = Bindings({"object": edges["object"]})
        head, *lines = (DATA / "expected-fuzz-1.37.jsonl").read_text().splitlines()
        fixed = json.loads(head)
        objects = {"object": fixed["object"], "params": fixed["params"]}
        self._with_old = {True: Bindings({**objects, "oldObject": fixed["oldObject"]}), False: Bindings(objects)}
        self.random = [msgspec.json.decode(line, type=Edge) for line in lines]

    def compared(self, edge: Edge) -> str:
        """Compare: `SAME`, `REFUSED` and `FAILED` where the server has a value, or what differs."""
        try:
            compiled = compile_expression(edge.expr, Scope(params=True))
        except RefusedError:
            return SAME if edge.outcome == REFUSED else REFUSED
        value = compiled.evaluate(self._table if edge.old is None else self._with_old[edge.old])
        if isinstance(value, Failure):
            return (
                SAME if edge.outcome == "error" else FAILED if edge.outcome == "value" else f"{edge}: {value.message}"
            )
        fits = edge.outcome == "value" and _as_text(value) == edge.value
        return SAME if fits else f"{edge}, got {value!r}"


def _as_text(value: object) -> object:
    """Write numbers as they were recorded."""
    match value:
        case bool() | str() | None:
            return value
        case int():
            return str(value)
        case float():
            return "+Inf" if value == float("inf") else f"{value:g}"
        case list():
            return list(map(_as_text, value))
        case dict():
            return {key: _as_text(item) for key, item in value.items()}
    return repr(value)


def _compiled(case: Case) -> Expression:
    scope = Scope(params=True)
    for variable in case.variables:
        compiled = compile_variable(variable["name"], variable["expression"], scope)
        scope = Scope(scope.params, (*scope.variables, compiled))
    return compile_expression(case.expr, scope)


def _equal(case: Case, value: object) -> bool:
    if case.type == "int":
        # Recorded as text beyond 2^53.
        return type(value) is int and value == int(case.value)
    if case.type == "double":
        return type(value) is float and value == case.value
    return type(value) is type(case.value) and value == case.value
