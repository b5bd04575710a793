"""Which rights the installation gives its accounts, and which of them the audit log shows in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from manifests.shipped import install_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.cluster.resources import Json

VERBS: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_ROLES: Final = frozenset({"ClusterRole", "Role"})


class Use(NamedTuple):
    """One verb on one resource by one account."""

    account: str
    group: str
    resource: str
    verb: str


def granted(account: str) -> set[Use]:
    """Expand every rule of every role that is bound to an account."""
    objects = install_objects()
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in objects
        if each["kind"].endswith("RoleBinding") and account in {subject["name"] for subject in each["subjects"]}
    }
    roles = [each for each in objects if each["kind"] in _ROLES and (each["kind"], each["metadata"]["name"]) in bound]
    assert len(roles) == len(bound)
    return {use for role in roles for rule in role["rules"] for use in _expanded(account, rule)}


def _expanded(account: str, rule: Json) -> Iterator[Use]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield from (Use(account, group, resource, verb) for verb in rule["verbs"])


def used(account: str, events: Iterable[Json]) -> set[Use]:
    """Give what an account's requests asked for, by the audit log; discovery and health are no resources."""
    return {
        Use(account, reference.get("apiGroup", ""), _resource(reference), event["verb"])
        for event in events
        if (reference := event.get("objectRef")) and reference.get("resource")
    }


def refused(events: Iterable[Json]) -> list[Any]:
    """Give the requests that the API server's authorisation refused."""
    return [
        (event["verb"], event["requestURI"], event["annotations"].get("authorization.k8s.io/reason", ""))
        for event in events
        if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]


def _resource(reference: Json) -> str:
    below = reference.get("subresource")
    return f"{reference['resource']}/{below}" if below else str(reference["resource"])
