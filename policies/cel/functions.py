"""Kubernetes' function library by signature, and the version that brought each function.

Source: kubernetes `staging/src/k8s.io/apiserver/pkg/cel/environment/base.go` and `.../pkg/cel/library/`. The versions
are those of the library sets (`IntroducedVersion`); an API server compiles new policies at its own version minus one.
"""

from typing import Final

import msgspec

from policies.cel.syntax import Type

BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
DYN: Final = Type("dyn")
NULL: Final = Type("null_type")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
QUANTITY: Final = Type("kubernetes.Quantity")
OPTIONAL: Final = "optional_type"


class Signature(msgspec.Struct, frozen=True):
    """One overload."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool = True


def _list(kind: Type) -> Type:
    return Type("list", (kind,))


def _over(name: str, kinds: tuple[Type, ...], result: Type | None = None) -> tuple[Signature, ...]:
    return tuple(Signature(f"list_{kind}_{name}", (_list(kind),), result or kind) for kind in kinds)


_ORDERED: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING)
_PAIR: Final = (QUANTITY, QUANTITY)

DECLARED: Final[dict[str, tuple[Signature, ...]]] = {
    "find": (Signature("string_find_string", (STRING, STRING), STRING),),
    "findAll": (
        Signature("string_find_all_string", (STRING, STRING), _list(STRING)),
        Signature("string_find_all_string_int", (STRING, STRING, INT), _list(STRING)),
    ),
    "sum": _over("sum", (INT, UINT, DOUBLE, DURATION)),
    "min": _over("min", _ORDERED),
    "max": _over("max", _ORDERED),
    "isSorted": _over("is_sorted", _ORDERED, BOOL),
    "quantity": (Signature("string_to_quantity", (STRING,), QUANTITY, member=False),),
    "isQuantity": (Signature("is_quantity_string", (STRING,), BOOL, member=False),),
    "sign": (Signature("quantity_sign", (QUANTITY,), INT, member=False),),
    "isInteger": (Signature("quantity_is_integer", (QUANTITY,), BOOL),),
    "asInteger": (Signature("quantity_get_int", (QUANTITY,), INT),),
    "asApproximateFloat": (Signature("quantity_get_float", (QUANTITY,), DOUBLE),),
    "isGreaterThan": (Signature("quantity_is_greater_than", _PAIR, BOOL),),
    "isLessThan": (Signature("quantity_is_less_than", _PAIR, BOOL),),
    "compareTo": (Signature("quantity_compare_to", _PAIR, INT),),
    "add": (
        Signature("quantity_add", _PAIR, QUANTITY),
        Signature("quantity_add_int", (QUANTITY, INT), QUANTITY),
    ),
    "sub": (
        Signature("quantity_sub", _PAIR, QUANTITY),
        Signature("quantity_sub_int", (QUANTITY, INT), QUANTITY),
    ),
}
"""What the engine lacks: declared for the checker, gone before anything runs."""

QUANTITY_FUNCTIONS: Final = frozenset(
    name for name, items in DECLARED.items() if any(QUANTITY in (*item.args, item.result) for item in items)
) | {"isQuantity"}

_ALWAYS: Final = (
    "_?_:_", "_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_",
    "-_", "_[_]", "@in", "@not_strictly_false", "size", "contains", "startsWith", "endsWith", "matches",
    "int", "uint", "double", "string", "bool", "dyn", "type", "timestamp", "duration",
    "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes",
    "getSeconds", "getMilliseconds",
    "charAt", "indexOf", "lastIndexOf", "join", "lowerAscii", "upperAscii", "replace", "split", "substring", "trim",
    "find", "findAll", "sum", "min", "max", "isSorted",
)  # fmt: skip

LEVELS: Final[dict[str, int]] = {
    **dict.fromkeys(_ALWAYS, 0),
    **dict.fromkeys(("_?._", "_[?_]", "hasValue", "value", "or", "orValue"), 28),
    **dict.fromkeys(("optional.of", "optional.none", "optional.ofNonZeroValue"), 28),
    **dict.fromkeys(QUANTITY_FUNCTIONS, 28),
    **dict.fromkeys(("format", "strings.quote", "sets.contains", "sets.equivalent", "sets.intersects"), 29),
    **dict.fromkeys(("lists.range", "slice", "flatten", "sort", "distinct", "@sortByAssociatedKeys"), 34),
}
"""Every function that may be used, with the minor version that brought it; 0 is before there were policies."""

TWO_VARIABLES: Final = 32
"""The minor version that brought macros with two variables."""
