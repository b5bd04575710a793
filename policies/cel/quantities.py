"""Kubernetes' quantity functions for the engine: a quantity crosses the border as a text that no field can hold.

The engine takes neither objects of ours nor integers beyond 64 bits, so a quantity travels as a mark and its exact
amount in units of 1e-9, decimal. Equal amounts are equal texts.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gangs.quantities import NANO, QuantityError, parse_quantity
from policies.cel.foreign import counted
from policies.cel.syntax import Type

_MARK: Final = "\x01quantity:"
_LIMIT: Final = 2**63

Plain: TypeAlias = str | int | float | bool


def _quantity(text: str) -> str:
    return f"{_MARK}{parse_quantity(text)}"


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _amount(quantity: str) -> int:
    return int(quantity.removeprefix(_MARK))


def _is_integer(quantity: str) -> bool:
    whole, rest = divmod(_amount(quantity), NANO)
    return rest == 0 and -_LIMIT <= whole < _LIMIT


def _as_integer(quantity: str) -> int:
    if not _is_integer(quantity):
        raise ValueError("cannot convert value to integer")
    return _amount(quantity) // NANO


def _as_float(quantity: str) -> float:
    return _amount(quantity) / NANO


def _compare(left: str, right: str) -> int:
    one, other = _amount(left), _amount(right)
    return (one > other) - (one < other)


def _add(left: str, right: str | int) -> str:
    return f"{_MARK}{_amount(left) + _operand(right)}"


def _subtract(left: str, right: str | int) -> str:
    return f"{_MARK}{_amount(left) - _operand(right)}"


def _operand(value: str | int) -> int:
    return value * NANO if isinstance(value, int) else _amount(value)


def _sign(quantity: str) -> int:
    amount = _amount(quantity)
    return (amount > 0) - (amount < 0)


_TEXT: Final = (Type("string"),)
_BOTH: Final = (Type("string"), Type("string"))
_NUMBER: Final = (Type("string"), Type("int"))

ARITHMETIC: Final[dict[str, tuple[tuple[tuple[Type, ...], ...], Callable[..., Plain]]]] = {
    name: (signatures, counted(implementation))
    for name, signatures, implementation in (
        ("lockstep_quantity", (_TEXT,), _quantity),
        ("lockstep_isQuantity", (_TEXT,), _is_quantity),
        ("lockstep_sign", (_TEXT,), _sign),
        ("lockstep_isInteger", (_TEXT,), _is_integer),
        ("lockstep_asInteger", (_TEXT,), _as_integer),
        ("lockstep_asApproximateFloat", (_TEXT,), _as_float),
        ("lockstep_isGreaterThan", (_BOTH,), lambda left, right: _compare(left, right) > 0),
        ("lockstep_isLessThan", (_BOTH,), lambda left, right: _compare(left, right) < 0),
        ("lockstep_compareTo", (_BOTH,), _compare),
        ("lockstep_add", (_BOTH, _NUMBER), _add),
        ("lockstep_sub", (_BOTH, _NUMBER), _subtract),
    )
}
"""By name: the types it takes and its implementation; a receiver is the first argument."""
