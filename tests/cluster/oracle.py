"""What Kubernetes' own code makes of quantities and pods: the program in `components/oracle`, asked in one go."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """One answer: either `error`, or the amount in units of 1e-9 with its canonical texts, or a pod's requests."""

    error: str
    nano: str = ""
    decimal: str = ""
    binary: str = ""
    requests: dict[str, str] = {}


def ask(binaries: Path, questions: Sequence[dict[str, Any]]) -> list[Answer]:
    """Put all questions to one process, and give back its answers in their order."""
    done = subprocess.run(
        [binaries / "oracle"],
        input=b"\n".join(map(msgspec.json.encode, questions)),
        capture_output=True,
        check=True,
        timeout=300,
    )
    answers = [msgspec.json.decode(line, type=Answer) for line in done.stdout.splitlines()]
    if len(answers) != len(questions):
        raise AssertionError(f"{len(questions)} questions, {len(answers)} answers")
    return answers
