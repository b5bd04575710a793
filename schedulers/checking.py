"""Checks a configuration document against its schema, and says where in the file a problem stands."""

from collections.abc import Hashable, Iterable
from typing import Final, cast

import jsonschema
import yaml

from schedulers.configuration import Misconfigured
from schedulers.registry import all_providers
from schedulers.schema import configuration_schema

LARGEST: Final = 1 << 20
"""Bytes of a configuration file."""

Path = tuple[str | int, ...]


class _NoDuplicates(yaml.SafeLoader):
    """A safe loader that takes no aliases and no key twice."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
    seen: dict[Hashable, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f'"{key}": must stand once', problem_mark=key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_NoDuplicates.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def check_document(path: str, text: str) -> dict[str, object]:
    """Parse and check a configuration document.

    Args:
        path: the file's name, for messages.
        text: its content, YAML or JSON.

    Raises:
        Misconfigured: with every problem and its line.
    """
    if len(text) > LARGEST:
        raise Misconfigured(f"{path}: must be at most {LARGEST} bytes, got {len(text)}")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise Misconfigured(f"{path}: must hold no YAML alias")
        node = yaml.compose(text, yaml.SafeLoader)
        document = yaml.load(text, _NoDuplicates)  # noqa: S506 - a SafeLoader with checks added
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Misconfigured(f"{path}:{_line_of(error)}: must be YAML, got {_problem_of(error)}") from error
    validator = jsonschema.Draft202012Validator(configuration_schema(all_providers()))
    problems = sorted((tuple(e.absolute_path), _message(e)) for e in _flat(validator.iter_errors(document)))
    if problems:
        raise Misconfigured("\n".join(f"{path}:{line_of(node, where)}: {message}" for where, message in problems))
    return dict(document)


def line_of(node: yaml.Node | None, where: Path) -> int:
    """Find the line, from 1, of the value at `where`; of the nearest parent that is there."""
    line = 1 if node is None else node.start_mark.line + 1
    for step in where:
        node = _child(node, step)
        if node is None:
            return line
        line = node.start_mark.line + 1
    return line


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    return None


def _flat(errors: Iterable[jsonschema.ValidationError]) -> Iterable[jsonschema.ValidationError]:
    """Give each unknown key and bad key its own error, at the key's own place."""
    for error in errors:
        if error.validator == "additionalProperties" and isinstance(error.instance, dict):
            schema = error.schema if isinstance(error.schema, dict) else {}
            known = schema.get("properties", {})
            for key in error.instance:
                if key not in known:
                    yield _moved(error, (*error.absolute_path, key))
        elif error.parent is None and error.validator == "propertyNames":
            yield _moved(error, (*error.absolute_path, str(error.instance)))
        else:
            yield error


def _moved(error: jsonschema.ValidationError, where: Path) -> jsonschema.ValidationError:
    return jsonschema.ValidationError(error.message, validator=error.validator, path=where, instance=error.instance)


def _message(error: jsonschema.ValidationError) -> str:
    path = field_path(tuple(error.absolute_path))
    match error.validator:
        case "additionalProperties":
            return f"{path}: must be a known key"
        case "required":
            missing = error.message.split("'")[1]
            return f"{field_path((*error.absolute_path, missing))}: must be set, got nothing"
        case "const":
            return f"{path}: must be {_shown(error.validator_value)}, got {_shown(error.instance)}"
        case "enum":
            choices = ", ".join(_shown(choice) for choice in cast("list[str]", error.validator_value))
            return f"{path}: must be one of {choices}, got {_shown(error.instance)}"
        case _:
            return f"{path}: must keep {error.validator} {_shown(error.validator_value)}, got {_shown(error.instance)}"


def field_path(where: Path) -> str:
    """Render a path as `a.b[0].c`, `document` for the whole."""
    text = ""
    for step in where:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "document"


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - a line's worth


def _line_of(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None)
    return 1 if mark is None else int(mark.line) + 1


def _problem_of(error: Exception) -> str:
    return getattr(error, "problem", None) or type(error).__name__
