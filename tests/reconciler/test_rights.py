"""RBAC rules: everything that is done, and nothing else."""

from reconciler.rights import policy_rules, reconciler_rights, status_rights
from schedulers.contract import Right
from tests.reconciler.sights import COSCHEDULING, NATIVE, PROVIDERS

SHARED = ("workloads", "compositepodgroups")
"""Objects of kube-scheduler's that the groups of several replicas share, which go with the last of them."""

WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def allowed(rights: list[Right]) -> set[tuple[str, str, str]]:
    """Give API group, resource and verb of everything that is allowed."""
    return {
        (right.api_group, resource, verb) for right in rights for resource in right.resources for verb in right.verbs
    }


def test_the_reconciler_may_write_what_it_writes_and_nothing_else() -> None:
    """Groups of the providers given, claims, events, pods' metadata, its Lease; no group is deleted or replaced."""
    written = {entry for entry in allowed(reconciler_rights([NATIVE, COSCHEDULING])) if entry[2] in WRITES}
    assert written == {
        ("", "events", "create"),
        ("", "pods", "patch"),
        ("", "pods", "delete"),
        ("resource.k8s.io", "resourceclaims", "create"),
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "patch"),
        ("scheduling.k8s.io", "podgroups", "create"),
        ("scheduling.k8s.io", "podgroups", "patch"),
        *(("scheduling.k8s.io", shared, verb) for shared in SHARED for verb in ("create", "patch", "delete")),
        ("scheduling.x-k8s.io", "podgroups", "create"),
        ("scheduling.x-k8s.io", "podgroups", "patch"),
    }


def test_no_right_is_a_wildcard_or_touches_secrets() -> None:
    """Each group, resource and verb is spelt out."""
    for entry in allowed(reconciler_rights(PROVIDERS)) | allowed(status_rights(PROVIDERS)):
        assert "*" not in entry
        assert entry[1] != "secrets"


def test_status_only_looks() -> None:
    """To get and list; no watch, no write."""
    rights = allowed(status_rights(PROVIDERS))
    assert {verb for _, _, verb in rights} == {"get", "list"}
    assert ("", "events", "list") in rights
    assert {(group, resource) for group, resource, _ in rights if resource in ("podgroups", "workloads")} == {
        (kind.api_group, kind.plural) for provider in PROVIDERS for kind in provider.kinds
    }


def test_rules_are_those_of_a_cluster_role() -> None:
    """In the API's spelling."""
    assert policy_rules([Right("apps", ("statefulsets",), ("get", "list"))]) == [
        {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "list"]}
    ]
