"""The RBAC rules of the writer of certificates: objects by name, and nothing to list, watch or create."""

from collections.abc import Iterable
from typing import Final

import msgspec

from reconciler.certificate_objects import MUTATING, SECRETS, VALIDATING, Names

VERBS: Final = ("get", "patch")


class NamedRight(msgspec.Struct, frozen=True):
    """One RBAC rule for objects of certain names."""

    api_group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...]


def secret_rights(leaf: str = Names().leaf, authority: str = Names().authorities) -> list[NamedRight]:
    """List the rights on Secrets, for a Role in their namespace."""
    return [NamedRight(SECRETS.api_group, (SECRETS.plural,), VERBS, (authority, leaf))]


def configuration_rights(mutating: str = Names().mutating, validating: str = Names().validating) -> list[NamedRight]:
    """List the rights on webhook configurations, for a ClusterRole."""
    return [
        NamedRight(kind.api_group, (kind.plural,), VERBS, (name,))
        for kind, name in ((MUTATING, mutating), (VALIDATING, validating))
    ]


def named_rules(rights: Iterable[NamedRight]) -> list[dict[str, object]]:
    """Render rights as `rules` of a Role or ClusterRole."""
    return [
        {
            "apiGroups": [right.api_group],
            "resources": list(right.resources),
            "resourceNames": list(right.resource_names),
            "verbs": list(right.verbs),
        }
        for right in rights
    ]
