"""Reads a Dockerfile: its stages and their instructions, as far as ours uses the language."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        base: what it starts from.
        name: its name, empty for the last one.
        steps: pairs of instruction and text, variables as they stand.
    """

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """Texts of one instruction, in order."""
        return [text for word, text in self.steps if word == instruction]

    def one(self, instruction: str) -> str:
        """The text of an instruction that stands there once."""
        (text,) = self.all(instruction)
        return text

    def settings(self, instruction: str = "ENV") -> dict[str, str]:
        """Pairs that an instruction sets."""
        pairs = (text.partition("=") for text in self.all(instruction))
        return {name: value for name, _, value in pairs}

    def words(self, instruction: str) -> list[str]:
        """The words of an instruction in its JSON form."""
        words: list[str] = json.loads(self.one(instruction))
        return words


@dataclass(frozen=True)
class Dockerfile:
    """A whole file: arguments before the first stage with their defaults, and stages."""

    arguments: dict[str, str]
    stages: list[Stage]


def read(path: Path) -> Dockerfile:
    """Read a file.

    Raises:
        ValueError: an instruction stands where it means nothing.
    """
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in _lines(path.read_text()):
        word, _, text = line.partition(" ")
        if word == "FROM":
            base, _, name = text.partition(" AS ")
            stages.append(Stage(expanded(base, arguments), name))
        elif stages:
            stages[-1].steps.append((word, text))
        elif word == "ARG":
            name, _, value = text.partition("=")
            arguments[name] = value
        else:
            raise ValueError(f'{path.name}: must begin with ARG or FROM, got "{word}"')
    return Dockerfile(arguments, stages)


def expanded(text: str, values: dict[str, str]) -> str:
    """Put values in for `${NAME}`."""
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def _lines(text: str) -> list[str]:
    whole = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line.strip() for line in whole.replace("\\\n", " ").splitlines() if line.strip()]
