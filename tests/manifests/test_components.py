"""Each component does what its first lines say, and nothing else, as kustomize builds it."""

from collections.abc import Callable

import pytest

from schedulers.registry import all_providers
from tests.manifests.built import built, objects_of
from tests.manifests.chart import OPTIONS
from tests.manifests.documents import Json
from tests.manifests.monitoring import ALERTS, RUNBOOK, anchor, expressions
from tests.manifests.rendered import IN_BASE, MANIFESTS, ROOT

Identity = tuple[str, str]


def by_identity(objects: list[Json]) -> dict[Identity, Json]:
    """Index objects by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def changes(component: str) -> tuple[set[Identity], set[Identity], set[Identity]]:
    """Give what a component adds to the base, what it changes and what it takes away."""
    base, more = by_identity(objects_of()), by_identity(objects_of(component))
    changed = {identity for identity in base.keys() & more.keys() if base[identity] != more[identity]}
    return more.keys() - base.keys(), changed, base.keys() - more.keys()


def test_what_is_built_is_up_to_date() -> None:
    """`make render` would change nothing of install.yaml and the chart, and leave no template over."""
    files = dict(built())
    for path, content in files.items():
        assert path.read_text() == content, f"{path.relative_to(ROOT)}: run `make render`"
    assert {path for path in (MANIFESTS / "chart").rglob("*") if path.is_file()} <= files.keys()


def test_every_component_is_an_option_or_a_scheduler() -> None:
    """A folder that nobody names would be shipped untested."""
    folders = {path.name for path in (MANIFESTS / "components").iterdir()}
    assert folders == OPTIONS.keys() | all_providers().keys()


@pytest.mark.parametrize("provider", [name for name in all_providers() if name not in IN_BASE])
def test_a_schedulers_component_is_its_rights_and_nothing_else(provider: str) -> None:
    """Roles and bindings of its own name."""
    added, changed, gone = changes(provider)
    assert (changed, gone) == (set(), set())
    assert (("ClusterRole", f"lockstep-reconciler-{provider}") in added) == bool(all_providers()[provider].rights)
    assert {kind for kind, _ in added} <= {"ClusterRole", "ClusterRoleBinding"}
    assert all(name.endswith(f"-{provider}") for _, name in added)


WEBHOOK, POLICY = ("Deployment", "lockstep-webhook"), ("Deployment", "lockstep-policy")
CONFIGURATIONS = {
    ("MutatingWebhookConfiguration", "lockstep-mutating"),
    ("ValidatingWebhookConfiguration", "lockstep-policies"),
}
CERTIFICATES = {(kind, "lockstep-certs") for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")}
SECRETS = {("Secret", "lockstep-tls"), ("Secret", "lockstep-ca")}
FINAL_CHECK = ("ValidatingAdmissionPolicyBinding", "lockstep-final-check")

EXPECTED: dict[str, Callable[[set[Identity], set[Identity], set[Identity]], bool]] = {
    "ha": lambda added, changed, gone: (added, changed, gone) == (set(), {WEBHOOK, POLICY}, set()),
    "fail-closed": lambda added, changed, gone: (added, changed, gone) == (set(), {FINAL_CHECK}, set()),
    "policies-deny": lambda added, changed, gone: not added | gone and FINAL_CHECK not in changed,
    "policy-reports": lambda added, changed, gone: changed == {WEBHOOK} and not gone and len(added) == 2,
    "network-policy": lambda added, changed, gone: (
        not changed | gone and {kind for kind, _ in added} == {"NetworkPolicy"}
    ),
    "monitoring": lambda _, changed, gone: changed == {WEBHOOK, ("Service", "lockstep-webhook")} and not gone,
    "cert-manager": lambda _, changed, gone: changed == {WEBHOOK, *CONFIGURATIONS} and gone == CERTIFICATES | SECRETS,
}


@pytest.mark.parametrize("component", EXPECTED)
def test_a_component_touches_what_it_is_about(component: str) -> None:
    """What it adds, changes and takes away."""
    assert EXPECTED[component](*changes(component))


def test_with_cert_manager_no_right_on_certificates_is_left() -> None:
    """Neither on Secrets nor on webhook configurations."""
    rules = [
        rule for each in objects_of("cert-manager") if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]
    ]
    assert not [rule for rule in rules if "secrets" in rule["resources"]]
    assert not [rule for rule in rules if "admissionregistration.k8s.io" in rule["apiGroups"]]


def test_with_policies_deny_every_rule_refuses() -> None:
    """All bindings of our rules, and the policy service's answer."""
    objects = by_identity(objects_of("policies-deny"))
    actions = {
        name: each["spec"]["validationActions"]
        for (kind, name), each in objects.items()
        if kind == "ValidatingAdmissionPolicyBinding"
    }
    assert actions.pop("lockstep-final-check") == ["Warn", "Audit"]
    assert set(map(tuple, actions.values())) == {("Deny", "Audit")}


def test_an_alert_leads_to_its_section_of_the_runbook() -> None:
    """Every alert has one, and every section its alert."""
    lines = (ROOT / RUNBOOK).read_text().splitlines()
    headings = {line.removeprefix("## ").lower() for line in lines if line.startswith("## ")}
    assert headings == {anchor(alert) for alert in ALERTS}


def test_a_query_is_of_our_metrics() -> None:
    """Whose names are then looked for in a scrape, see tests/cluster/test_install_at_work.py."""
    assert all("lockstep_" in expression for expression in expressions())
