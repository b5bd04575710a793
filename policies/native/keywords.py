"""The words of our schemas as keywords of jsonschema; each error's message is the rule that follows "must"."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from policies.native.fields import Schema, Value
from policies.native.formats import FORMATS
from policies.native.preparing import key_of, resolved

Found = Iterator[ValidationError]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[-+]\d\d:\d\d)", re.ASCII)

_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "object": (dict, "be an object"),
    "array": (list, "be a list"),
    "string": (str, "be a string"),
    "integer": (int, "be a whole number"),
    "boolean": (bool, "be true or false"),
}

DECODED: Final[Mapping[str, tuple[Callable[[Value], bool], str]]] = {
    "int32": (lambda value: -(1 << 31) <= value < 1 << 31, "be a whole number of 32 bits"),
    "int64": (lambda value: -(1 << 63) <= value < 1 << 63, "be a whole number of 64 bits"),
    "time": (lambda value: _TIME.fullmatch(value) is not None, "be a time as 2026-01-31T12:00:00Z"),
}
"""Formats without which a value can't even be decoded."""


def _type(_: object, wanted: str, instance: Value, __: Schema) -> Found:
    kind, rule = _TYPES[wanted]
    if type(instance) is not kind:
        yield ValidationError(rule)


def _decoded_format(_: object, name: str, instance: Value, schema: Schema) -> Found:
    if name in DECODED and type(instance) is _TYPES[schema["type"]][0] and not DECODED[name][0](instance):
        yield ValidationError(DECODED[name][1])


def _format(_: object, name: str, instance: Value, __: Schema) -> Found:
    if name in FORMATS and isinstance(instance, str) and not FORMATS[name][0](instance):
        yield ValidationError(FORMATS[name][1])


def _required(validator: Value, names: list[str], instance: Value, schema: Schema) -> Found:
    if not isinstance(instance, dict):
        return
    for name in names:
        if name not in instance:
            least = resolved(schema["properties"][name], validator.schema).get("minimum")
            rule = "be set" if least is None else f"be at least {least}"
            yield ValidationError(rule, path=(name,), instance=None)


def _dependent(_: object, dependencies: dict[str, list[str]], instance: Value, __: Schema) -> Found:
    for name, needed in dependencies.items():
        for other in needed if isinstance(instance, dict) and name in instance else ():
            if other not in instance:
                yield ValidationError(f"be set where {name} is", path=(other,), instance=None)


def _union(_: object, members: list[str], instance: Value, __: Schema) -> Found:
    if isinstance(instance, dict):
        given = [member for member in members if member in instance]
        if len(given) != 1:
            yield ValidationError(f"have exactly one of {', '.join(members)}", instance=given)


def _unique(_: object, keys: list[str], instance: Value, schema: Schema) -> Found:
    if not isinstance(instance, list) or _too_many(schema, instance):
        return
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(instance):
        key = tuple(str(part) for part in key_of(item, keys))
        if key in seen:
            at_key = keys if "x-duplicate-at-key" in schema else []
            rule = f"have another {', '.join(keys)} than the items before"
            yield ValidationError(rule, path=[index, *at_key], instance=key[0])
        seen.add(key)


def _most_items(_: object, __: int, instance: Value, schema: Schema) -> Found:
    if isinstance(instance, list) and _too_many(schema, instance):
        yield ValidationError(f"have at most {schema['maxItems']} items", instance=len(instance))


def _items(validator: Value, items: Schema, instance: Value, schema: Schema) -> Found:
    if isinstance(instance, list) and not _too_many(schema, instance):
        for index, item in enumerate(instance):
            yield from validator.descend(item, items, path=index)


def _too_many(schema: Schema, instance: list[Value]) -> bool:
    return "maxItems" in schema and len(instance) > int(schema["maxItems"])


def _minimum(_: object, least: int, instance: Value, __: Schema) -> Found:
    if type(instance) is int and instance < least:
        yield ValidationError(f"be at least {least}")


def _maximum(_: object, most: int, instance: Value, __: Schema) -> Found:
    if type(instance) is int and instance > most:
        yield ValidationError(f"be at most {most}")


def _longest(_: object, most: int, instance: Value, __: Schema) -> Found:
    if isinstance(instance, str) and len(instance.encode(errors="surrogatepass")) > most:
        yield ValidationError(f"have at most {most} bytes", instance=len(instance))


def _choices(_: object, choices: list[str], instance: Value, __: Schema) -> Found:
    if isinstance(instance, str) and instance not in choices:
        yield ValidationError(f"be one of {', '.join(choices)}")


_JUDGING: Final = {
    "format": _format,
    "required": _required,
    "dependentRequired": _dependent,
    "x-needed": _required,
    "x-union": _union,
    "x-kubernetes-list-map-keys": _unique,
    "maxItems": _most_items,
    "items": _items,
    "minimum": _minimum,
    "maximum": _maximum,
    "maxLength": _longest,
    "enum": _choices,
}


def _nothing(*_: object) -> Found:
    yield from ()


_WALKING: Final = ("$ref", "properties", "additionalProperties", "items")

DecodingValidator: Final = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        **{word: _nothing for word in jsonschema.Draft202012Validator.VALIDATORS if word not in _WALKING},
        "type": _type,
        "format": _decoded_format,
    },
)
"""Looks at types and at nothing else."""

JudgingValidator: Final = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {**_JUDGING, "type": _nothing}
)
"""Looks at all else, with Kubernetes' meaning of each keyword, in an object whose types are right."""
