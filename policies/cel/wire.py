"""Reads and writes protobuf's wire format: varints, 64-bit words and byte strings, no schema.

The engine hands out its checked syntax tree in this form (`cel.expr.CheckedExpr`, cel-spec `proto/cel/expr`).
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

Writable: TypeAlias = int | bytes | str | float

Field: TypeAlias = tuple[int, int | bytes]
"""Number and value; 64-bit words come as their 8 bytes."""

_VARINT: Final = 0
_WORD: Final = 1
_BYTES: Final = 2
_MASK: Final = 2**64 - 1
_SIGN: Final = 2**63


def read_fields(data: bytes) -> Iterator[Field]:
    """Give the fields of a message in order.

    Raises:
        ValueError: for a wire type that the engine never writes.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif kind == _BYTES:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        elif kind == _WORD:
            yield number, data[at : at + 8]
            at += 8
        else:
            raise ValueError(f"wire type {kind}")


def write_fields(fields: Iterable[tuple[int, Writable]]) -> bytes:
    """Write a message; a float is a 64-bit word, an int a varint, text is UTF-8."""
    return b"".join(_written(number, value) for number, value in fields)


def signed(value: int) -> int:
    """Read a varint as int64."""
    return value - 2**64 if value >= _SIGN else value


def read_integers(value: int | bytes) -> list[int]:
    """Read a repeated integer, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers


def _written(number: int, value: Writable) -> bytes:
    match value:
        case float():
            return _spelt(number << 3 | _WORD) + struct.pack("<d", value)
        case int():
            return _spelt(number << 3 | _VARINT) + _spelt(value & _MASK)
        case str():
            return _written(number, value.encode())
    return _spelt(number << 3 | _BYTES) + _spelt(len(value)) + value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the format's continuation bit
            return value, at
        shift += 7


def _spelt(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - the format's continuation bit
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
