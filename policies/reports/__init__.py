"""Verdicts for people and for tools: one renderer a format, all pure."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from policies.findings import Verdict
from policies.registry import Rule


class Reviewed(msgspec.Struct, frozen=True):
    """What a report is about.

    Attributes:
        verdict: the findings.
        objects: how many objects were reviewed.
        rules: the rules that were asked, by id.
        version: of Lockstep.
    """

    verdict: Verdict
    objects: int
    rules: Mapping[str, Rule]
    version: str


Renderer: TypeAlias = Callable[[Reviewed], str]

FORMATS: Final = ("text", "json", "sarif", "junit")
"""Names of the modules of this package, each with a `render`."""
