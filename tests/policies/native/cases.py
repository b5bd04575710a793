"""The 302 recorded cases: what API servers of 1.35 to 1.37 (and the sources of 1.38-alpha) say to an object."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from policies.targets import Target

_FILE: Final = Path(__file__).parents[2] / "data" / "native" / "validation_cases.jsonl"

WORKLOAD_136: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "Workload",
    "metadata": {"name": "workload", "namespace": "default"},
    "spec": {"podGroupTemplates": [{"name": "template", "schedulingPolicy": {"gang": {"minCount": 5}}}]},
}
"""What the cases of 1.36 take to be in place, but those that say otherwise."""


class Case(msgspec.Struct, frozen=True):
    """One case.

    Attributes:
        seen: the server that gave this answer; empty where it comes from sources.
        field: path of an error that is among those given; None where it isn't known.
        fields: paths of all errors, where known.
        existing: other objects that are there.
    """

    id: str
    k8s_version: str
    object: dict[str, Any]
    old: dict[str, Any] | None
    gates: list[str]
    allowed: bool
    field: str | None
    error_type: str | None
    layer: str
    fields: list[str] = []
    existing: list[dict[str, Any]] = []
    subresource: str = ""
    seen: str = ""
    note: str = ""

    @property
    def target(self) -> Target:
        """Version and gates."""
        return Target(self.k8s_version, frozenset(self.gates))

    @property
    def others(self) -> list[dict[str, Any]]:
        """Objects that are there."""
        return self.existing if self.layer == "admission" else [WORKLOAD_136]


def all_cases() -> list[Case]:
    """Read them."""
    return [msgspec.convert(json.loads(line), Case) for line in _FILE.read_text().splitlines()]
