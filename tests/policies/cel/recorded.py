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
            return SAME if case.outcome == "error" else f"{case.expr}: {case.outcome} {case.value!r}, got {value.message}"
        fits = case.outcome == "value" and _equal(case, value)
        return SAME if fits else f"{case.expr}: {case.outcome} {case.value!r}, got {value!r}"


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
