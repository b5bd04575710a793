"""What a request says beside its objects: target, gates, and how its text is written."""

from collections.abc import Mapping
from typing import Final

from policies.targets import GENERIC_WORKLOAD, NEWEST, Target, parse_target

JSON_TYPES: Final = frozenset({"application/json"})
YAML_TYPES: Final = frozenset(
    {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml", "application/vnd.yaml"}
)
PARAMETERS: Final = frozenset({"target", "gates", "cluster", "timeout"})
YES: Final = frozenset({"true", "1"})
NO: Final = frozenset({"false", "0"})

_SHOWN: Final = 80


class BadRequest(ValueError):  # noqa: N818 - reads as what the request is
    """A request that can't be answered.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        """Keep both."""
        self.status = status
        super().__init__(message)


def is_json(content_type: str) -> bool:
    """Tell the content type of JSON, whatever its parameters."""
    return _media(content_type) in JSON_TYPES


def decoded(body: bytes, content_type: str, encoding: str) -> str:
    """Give a body's text.

    A JSON list is taken for a list of objects.

    Raises:
        BadRequest: it is neither JSON nor YAML by its type, is compressed, or is no UTF-8.
    """
    if _media(content_type) not in JSON_TYPES | YAML_TYPES:
        raise BadRequest(
            415, f'content-type: must be application/json or application/yaml, got "{_short(content_type)}"'
        )
    if encoding.strip().lower() not in ("", "identity"):
        raise BadRequest(415, f'content-encoding: must be absent, got "{_short(encoding)}"')
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(400, f"body: must be UTF-8, got byte {body[error.start]:#04x}") from error
    if is_json(content_type) and text.lstrip().startswith("["):
        return f'{{"apiVersion": "v1", "kind": "List", "items": {text}}}'
    return text


def asked_target(arguments: Mapping[str, str]) -> Target | None:
    """Read `target` and `gates`; nothing where neither is given.

    Raises:
        BadRequest: there are other parameters; a misspelt one must not be left out without a word.
        policies.targets.BadTarget: there is no such version or gate.
    """
    for name in arguments:
        if name not in PARAMETERS:
            raise BadRequest(400, f'query: must hold {", ".join(sorted(PARAMETERS))} only, got "{_short(name)}"')
    if "target" not in arguments and "gates" not in arguments:
        return None
    return parse_target(arguments.get("target", NEWEST), arguments.get("gates", GENERIC_WORKLOAD))


def with_cluster(arguments: Mapping[str, str]) -> bool:
    """Read `cluster`.

    Raises:
        BadRequest: it is neither true nor false.
    """
    text = arguments.get("cluster", "false")
    if text not in YES | NO:
        raise BadRequest(400, f'cluster: must be true or false, got "{_short(text)}"')
    return text in YES


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _short(text: str) -> str:
    """A peer's text as it may stand in an answer."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_SHOWN])
