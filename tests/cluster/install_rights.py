"""Which rights the installation gives its accounts, and which of them the audit log shows in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from manifests.shipped import install_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.cluster.resources import Json

VERBS: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_ROLES: Final = frozenset({"ClusterRole", "Role"})


class Exempt(NamedTuple):
    """Rights that the run below does not use, and why they are granted all the same.

    Attributes:
        group: API group.
        resources: of it.
        verbs: of them.
        reason: why, with the test that shows the use.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str

    def covers(self, use: Use) -> bool:
        """Tell whether it is about a right."""
        return use.group == self.group and use.resource in self.resources and use.verb in self.verbs


_ALL: Final = ("get", "list", "watch", "create", "patch", "delete")
_AFTER_CONFLICT: Final = "read when a creation meets an object of its name: tests/reconciler/test_writing.py"
_ELSEWHERE: Final = "its kinds are not served by this control plane; what it needs is held by"

EXEMPT: Final = (
    Exempt("", ("pods",), ("delete",), "only with `repair: recreate`: tests/cluster/test_outages.py"),
    Exempt(
        "resource.k8s.io",
        ("resourceclaims",),
        ("get", "create"),
        "for groups that share a ResourceClaim: tests/reconciler/test_claims.py",
    ),
    *(
        Exempt(group, ("podgroups",), ("get",), _AFTER_CONFLICT)
        for group in ("scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh")
    ),
    *(
        Exempt(group, ("podgroups", "queues"), _ALL, f"{_ELSEWHERE} tests/schedulers/cases_{name}.py")
        for group, name in (
            ("scheduling.run.ai", "kai"),
            ("scheduling.sigs.k8s.io", "koordinator"),
            ("scheduling.godel.kubewharf.io", "godel"),
        )
    ),
    Exempt("kueue.x-k8s.io", ("localqueues",), ("list",), f"{_ELSEWHERE} tests/policies/test_fixtures.py"),
    Exempt(
        "scheduling.k8s.io",
        ("workloads", "compositepodgroups"),
        _ALL,
        "for sets of several LeaderWorkerSets and for Kubernetes 1.35: tests/schedulers/cases_native.py",
    ),
    Exempt(
        "disaggregatedset.x-k8s.io",
        ("disaggregatedsets",),
        _ALL,
        f"{_ELSEWHERE} tests/schedulers/cases_native.py",
    ),
)


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
