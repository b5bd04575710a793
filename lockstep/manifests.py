"""Reads manifests from files: YAML or JSON, several documents a file, lists opened, each object with its line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

LARGEST: Final = 16 << 20
"""Bytes of one file."""

STANDARD_INPUT: Final = "-"


class BadManifest(Exception):  # noqa: N818 - reads as what the file is
    """A file that can't be read or is not YAML."""


class Manifest(msgspec.Struct, frozen=True):
    """One object.

    Attributes:
        file: where it stands.
        line: its first line, from 1.
        content: the object.
    """

    file: str
    line: int
    content: dict[str, Any]

    @property
    def kind(self) -> str:
        """`<apiVersion>/<kind>`."""
        return f"{self.content.get('apiVersion', '')}/{self.content.get('kind', '')}"


def read_manifests(file: str) -> list[Manifest]:
    """Read all objects of a file; `-` is standard input.

    Raises:
        BadManifest: as `<file>:<line>: must be ..., got ...`.
    """
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadManifest(f"{file}: must be a readable UTF-8 file, got {error}") from error
    if len(text) > LARGEST:
        raise BadManifest(f"{file}: must be at most {LARGEST} bytes, got {len(text)}")
    try:
        return list(_documents(file, text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or type(error).__name__
        line = 1 if mark is None else mark.line + 1
        raise BadManifest(f"{file}:{line}: must be YAML, got {problem}") from error


def _documents(file: str, text: str) -> Iterator[Manifest]:
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
        raise BadManifest(f"{file}: must hold no YAML alias")
    loader = yaml.SafeLoader(text)
    while loader.check_node():
        node = loader.get_node()
        assert node is not None  # noqa: S101 - `check_node` has found one
        content = loader.construct_document(node)
        if isinstance(content, dict):
            yield from _opened(file, node, content)
        elif content is not None:
            raise BadManifest(f"{file}:{node.start_mark.line + 1}: must be an object, got {type(content).__name__}")


def _opened(file: str, node: yaml.Node, content: dict[str, Any]) -> Iterator[Manifest]:
    """Give the object, or the members of a `v1` List."""
    if content.get("kind") != "List" or not isinstance(content.get("items"), list):
        yield Manifest(file, node.start_mark.line + 1, content)
        return
    items = next(value for key, value in node.value if key.value == "items")
    for item_node, item in zip(items.value, content["items"], strict=True):
        if not isinstance(item, dict):
            raise BadManifest(f"{file}:{item_node.start_mark.line + 1}: must be an object, got {type(item).__name__}")
        yield Manifest(file, item_node.start_mark.line + 1, item)
