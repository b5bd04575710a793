"""Every file below `manifests/` that is rendered from the code, with what it should hold.

What kustomize makes of them, `install.yaml` and the chart, is in `built`.
"""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import yaml

from schedulers.contract import Provider
from schedulers.registry import all_providers, usual_schedulers
from tests.manifests import final_check, rights
from tests.manifests import monitoring as alerts
from tests.manifests.documents import Json, read, written

ROOT: Final = Path(__file__).parent.parent.parent
MANIFESTS: Final = ROOT / "manifests"
POLICIES: Final = ROOT / "policies"
IN_BASE: Final = ("native",)
"""Providers whose component the base has: kube-scheduler is in every cluster."""


def rendered() -> Iterator[tuple[Path, str]]:
    """Give each rendered file."""
    providers = all_providers()
    base = [providers[name] for name in IN_BASE]
    yield MANIFESTS / "base" / "rbac.yaml", written(rights.base_rights(), rights.RENDERED)
    yield MANIFESTS / "base" / "policies.yaml", _policies()
    yield MANIFESTS / "base" / "final-check.yaml", written(final_check.final_check(base), final_check.COMMENT)
    for provider in providers.values():
        folder = MANIFESTS / "components" / provider.name
        roles = rights.provider_rights(provider)
        if roles:
            yield folder / "rbac.yaml", written(roles, rights.RENDERED)
        yield folder / "kustomization.yaml", _component(provider)
    monitoring = MANIFESTS / "components" / "monitoring"
    yield monitoring / "rules.yaml", written([alerts.prometheus_rule()], rights.RENDERED)
    yield monitoring / "dashboard.json", alerts.dashboard()
    reports = MANIFESTS / "components" / "policy-reports" / "rbac.yaml"
    yield reports, written(rights.report_rights(), rights.RENDERED)
    yield from _install(list(providers.values()))


def labels() -> list[Json]:
    """Give the labels that every object has, as kustomize adds them."""
    pairs = {"app.kubernetes.io/part-of": "lockstep", "app.kubernetes.io/version": metadata.version("lockstep")}
    return [{"pairs": pairs, "includeTemplates": True}]


def _policies() -> str:
    """Join the policies, with the defaults of their rules written out: applied again, they are what is there."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(POLICIES.glob("*.yaml"))]
    documents = [document for text in texts for document in read(text)]
    for document in documents:
        for rule in document["spec"].get("matchConstraints", {}).get("resourceRules", ()):
            rule.setdefault("scope", "*")
    return written(documents, "Joined from policies/ by `make render`.")


def _component(provider: Provider) -> str:
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "labels": labels(),
        "resources": ["rbac.yaml"] if rights.provider_rights(provider) else [],
    }
    needs = (
        "What Lockstep needs, and nothing else, for"
        if content["resources"]
        else "Lockstep needs no right of its own for"
    )
    words = f"{needs} {provider.title}. {rights.RENDERED}"
    return written([content], words)


def _install(providers: list[Provider]) -> Iterator[tuple[Path, str]]:
    folder = MANIFESTS / "install"
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../base"],
        "components": [f"../components/{each.name}" for each in providers if each.name not in IN_BASE],
        "patches": [{"path": "config.yaml"}, _checked(providers)],
    }
    yield folder / "kustomization.yaml", written([kustomization], "The base with every scheduler: install.yaml.")
    yield folder / "config.yaml", written([_configuration(providers)], rights.RENDERED)


def _configuration(providers: list[Provider]) -> Json:
    usual = usual_schedulers({provider.name: provider for provider in providers})
    content = {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Configuration",
        "schedulers": dict(sorted(usual.items())),
    }
    text = yaml.safe_dump(content, sort_keys=False)
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lockstep-config"}}
    return {**head, "data": {"config.yaml": text}}


def _checked(providers: list[Provider]) -> Json:
    """Patch the final check's list of schedulers."""
    expression = final_check.schedulers_expression(providers)
    operation = {"op": "replace", "path": "/spec/variables/0/expression", "value": expression}
    target = {"kind": "ValidatingAdmissionPolicy", "name": final_check.NAME}
    return {"target": target, "patch": yaml.safe_dump([operation], sort_keys=False)}
