"""Kubernetes quantities as exact integers in units of 1e-9: what a scheduler adds up must never go through a float.

Accepts and refuses what `resource.ParseQuantity` does (k8s.io/apimachinery `pkg/api/resource/quantity.go`), oddities
included: "+", "." and "k" are zero there, "1e4294967299" is 1000. Two bounds are our own, so that no text costs more
than a microsecond or two: `MAX_LENGTH` and `MAX_DIGITS`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final, TypeAlias

QuantityValue: TypeAlias = str | int | float | None
"""What a decoded JSON or YAML document may hold where a quantity belongs."""

NANO: Final = 10**9
"""Our unit: so many of them make one core, one byte, one device."""

MAX_LENGTH: Final = 256
MAX_DIGITS: Final = 128

_MAX_INT64 = 2**63 - 1
_CAP = _MAX_INT64 * NANO
_INT32 = 2**32
_SHOWN = 64
_PLAIN = 19

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WHOLE: dict[str, int] = {suffix: 10 ** (power + 9) for suffix, power in _DECIMAL.items()}

# Possessive, so that a long hostile text is read once.
_SHAPE = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+(?:([KMGTPE]i)|([numkMGTPE]?+)|[eE]([+-]?[0-9]++))")

_DIGITLESS = {"Pi", "Ei"}
_FINEST = -9

# What Go's strings.TrimSpace takes off and JSON allows inside a string without an escape.
_BLANKS = " \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_IN_BYTES = frozenset({"memory", "storage", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"


class QuantityError(ValueError):
    """Kubernetes refuses this text as a quantity; the message is a rule without the field's path."""


class QuantityTooLargeError(QuantityError):
    """The text is longer or the number larger than anything a cluster can hold, and than we spend time on."""


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> int:
    """Read a quantity such as "1500m", "1.5Gi", "2e3".

    Finer than 1e-9 is rounded away from zero; with a binary suffix the amount is capped at 2^63-1, as in Kubernetes.

    Returns:
        The amount in units of 1e-9, negative for a negative text.

    Raises:
        QuantityTooLargeError: over 256 characters, or 1e128 and more.
        QuantityError: anything else that Kubernetes refuses.
    """
    if len(text) > MAX_LENGTH:
        raise QuantityTooLargeError(f"must be at most {MAX_LENGTH} characters, got {len(text)}")
    if len(text) < _PLAIN and text.isascii():
        if text.isdigit():
            return int(text) * NANO
        if text[:-1].isdigit() and (unit := _WHOLE.get(text[-1])):
            return int(text[:-1]) * unit
        if text[:-2].isdigit() and (bits := _BINARY.get(text[-2:])):
            return min((int(text[:-2]) << bits) * NANO, _CAP)
    match = _SHAPE.fullmatch(text)
    if not match or not text:
        raise _refusal(text)
    sign, whole, fraction, binary, decimal, exponent = match.groups()
    digits = whole + (fraction or "")
    if binary:
        amount = _binary_amount(digits, len(fraction or ""), binary)
    else:
        power = _DECIMAL[decimal] if exponent is None else _int32(exponent)
        amount = _decimal_amount(digits, power, len(fraction or ""))
    if amount is None:
        raise _refusal(text)
    return -amount if sign == "-" else amount


def read_quantity(value: QuantityValue) -> int:
    """Read a decoded JSON value where a quantity belongs, as the API server does: a text, a number, or null for zero.

    Raises:
        QuantityError: as `parse_quantity`.
    """
    if value is None:
        return 0
    return parse_quantity(value.strip(_BLANKS) if isinstance(value, str) else repr(value))


def format_quantity(nano: int, resource: str = "") -> str:
    """Write an amount in Kubernetes' canonical form, so that `parse_quantity` gives back the same amount.

    Memory, storage and huge pages get the largest exact binary suffix from 1024 on ("1536Mi"), everything else the
    largest exact decimal one ("8", "300m", "8k"). Where Kubernetes' own text would lose the amount (above "E", or
    binary above 2^63-1) the number gets longer instead.

    Args:
        nano: the amount in units of 1e-9.
        resource: the name of the resource it counts, which decides the family of suffixes.
    """
    if nano % NANO == 0 and 1024 * NANO <= abs(nano) <= _CAP and counts_bytes(resource):
        return _with_suffix(nano // NANO, 1024, ("", *_BINARY))
    return _with_suffix(nano, 1000, tuple(_DECIMAL))


def counts_bytes(resource: str) -> bool:
    """Tell whether people write amounts of this resource with binary suffixes."""
    return resource in _IN_BYTES or resource.startswith(_HUGE_PAGES)


def equal_quantities(left: QuantityValue, right: QuantityValue) -> bool:
    """Tell whether two values are the same amount ("1000m" and 1); what is no quantity equals only itself."""
    try:
        return read_quantity(left) == read_quantity(right)
    except QuantityError:
        return left == right


def _refusal(text: str) -> QuantityError:
    rest = "" if len(text) <= _SHOWN else "..."
    # Escaped, because a hostile text may hold line breaks or digits that only look like ours.
    return QuantityError(f"must be a quantity, got {json.dumps(text[:_SHOWN])}{rest}")


def _int32(exponent: str) -> int | None:
    """The exponent as Kubernetes keeps it: read as 64 bits, then cut to 32 without a check."""
    power = int(exponent)
    return (power + _INT32 // 2) % _INT32 - _INT32 // 2 if -_MAX_INT64 - 1 <= power <= _MAX_INT64 else None


def _decimal_amount(digits: str, power: int | None, places: int) -> int | None:
    if power is None or (not digits and power < _FINEST):
        return None
    mantissa = int(digits or "0")
    shift = power - places + 9
    if mantissa == 0:
        return 0
    if len(digits.lstrip("0")) + shift > MAX_DIGITS + 9:
        raise QuantityTooLargeError(f"must be below 1e{MAX_DIGITS}, got more")
    if shift >= 0:
        return mantissa * int(10**shift)
    # Below one unit whatever the digits are: no need to build the divisor.
    return 1 if -shift >= len(digits) else _ceiling(mantissa, 10**-shift)


def _binary_amount(digits: str, places: int, suffix: str) -> int | None:
    if not digits:
        return None if suffix in _DIGITLESS else 0
    amount = _ceiling((int(digits) << _BINARY[suffix]) * NANO, 10**places)
    return min(amount, _CAP)


def _ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _with_suffix(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    if number == 0:
        return "0"
    last = len(suffixes) - 1
    place = 0
    while place < last and number % base == 0:
        number //= base
        place += 1
    return f"{number}{suffixes[place]}"
