"""The policy service may look, and nothing else."""

from policies.rights import cluster_role, service_rights
from schedulers.registry import all_providers
from tests.schedulers import made_up


def test_no_verb_changes_anything() -> None:
    """List, and nothing else, on named resources of named groups; no wildcard."""
    rules = cluster_role()["rules"]
    assert isinstance(rules, list)
    assert rules
    for rule in rules:
        assert rule["verbs"] == ["list"]
        assert "*" not in [*rule["apiGroups"], *rule["resources"]]
        assert "secrets" not in rule["resources"]
        assert not any("/" in resource for resource in rule["resources"])


def test_a_schedulers_groups_are_among_them() -> None:
    """Whatever providers there are."""
    provider = made_up.PROVIDER
    rights = service_rights([*all_providers().values(), provider])
    seen = {(right.api_group, resource) for right in rights for resource in right.resources}
    for each in (*all_providers().values(), provider):
        assert {(kind.api_group, kind.plural) for kind in each.kinds} <= seen


def test_everything_that_is_read_may_be_read() -> None:
    """The reader of clusters asks for nothing beside these."""
    from lockstep.collecting import KINDS  # noqa: PLC0415 - only this test needs the reader

    seen = {
        (right.api_group, resource)
        for right in service_rights(all_providers().values())
        for resource in right.resources
    }
    assert {(kind.api_group, kind.plural) for kind in KINDS.values()} <= seen
    assert ("scheduling.k8s.io", "workloads") in seen
