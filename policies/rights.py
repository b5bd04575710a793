"""What the policy service may do in a cluster: look, and nothing else. Pure."""

from collections.abc import Iterable
from typing import Final

from policies.snapshot import queue_kinds
from schedulers.contract import Provider, Right
from schedulers.registry import all_providers

READ: Final = ("list",)

READS: Final = (
    Right("", ("namespaces", "pods"), READ),
    Right("apps", ("statefulsets",), READ),
    Right("leaderworkerset.x-k8s.io", ("leaderworkersets",), READ),
    Right("scheduling.k8s.io", ("priorityclasses", "workloads"), READ),
    Right("kueue.x-k8s.io", ("localqueues",), READ),
    *(Right(kind.api_group, (kind.plural,), READ) for kind in queue_kinds(all_providers().values()).values()),
)
"""What rules look into beside the groups of every scheduler."""


def service_rights(providers: Iterable[Provider]) -> list[Right]:
    """List the rights that the service needs for some providers."""
    groups = dict.fromkeys((kind.api_group, kind.plural) for provider in providers for kind in provider.kinds)
    return [*READS, *(Right(api_group, (plural,), READ) for api_group, plural in groups)]


def cluster_role() -> dict[str, object]:
    """Render the ClusterRole of the service for all providers."""
    rules = [
        {"apiGroups": [right.api_group], "resources": list(right.resources), "verbs": list(right.verbs)}
        for right in service_rights(all_providers().values())
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "lockstep-policy"},
        "rules": rules,
    }
