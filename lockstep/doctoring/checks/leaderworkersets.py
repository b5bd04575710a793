"""LeaderWorkerSet is there, of a version that is known, and leaves groups to us."""

import re
from collections.abc import Iterator
from typing import Final

import yaml

from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.places import Json
from lockstep.doctoring.seeing import Seen

NAME: Final = "leaderworkerset"
OLDEST: Final = (0, 6)
NEWEST: Final = (0, 10)
OWN_GANGS: Final = "gangSchedulingManagement"
TAG: Final = re.compile(r":v?(\d+)\.(\d+)(\.\d+)?[^:/]*$")

WHY_NONE: Final = "there is nothing to form gangs of"
WHY_VERSION: Final = "LWS changes what it writes on pods between versions; this one has not been tried"
WHY_OWN: Final = "LWS's own provider writes groups too: Lockstep withdraws from every pod that it stamps"


def find(seen: Seen) -> Iterator[Finding]:
    """Look at LWS."""
    if not seen.lws_served:
        what = "leaderworkersets.leaderworkerset.x-k8s.io: must be served, got no such kind"
        yield Finding(NAME, ERROR, what, WHY_NONE, "install LeaderWorkerSet")
    for deployment in seen.lws_deployments:
        yield from _of_version(deployment)
    for text in seen.lws_configurations:
        provider = own_provider(text)
        if provider:
            what = f'{OWN_GANGS}.schedulerProvider of LWS: must not be set beside Lockstep, got "{provider}"'
            yield Finding(NAME, WARNING, what, WHY_OWN, f"take {OWN_GANGS} out of LWS's configuration and restart it")


def own_provider(text: str) -> str:
    """Read which provider of its own LWS is told to use, empty for none."""
    try:
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return ""
    own = document.get(OWN_GANGS) if isinstance(document, dict) else None
    return str(own.get("schedulerProvider") or "") if isinstance(own, dict) else ""


def version_of(deployment: Json) -> tuple[int, int] | None:
    """Read minor version of LWS from the tag of its image, `None` where it has none."""
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].partition("@")[0]
    match = TAG.search(image)
    return None if match is None else (int(match[1]), int(match[2]))


def _of_version(deployment: Json) -> Iterator[Finding]:
    version = version_of(deployment)
    if version is not None and not OLDEST <= version <= NEWEST:
        wanted = f"from {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        what = f"LeaderWorkerSet: must be {wanted}, got {'.'.join(map(str, version))}"
        yield Finding(NAME, WARNING, what, WHY_VERSION, "see docs/upgrade.md")
