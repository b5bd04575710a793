"""Checks a configuration document against its schema, and says where in the file a problem stands."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

import jsonschema
import msgspec
import yaml

from gangs.intents import RULES, SCHEDULE_TIMEOUT, parse_word
from schedulers.configuration import FIELDS_OF_WORDS, Misconfigured
from schedulers.documents import Path, Unreadable, key_line, line_of, read_document
from schedulers.registry import all_providers
from schedulers.schema import configuration_schema

DEFAULTS: Final = "defaults"
LONGEST_SHOWN: Final = 80


class Problem(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong, at a line from 1."""

    line: int
    message: str


def check_document(path: str, text: str) -> dict[str, object]:
    """Parse and check a configuration document.

    Args:
        path: the file's name, for messages.
        text: its content, YAML or JSON.

    Raises:
        Misconfigured: with every problem and its line.
    """
    try:
        document, node = read_document(text)
    except Unreadable as error:
        raise Misconfigured(f"{path}:{error.line}: document: {error.problem}") from error
    problems = sorted({*_against_schema(document, node), *_broken_words(document, node)})
    if problems:
        raise Misconfigured("\n".join(f"{path}:{problem.line}: {problem.message}" for problem in problems))
    return cast("dict[str, object]", document)


def _against_schema(document: object, node: yaml.Node | None) -> Iterator[Problem]:
    validator = jsonschema.Draft202012Validator(configuration_schema(all_providers()))
    for error in validator.iter_errors(document):
        where = tuple(str(step) for step in error.absolute_path)
        if where[:1] == (DEFAULTS,) and len(where) > 1:
            continue  # the words have their own rules, and their own sentences
        for message, key in _messages(error, where):
            yield Problem(line_of(node, where) if key is None else key_line(node, where, key), message)


def _messages(error: jsonschema.ValidationError, where: Path) -> Iterable[tuple[str, str | None]]:
    """Give each problem of an error, and the key that is the culprit where it is a key."""
    path, got = field_path(where), _shown(error.instance)
    instance = cast("Mapping[str, object]", error.instance)
    match error.validator:
        case "additionalProperties":
            schema = cast("Mapping[str, Mapping[str, object]]", error.schema)
            known = schema["properties"]
            rule = f"hold no other keys than {', '.join(sorted(known))}"
            return [(f"{path}: must {rule}, got {_shown(key)}", key) for key in instance if key not in known]
        case "required":
            missing = [key for key in cast("list[str]", error.validator_value) if key not in instance]
            return [(f"{field_path((*where, key))}: must be set, got nothing", None) for key in missing]
        case "pattern" | "maxLength":
            return [(f"{path}: must have DNS subdomains as keys, got {got}", str(error.instance))]
        case "const":
            return [(f"{path}: must be {_shown(error.validator_value)}, got {got}", None)]
        case "enum":
            choices = ", ".join(_shown(choice) for choice in cast("list[str]", error.validator_value))
            return [(f"{path}: must be one of {choices}, got {got}", None)]
    return [(f"{path}: must be a mapping, got {got}", None)]


def _broken_words(document: object, node: yaml.Node | None) -> Iterator[Problem]:
    defaults = document.get(DEFAULTS) if isinstance(document, dict) else None
    if not isinstance(defaults, dict):
        return
    for word, field in FIELDS_OF_WORDS.items():
        if field in defaults and not _keeps_rule(word, defaults[field]):
            where = (DEFAULTS, field)
            message = f"{field_path(where)}: must {RULES[word]}, got {_shown(defaults[field])}"
            yield Problem(line_of(node, where), message)


def _keeps_rule(word: str, value: object) -> bool:
    kind = int if word == SCHEDULE_TIMEOUT else str
    return type(value) is kind and parse_word(word, str(value)) is not None


def field_path(where: Path) -> str:
    """Render a path as `a.b.c`, a key that holds more than letters as `a[my.key]`, `document` for the whole."""
    text = "".join(f".{step}" if step.isalnum() else f"[{step}]" for step in where)
    return text.removeprefix(".") or "document"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."
