"""RBAC rendered from what the processes and the providers say that they need."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from policies.reports.policy_reports import RIGHTS as REPORT_RIGHTS
from policies.rights import READS as POLICY_READS
from policies.rights import service_rights
from reconciler.certificate_rights import configuration_rights, named_rules, secret_rights
from reconciler.rights import policy_rules, reconciler_rights
from schedulers.contract import Provider, Right
from schedulers.registry import all_providers

Json = dict[str, Any]

RECONCILER: Final = "lockstep-reconciler"
POLICY: Final = "lockstep-policy"
CERTIFICATES: Final = "lockstep-certs"
LEASES: Final = "coordination.k8s.io"
BUILT_IN: Final = "scheduling.k8s.io"
"""The API server's own group: PriorityClasses are in it beside kube-scheduler's groups."""

_API: Final = "rbac.authorization.k8s.io"

RENDERED: Final = "Rendered from the code by `make render`."


def base_rights() -> list[Json]:
    """Give roles and bindings of both accounts without those that a scheduler brings."""
    own = reconciler_rights(())
    everywhere = [right for right in own if right.api_group != LEASES]
    lease = [right for right in own if right.api_group == LEASES]
    return [
        *cluster_role(RECONCILER, RECONCILER, policy_rules(everywhere)),
        *cluster_role(POLICY, POLICY, policy_rules(_common_looks())),
        *role(RECONCILER, RECONCILER, _lease_rules(lease)),
        *role(CERTIFICATES, RECONCILER, named_rules(secret_rights())),
        *cluster_role(CERTIFICATES, RECONCILER, named_rules(configuration_rights())),
    ]


def provider_rights(provider: Provider) -> list[Json]:
    """Give roles and bindings that one scheduler needs, for the reconciler and for the policy service."""
    looks = _own_looks(provider)
    return [
        *(
            cluster_role(f"{RECONCILER}-{provider.name}", RECONCILER, policy_rules(provider.rights))
            if provider.rights
            else ()
        ),
        *(cluster_role(f"{POLICY}-{provider.name}", POLICY, policy_rules(looks)) if looks else ()),
    ]


def report_rights() -> list[Json]:
    """Give what keeping PolicyReports needs: the reports, and what the audit looks at beside the reconciler's own."""
    seen = {(right.api_group, each) for right in reconciler_rights(()) for each in right.resources}
    looks = [
        Right(right.api_group, (each,), ("list",))
        for right in POLICY_READS
        for each in right.resources
        if (right.api_group, each) not in seen
    ]
    return cluster_role(f"{RECONCILER}-reports", RECONCILER, policy_rules([*REPORT_RIGHTS, *looks]))


def cluster_role(name: str, account: str, rules: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Give a ClusterRole and its binding to one of our accounts."""
    return _role("ClusterRole", name, account, rules)


def role(name: str, account: str, rules: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Give a Role in our namespace and its binding to one of our accounts."""
    return _role("Role", name, account, rules)


def _role(kind: str, name: str, account: str, rules: Sequence[Mapping[str, Any]]) -> list[Json]:
    head = {"apiVersion": f"{_API}/v1", "metadata": {"name": name}}
    return [
        {**head, "kind": kind, "rules": list(rules)},
        {
            **head,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "lockstep-system"}],
        },
    ]


def _lease_rules(rights: Iterable[Right]) -> list[Json]:
    """Name the Lease in every rule but the one to create it: RBAC knows no name at creation."""
    rules: list[Json] = []
    for right in rights:
        head: Json = {"apiGroups": [right.api_group], "resources": list(right.resources)}
        named = [verb for verb in right.verbs if verb != "create"]
        rules.append({**head, "resourceNames": [RECONCILER], "verbs": named})
        rules.append({**head, "verbs": ["create"]})
    return rules


def _common_looks() -> list[Right]:
    """Give what the policy service looks into on every cluster, whatever schedulers it has."""
    of_schedulers = {kind.api_group for provider in all_providers().values() for kind in provider.kinds} - {BUILT_IN}
    return [right for right in POLICY_READS if right.api_group not in of_schedulers]


def _own_looks(provider: Provider) -> list[Right]:
    """Give what the policy service looks into because of one scheduler."""
    groups = {kind.api_group for kind in provider.kinds}
    common = _common_looks()
    return [right for right in service_rights([provider]) if right.api_group in groups and right not in common]
