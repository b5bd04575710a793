"""Command, processes and cluster are of versions that go together."""

import re
from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.places import DEPLOYMENT, Json, place_of
from lockstep.doctoring.seeing import Seen

NAME: Final = "versions"
OLDEST: Final = 35
NEWEST: Final = 37
"""Minor versions of Kubernetes that are tested."""

VERSION_LABEL: Final = "app.kubernetes.io/version"
WHY_CLUSTER: Final = "nobody has tried Lockstep on this version of Kubernetes"
WHY_SKEW: Final = "docs/upgrade.md lists which versions work side by side; all others are untried"
WHY_MIXED: Final = "webhook and reconciler of two versions may name one replica's group in two ways"


def find(seen: Seen) -> Iterator[Finding]:
    """Compare versions."""
    minor = _minor(seen.cluster)
    if not OLDEST <= minor <= NEWEST:
        what = f'kubernetes: must be from 1.{OLDEST} to 1.{NEWEST}, got "{seen.cluster}"'
        yield Finding(NAME, WARNING, what, WHY_CLUSTER, "see docs/upgrade.md")
    for place, content in seen.live.items():
        if place.kind == DEPLOYMENT and content is not None:
            yield from _of_deployment(content, seen)


def _of_deployment(content: Json, seen: Seen) -> Iterator[Finding]:
    place, labels = place_of(content), content["metadata"].get("labels") or {}
    there = labels.get(VERSION_LABEL, "")
    if there != seen.ours:
        what = f'{place}: must be of version "{seen.ours}" as this command is, got "{there}"'
        yield Finding(
            NAME, WARNING, what, WHY_SKEW, f'use the command of version "{there}", or upgrade the installation'
        )
    images = sorted({container["image"] for container in content["spec"]["template"]["spec"]["containers"]})
    if len(images) > 1:
        what = f"{place}: must run one image, got {', '.join(images)}"
        yield Finding(NAME, ERROR, what, WHY_MIXED, f"kubectl set image {place.for_kubectl} '*={images[0]}'")


def _minor(version: str) -> int:
    match = re.match(r"v1\.(\d+)", version)
    return int(match[1]) if match else 0
