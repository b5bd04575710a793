"""Rights for users that have none: the RBAC of what is under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.resources import ACCESS_REVIEWS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.client import Client
    from tests.cluster.users import User
    from tests.cluster.waiting import Waiter

_GROUP = "rbac.authorization.k8s.io"


class Access:
    """Who may do what on one control plane."""

    def __init__(self, api: Client, waiter: Waiter, users: dict[str, User]) -> None:
        """Act through `api`."""
        self._api = api
        self._waiter = waiter
        self._users = users

    def grant(self, user: str, rules: Sequence[Json]) -> None:
        """Give a user (by its key, `reconciler`) the rules of a ClusterRole; returns when the API server honours it.

        Granting again replaces what was granted.
        """
        name = self._users[user].name
        role = f"granted-{name}"
        self._api.apply(CLUSTER_ROLES, CLUSTER_ROLES.make(role, rules=list(rules)))
        reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": _GROUP, "kind": "User", "name": name}
        binding = CLUSTER_ROLE_BINDINGS.make(role, roleRef=reference, subjects=[subject])
        self._api.apply(CLUSTER_ROLE_BINDINGS, binding)
        for rule in rules:
            if rule.get("resources"):
                self._waiter.wait(f"{name} may do what {rule} says", lambda rule=rule: self._allowed(name, rule))  # type: ignore[misc]

    def revoke(self, user: str) -> None:
        """Take back everything that was granted."""
        role = f"granted-{self._users[user].name}"
        self._api.delete(CLUSTER_ROLE_BINDINGS, role)
        self._api.delete(CLUSTER_ROLES, role)

    def _allowed(self, name: str, rule: Json) -> bool:
        resource, _, subresource = rule["resources"][0].partition("/")
        asked = {
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "verb": rule["verbs"][0],
            "name": next(iter(rule.get("resourceNames", ())), ""),
        }
        review = {"apiVersion": ACCESS_REVIEWS.version, "kind": ACCESS_REVIEWS.kind, "metadata": {}}
        answer = self._api.create(ACCESS_REVIEWS, review | {"spec": {"user": name, "resourceAttributes": asked}})
        return bool(answer["status"]["allowed"])
