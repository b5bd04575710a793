"""Trees with choices in them, written as Helm templates."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from tests.manifests.choices import ABSENT, Appended, Choice

STEP: Final = "  "


class Raw(NamedTuple):
    """Template text that stands where a value would: one line after the key, or a block of lines below it."""

    line: str = ""
    block: tuple[str, ...] = ()


class Writer:
    """Writes trees as templates.

    Options are written as the conditions that stand for them; `{{` of a value is kept from Helm.
    """

    def __init__(self, conditions: Mapping[str, str]) -> None:
        """Take the condition of each option."""
        self._conditions = conditions

    def document(self, tree: Any) -> str:
        """Write one object, with a choice between objects where options add or remove it."""
        return "".join(f"{line}\n" for line in self._top(tree))

    def _top(self, tree: Any) -> Iterator[str]:
        if not isinstance(tree, Choice):
            yield "---"
            yield from self._mapping(tree, "")
            return
        for option, version in tree.versions.items():
            present, wanted = (version, "") if version is not ABSENT else (tree.otherwise, "not ")
            condition = self._conditions[option]
            yield f"{{{{- if {wanted}{f'({condition})' if wanted and ' ' in condition else condition} }}}}"
            yield "---"
            yield from self._mapping(present, "")
            yield "{{- end }}"

    def _mapping(self, tree: Mapping[str, Any], indent: str) -> Iterator[str]:
        for name, value in tree.items():
            yield from self._chosen(
                value, indent, lambda value, name=name: self._entry(f"{_scalar(name)}:", value, indent)
            )

    def _chosen(self, value: Any, indent: str, write: Any) -> Iterator[str]:
        del indent
        if not isinstance(value, Choice):
            yield from write(value)
            return
        word = "if"
        for option, version in value.versions.items():
            yield f"{{{{- {word} {self._conditions[option]} }}}}"
            if version is not ABSENT:
                yield from write(version)
            word = "else if"
        if value.otherwise is not ABSENT:
            yield "{{- else }}"
            yield from write(value.otherwise)
        yield "{{- end }}"

    def _entry(self, head: str, value: Any, indent: str) -> Iterator[str]:
        match value:
            case Raw(line, block):
                yield f"{indent}{head} {line}"
                yield from (f"{indent}{STEP}{each}" for each in block)
            case {} | [_, *_] if value:
                yield f"{indent}{head}"
                yield from self._below(value, indent)
            case str() if "\n" in value:
                yield from _block(head, value, indent)
            case _:
                yield f"{indent}{head} {_scalar(value)}"

    def _below(self, value: Any, indent: str) -> Iterator[str]:
        if isinstance(value, Mapping):
            yield from self._mapping(value, indent + STEP)
        else:
            yield from self._items(value, indent)

    def _items(self, items: list[Any], indent: str) -> Iterator[str]:
        for item in items:
            if isinstance(item, Appended):
                yield f"{{{{- if {self._conditions[item.option]} }}}}"
                yield from self._items(list(item.items), indent)
                yield "{{- end }}"
            else:
                yield from self._chosen(item, indent, lambda item: self._item(item, indent))

    def _item(self, item: Any, indent: str) -> Iterator[str]:
        if isinstance(item, Mapping) and item:
            first, *rest = self._mapping(item, indent + STEP)
            if first.startswith("{{"):
                raise ValueError(f"item: must begin with what no option changes, got {first}")
            yield f"{indent}- {first[len(indent) + len(STEP) :]}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(item)}"


def _block(head: str, text: str, indent: str) -> Iterator[str]:
    yield f"{indent}{head} |{'' if text.endswith(chr(10)) else '-'}"
    yield from (f"{indent}{STEP}{_kept(line)}" if line else "" for line in text.rstrip("\n").split("\n"))


def _scalar(value: Any) -> str:
    """Write a value as YAML writes it on one line."""
    return _kept(
        yaml.safe_dump(value, width=10**6, default_flow_style=True, allow_unicode=True)
        .removesuffix("\n...\n")
        .rstrip("\n")
    )


def _kept(text: str) -> str:
    """Keep braces of a value from Helm."""
    return text.replace("{{", "\0").replace("}}", "{{ `}}` }}").replace("\0", "{{ `{{` }}")
