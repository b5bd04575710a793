# ruff: noqa: E501 - tables of expressions
"""What is refused at load because the engines differ, and what was mended so that they do not."""

import gc
from pathlib import Path

import pytest

from policies.cel.errors import Failure, RefusedError
from policies.cel.expressions import Bindings, Expression, Scope, compile_expression, compile_variable
from policies.cel.foreign import calls
from policies.cel.values import TooDeepError, as_decoded

REFUSED = {
    "[1, 'a']": "must hold values of one type, got int and string",
    "['a', object.b]": "must hold values of one type, got string and dyn",
    "{'a': 1, 'b': 'c'}": "must hold values of one type, got int and string",
    "cel.bind(x, 1, x)": "undeclared reference to",
    "math.abs(-1)": "undeclared reference to 'math' (in container '')",
    "regex.extract('a', 'b').hasValue()": 'must call functions of Kubernetes that we evaluate as it does, got "regex.extract"',
    "b'a' == b'a'": "must not use bytes, got bytes",
    "double(object.a) == 1.0": 'must convert by "double" what both engines read alike, got a value of type dyn',
    "int(' 1 ') == 1": 'must give "int" a fitting literal, got white space',
    "duration(object.a) > duration('1s')": 'must convert by "duration" what both engines read alike, got a value of type dyn',
    "object.a.matches(object.b)": 'must give "matches" a literal pattern, got an expression',
    "object.a.findAll('x*') == []": 'must give "findAll" a pattern that never matches the empty text, got one that may',
    "'%f'.format([1.0])": 'must give "%f" a value that both engines write alike, got double',
    "'%.2f'.format([1.0])": 'must give "format" known clauses, got "%.2f"',
    "'%s'.format([1, 2])": 'must give "format" 1 values, got 2',
    "object.a.format([1])": 'must call "format" on a literal with a literal list, got another expression',
    "lists.range(object.a)": 'must call "lists.range" with a literal up to 1000, got another argument',
    "lists.range(1001)": 'must call "lists.range" with a literal up to 1000, got another argument',
    "'abc'.lastIndexOf('b', 1)": 'must call "lastIndexOf" without an offset, got one',
    "duration('1s').getMilliseconds()": 'must call "getMilliseconds" on a timestamp, got duration',
    "object.a.getHours('Europe/Berlin')": 'must call "getHours" without a time zone, got one',
    "object.a.sum()": 'must call "sum" on a list of known type, got dyn',
    "['a'] in object.b": 'must look for a key of JSON with "in", got list(string)',
    "object.a in []": "must not look for anything in an empty list, got one",
    "type(object.a)": 'must only compare the result of "type", got another use',
    "quantity('1') == object.a": "must compare quantities with quantities, got kubernetes.Quantity and dyn",
    "dyn(quantity('1'))": 'must hide only JSON types by "dyn", got kubernetes.Quantity',
    "optional.of(object.a)": "must give a JSON value, got optional_type(dyn)",
    "[object.?a]": "must hold no optional values, got optional_type(dyn)",
    "request.nope": "must be one of the fields dryRun, kind, name, namespace, operation",
    "request": 'must be used by its fields, got "request" as a value',
    "has(request.dryRun)": 'must ask for "request.dryRun" by ".?dryRun.hasValue()", got has()',
    "request.?dryRun.orValue('')": 'must be followed by "hasValue()" or "orValue()" of type bool, got another use',
    "namespaceObject.spec.nope": 'must be one of the fields finalizers, got "nope"',
    "[1].all(object, object == 1)": 'must not bind a name of the environment anew, got "object"',
    "{'a': 1}.transformMap(k, v, v)": 'must call functions of Kubernetes that we evaluate as it does, got "cel.@mapInsert"',
    "x" * 20000: "must be at most 16384 characters, got 20000",
}  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=lambda item: item[:40])
def test_a_difference_is_refused_at_load(text: str, problem: str) -> None:
    """With the rule, and without a guess at a value."""
    with pytest.raises(RefusedError) as caught:
        compile_expression(text, Scope())
    assert caught.value.problem.startswith(problem)


VALUES = {
    "[1, 2].exists(c, c == 1) && optional.of(5).optMap(u, u == 5).orValue(false)": True,
    "[1, 2].exists(c, c == 1) && has(object.a.b)": True,
    "has(object.text.b)": False,
    "object.text.?b.?c.hasValue()": False,
    "object.nothing.?b.hasValue()": False,
    "has(oldObject.a)": False,
    "object.a.?b.optMap(x, x + 1).orValue(0)": 2,
    "''.split('')": [],
    "'abc'.substring(1, 3)": "bc",
    "'abc'.substring(3)": "",
    "'%s and %s'.format([object.a, [object.list, dyn(null)]])": '{"b":1} and [[1, 2], null]',
    "quantity('0.5') == quantity('500m')": True,
    "[quantity('1'), quantity('2')].exists(q, q.compareTo(quantity('2')) == 0)": True,
    "object.text.find('(e)(x)')": "ex",
    "[3, 1, 2].min() + [1, 2].sum()": 4,
    "[1, 2, 2].isSorted()": True,
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_what_the_engine_does_otherwise_is_mended(text: str, value: object) -> None:
    """The values are the API server's."""
    bindings = Bindings({"object": {"a": {"b": 1}, "text": "text", "list": [1, 2], "nothing": None}})
    assert compile_expression(text, Scope()).evaluate(bindings) == value


ERRORS = ["has(object.nope.b)", "int(object.padded) == 7", "int(object.truth) == 1", "object.list.?a.hasValue()", "'%d'.format([object.text])",
          "string(object.list[?0].orValue('a'))", "timestamp(object.leap) == timestamp(object.leap)"]  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_what_the_engine_takes_and_the_server_does_not_is_an_error(text: str) -> None:
    """White space around numbers, booleans as numbers, leap seconds."""
    values = {"padded": " 7 ", "truth": True, "list": [1], "text": "a", "leap": "2016-12-31T23:59:60Z"}
    assert isinstance(compile_expression(text, Scope()).evaluate(Bindings({"object": values})), Failure)


def test_the_place_of_a_refusal_is_known() -> None:
    """In characters, whatever the letters and lines before."""
    with pytest.raises(RefusedError) as caught:
        compile_expression("'é' == 'é' &&\n  nope", Scope())
    assert caught.value.offset == 16


def test_variables_that_double_are_refused() -> None:
    """What an expression may build is bounded before anything is built."""
    scope = Scope(variables=(compile_variable("v0", "object.text + object.text", Scope()),))
    for number in range(1, 9):
        text = f"variables.v{number - 1} + variables.v{number - 1}"
        scope = Scope(variables=(*scope.variables, compile_variable(f"v{number}", text, scope)))
    with pytest.raises(RefusedError, match="must hold its input at most 1000 times, got up to 1024 times"):
        compile_variable("v9", "variables.v8 + variables.v8", scope)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    """By the parser in one expression, by the engine when variables are put together."""
    with pytest.raises(RefusedError):
        compile_expression(" + ".join(["1"] * 40), Scope())
    scope = Scope()
    for number in range(50):
        before = f"variables.v{number - 1}" if number else "1"
        scope = Scope(variables=(*scope.variables, compile_variable(f"v{number}", f"{before} + 0", scope)))
    with pytest.raises(RefusedError, match="must be less deeply nested"):
        compile_expression("variables.v49 == 1", scope)


def test_values_are_read_as_the_api_server_reads_them() -> None:
    """Whole numbers beyond 64 bits are floating, half characters are replaced, endless nesting is refused."""
    value = {"big": 2**64, "fine": 2**63 - 1, "half": "a\ud800", "plain": [None, True, 1.5]}
    decoded, size = as_decoded(value)
    assert decoded == {"big": float(2**64), "fine": 2**63 - 1, "half": "a\ufffd", "plain": [None, True, 1.5]}
    assert size > 50
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(TooDeepError):
        as_decoded(deep)
    assert isinstance(compile_expression("object == null", Scope()).evaluate(Bindings({"object": deep})), Failure)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _evaluated(expression: Expression, times: int) -> None:
    for _ in range(times // 100):
        bindings = Bindings({"object": {"a": "1Gi", "list": [1, 2]}})
        for _ in range(100):
            expression.evaluate(bindings)


def test_only_quantities_and_texts_of_lists_cost_memory_for_good() -> None:
    """Everything else goes with the values it was evaluated on; those calls are counted, 200 bytes each at most."""
    plain = compile_expression("object.list.map(x, x).size() == 2 && object.?a.orValue('') != ''", Scope())
    foreign = compile_expression("isQuantity(object.a)", Scope())
    assert (plain.foreign, foreign.foreign) == (False, True)
    growth = []
    for expression in (plain, foreign):
        _evaluated(expression, 5000)
        gc.collect()
        before, calls_before = _resident(), calls()
        _evaluated(expression, 20000)
        gc.collect()
        growth.append((_resident() - before) / 20000)
        assert calls() - calls_before == (20000 if expression.foreign else 0)
    assert growth[0] < 20
    assert growth[1] < 300
