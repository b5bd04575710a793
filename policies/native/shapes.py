"""The shape of an object against its JSON Schema, told as the API server tells it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from jsonschema.exceptions import ValidationError

from policies.native.fields import Schema
from policies.native.keywords import DECODED, DecodingValidator, JudgingValidator
from policies.native.problems import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    UNREADABLE,
    Path,
    Problem,
    problem,
)

MOST_PROBLEMS: Final = 100
"""Problems after which the review of one object ends."""

_TYPES: Final[Mapping[str, str]] = {
    "type": UNREADABLE,
    "required": REQUIRED,
    "dependentRequired": REQUIRED,
    "x-needed": INVALID,
    "x-union": INVALID,
    "x-kubernetes-list-map-keys": DUPLICATE,
    "maxItems": TOO_MANY,
    "minimum": INVALID,
    "maximum": INVALID,
    "maxLength": TOO_LONG,
    "enum": NOT_SUPPORTED,
}


class Shape:
    """One kind of one version."""

    def __init__(self, schema: Schema) -> None:
        """Keep a schema, ready for use."""
        self.schema: Final = schema
        self._decoding = DecodingValidator(schema)
        self._judging = JudgingValidator(schema)

    def undecodable(self, content: object) -> list[Problem]:
        """Find wrong types and numbers that don't fit: the API server looks at nothing else then."""
        return [_problem(error, content) for error in islice(self._decoding.iter_errors(content), MOST_PROBLEMS)]

    def problems(self, content: object, written: object) -> Iterator[tuple[Path, Problem]]:
        """Find what breaks the schema, each with its path; `written` has the values as the user gave them."""
        for error in self._judging.iter_errors(content):
            yield tuple(error.absolute_path), _problem(error, written)


def value_at(content: object, path: Path) -> object:
    """Look up the value at a path; nothing where there is none."""
    for step in path:
        try:
            content = content[step]  # type: ignore[index]  # whatever is not indexed raises
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _type_of(error: ValidationError) -> str:
    if error.validator == "format":
        return UNREADABLE if error.validator_value in DECODED else INVALID
    return _TYPES[str(error.validator)]


def _problem(error: ValidationError, written: object) -> Problem:
    path: Path = tuple(error.absolute_path)
    got: Any = value_at(written, path) if error.instance is None else error.instance
    return problem(path, _type_of(error), error.message, got)
