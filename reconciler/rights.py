"""The RBAC rules of the reconciler, rendered from the providers: what it may do, and nothing else."""

from collections.abc import Iterable
from typing import Final

from schedulers.contract import Provider, Right

LOOK: Final = ("get", "list")
READ: Final = ("list", "watch")

READS: Final = (
    Right("", ("pods", "nodes", "namespaces"), READ),
    Right("apps", ("statefulsets", "controllerrevisions"), READ),
    Right("leaderworkerset.x-k8s.io", ("leaderworkersets",), READ),
)

CLAIMS: Final = (
    Right("resource.k8s.io", ("resourceclaims",), ("get", "list", "watch", "create")),
    Right("resource.k8s.io", ("resourceclaimtemplates",), READ),
)
"""For replicas that ask for a ResourceClaim."""

WRITES: Final = (
    Right("", ("events",), ("create",)),
    Right("", ("pods",), ("patch", "delete")),
    Right("coordination.k8s.io", ("leases",), ("get", "create", "patch")),
)


def reconciler_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights that the reconciler needs for some providers."""
    of_providers = [right for provider in providers for right in provider.rights]
    return [*READS, *CLAIMS, *WRITES, *of_providers]


def status_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights that `lockstep status` needs: to get and list, and nothing else."""
    seen = [Right(right.api_group, right.resources, LOOK) for right in READS]
    groups = dict.fromkeys((kind.api_group, kind.plural) for provider in providers for kind in provider.kinds)
    of_groups = [Right(api_group, (plural,), LOOK) for api_group, plural in groups]
    return [*seen, Right("", ("events",), LOOK), *of_groups]


def moving_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights that `lockstep move` and `lockstep adopt` need beside: to change sets and delete leaders."""
    lws = Right("leaderworkerset.x-k8s.io", ("leaderworkersets",), ("patch",))
    return [*status_rights(providers), lws, Right("", ("pods",), ("delete",))]


def policy_rules(rights: Iterable[Right]) -> list[dict[str, object]]:
    """Render rights as `rules` of a ClusterRole."""
    return [
        {"apiGroups": [right.api_group], "resources": list(right.resources), "verbs": list(right.verbs)}
        for right in rights
    ]
