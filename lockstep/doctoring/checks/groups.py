"""Every group of ours has a leader pod that lives."""

from collections.abc import Iterator
from typing import Final

from gangs import keys
from lockstep.doctoring.findings import WARNING, Finding
from lockstep.doctoring.seeing import Seen

NAME: Final = "groups"
WHY: Final = "nobody takes it away any more: it holds a place in its scheduler's queue, and quota"


def find(seen: Seen) -> Iterator[Finding]:
    """Find groups whose leader is gone."""
    alive = {pod.metadata.uid for pod in seen.snapshot.cache.pods.objects()}
    for kind, store in seen.snapshot.cache.groups.items():
        for group in store.objects():
            meta = group.metadata
            owners = {owner.uid for owner in meta.owner_references or ()}
            if keys.LOCKSTEP_GROUP not in (meta.labels or {}) or owners & alive:
                continue
            title = f'{kind.plural}.{kind.api_group} "{meta.namespace}/{meta.name}"'
            mend = f"kubectl -n {meta.namespace} delete {kind.plural}.{kind.api_group} {meta.name}"
            yield Finding(NAME, WARNING, f"{title}: must be owned by a leader pod that lives, got none", WHY, mend)
