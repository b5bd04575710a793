"""The RBAC rules of the reconciler, rendered from the providers: what it may do, and nothing else."""

from collections.abc import Iterable
from typing import Final

from schedulers.contract import Provider, Right

READ: Final = ("get", "list", "watch")

READS: Final = (
    Right("", ("pods", "nodes", "namespaces"), READ),
    Right("apps", ("statefulsets", "controllerrevisions"), READ),
    Right("leaderworkerset.x-k8s.io", ("leaderworkersets",), READ),
)

WRITES: Final = (
    Right("", ("events",), ("create",)),
    Right("", ("pods",), ("patch", "delete")),
    Right("coordination.k8s.io", ("leases",), ("get", "create", "patch")),
)


def reconciler_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights that the reconciler needs for some providers."""
    of_providers = [right for provider in providers for right in provider.rights]
    return [*READS, *WRITES, *of_providers]


def policy_rules(rights: Iterable[Right]) -> list[dict[str, object]]:
    """Render rights as `rules` of a ClusterRole."""
    return [
        {"apiGroups": [right.api_group], "resources": list(right.resources), "verbs": list(right.verbs)}
        for right in rights
    ]
