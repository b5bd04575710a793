"""The chart renders what kustomize renders, for values that turn on nothing, much, and the rest."""

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from schedulers.registry import all_providers, usual_schedulers
from tests.manifests.built import objects_of, tool
from tests.manifests.choices import ABSENT, Appended, Choice, Clash, merged
from tests.manifests.documents import Json, read
from tests.manifests.rendered import IN_BASE, MANIFESTS
from tests.manifests.templates import Writer

CHART = MANIFESTS / "chart"


class Same(NamedTuple):
    """Values of the chart, and the overlay that is the same."""

    values: Json
    root: str
    components: tuple[str, ...]
    more: Json


EVERY_SCHEDULER = {"schedulers": usual_schedulers(all_providers())}

SAME = {
    "as it comes": Same({}, "base", (), {}),
    "every scheduler, guarded and watched": Same(
        {
            "configuration": EVERY_SCHEDULER,
            "highAvailability": True,
            "failClosed": True,
            "networkPolicy": True,
            "monitoring": True,
            "clientCertificates": True,
        },
        "install",
        ("ha", "fail-closed", "monitoring", "network-policy", "mtls"),
        {},
    ),
    "every scheduler, strict, with cert-manager and an image of one's own": Same(
        {
            "configuration": EVERY_SCHEDULER,
            "policiesDeny": True,
            "policyReports": True,
            "certManager": True,
            "image": {"repository": "registry.example/lockstep", "tag": "1.2.3"},
        },
        "install",
        ("policies-deny", "policy-reports", "cert-manager"),
        {"images": [{"name": "lockstep", "newName": "registry.example/lockstep", "newTag": "1.2.3"}]},
    ),
}


def helm(*arguments: str) -> str:
    """Run helm and give what it prints."""
    done = subprocess.run([str(tool("helm", "helm")), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize("same", SAME.values(), ids=SAME)
def test_it_renders_what_kustomize_renders(same: Same, tmp_path: Path) -> None:
    """Object by object."""
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"createNamespace": True, **same.values}))
    rendered = helm("template", "lockstep", str(CHART), "--namespace", "lockstep-system", "--values", str(values))
    wanted = indexed(objects_of(*same.components, root=same.root, **same.more))
    found = indexed(read(rendered))
    assert found.keys() == wanted.keys()
    for identity, each in wanted.items():
        assert found[identity] == each, identity


def indexed(objects: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Index objects by kind, namespace and name; none may be there twice."""
    found = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found


def test_it_is_well_formed() -> None:
    """`helm lint --strict` has nothing to say."""
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_it_follows_the_release_to_its_namespace() -> None:
    """Nothing is left of the manifests' own: accounts, names of certificates, what the webhooks leave out."""
    everything = ("certManager", "monitoring", "networkPolicy", "policyReports")
    options = [text for name in everything for text in ("--set", f"{name}=true")]
    rendered = helm("template", "lockstep", str(CHART), "--namespace", "elsewhere", *options)
    assert "lockstep-system" not in rendered
    assert "lockstep-webhook.elsewhere.svc" in rendered


def test_a_value_that_nothing_reads_is_refused() -> None:
    """A misspelt option would leave the door open without a word."""
    command = [str(tool("helm", "helm")), "template", "lockstep", str(CHART), "--set", "failclosed=true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "failclosed" in done.stderr


@pytest.mark.parametrize("provider", [name for name in all_providers() if name not in IN_BASE])
def test_a_scheduler_in_the_configuration_gets_its_rights(provider: str) -> None:
    """It, and no other."""
    options = ("--set", f"configuration.schedulers.{all_providers()[provider].scheduler_names[0]}={provider}")
    rendered = read(helm("template", "lockstep", str(CHART), *options))
    roles = {each["metadata"]["name"] for each in rendered if each["kind"] == "ClusterRole"}
    others = {f"lockstep-reconciler-{name}" for name in all_providers()}
    wanted = {name for name in (provider, *IN_BASE) if all_providers()[name].rights}
    assert roles & others == {f"lockstep-reconciler-{name}" for name in wanted}


MERGES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "equal trees stay": ({"a": 1}, {"x": {"a": 1}}, {"a": 1}),
    "a changed value is a choice": ({"a": 1}, {"x": {"a": 2}}, {"a": Choice({"x": 2}, 1)}),
    "a new key is a choice with nothing": ({}, {"x": {"a": 2}}, {"a": Choice({"x": 2}, ABSENT)}),
    "a lost key is a choice with nothing": ({"a": 1}, {"x": {}}, {"a": Choice({"x": ABSENT}, 1)}),
    "items at the end are an option's own": (
        [1],
        {"x": [1, 2], "y": [1, 3]},
        [1, Appended("x", [2]), Appended("y", [3])],
    ),
    "options that change different places meet": (
        {"a": 1, "b": 1},
        {"x": {"a": 2, "b": 1}, "y": {"a": 1, "b": 3}},
        {"a": Choice({"x": 2}, 1), "b": Choice({"y": 3}, 1)},
    ),
}


@pytest.mark.parametrize(("base", "versions", "wanted"), MERGES.values(), ids=MERGES)
def test_versions_of_a_tree_are_merged(base: Any, versions: dict[str, Any], wanted: Any) -> None:
    """Into one, with choices where they differ."""
    assert merged(base, versions) == wanted


def test_options_that_want_one_place_are_told() -> None:
    """The chart could not say what both together mean."""
    with pytest.raises(Clash, match=r"^\.a: must be changed by one option, got x, y$"):
        merged({"a": 1}, {"x": {"a": 2}, "y": {"a": 3}})


def test_braces_of_a_value_are_kept_from_helm() -> None:
    """Alerts and dashboards have templates of their own."""
    written = Writer({}).document({"a": "{{ $labels.kind }}", "b": "x\n{{y}}\n"})
    assert "{{ `{{` }} $labels.kind {{ `}}` }}" in written
    assert "  {{ `{{` }}y{{ `}}` }}\n" in written
