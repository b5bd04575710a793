"""Our mutating configuration is called before those of LWS and YuniKorn."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import MUTATING_NAME, Json
from lockstep.doctoring.seeing import Seen

NAME: Final = "order"
OTHERS: Final = ("leaderworkerset", "mpod.kb.io", "yunikorn")
"""What the entries of those two are called, or where they lead."""

WHY: Final = (
    "the API server calls configurations in the order of their names: LWS would write its own group-key first, and a "
    "replica made anew would get the name of its old group"
)


def find(seen: Seen) -> Iterator[Finding]:
    """Compare names."""
    for content in seen.mutating:
        name = content["metadata"]["name"]
        if name < MUTATING_NAME and _is_of_others(content):
            what = f'MutatingWebhookConfiguration "{MUTATING_NAME}": must sort before "{name}", got a later name'
            mend = f'install LWS or YuniKorn so that "{name}" has a name after "{MUTATING_NAME}"'
            yield Finding(NAME, ERROR, what, WHY, mend)


def _is_of_others(content: Json) -> bool:
    return any(other in _title(entry) for entry in content.get("webhooks") or () for other in OTHERS)


def _title(entry: Json) -> str:
    client = entry.get("clientConfig") or {}
    where = client.get("url") or (client.get("service") or {}).get("path", "")
    return f"{entry['name']} {where}".lower()
