"""Our verdicts and those of the real API server: the same policies, the same objects, the same words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from policies.admission import ObjectParams, ParamKind, Policy, admission_of, load_policies
from policies.exporting import STATIC, export_static
from policies.fixtures import read_fixture
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.resources import (
    CONFIG_MAPS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NATIVE_GROUPS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.cluster.verdicts import BINDINGS, Asker, Complaint, install, type_checked
from tests.policies.admission.scenarios import DATA, Scenario, scenarios

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "policies"
RULES = sorted((ROOT / "policies").glob("*.yaml"))

GANG_VERSION = "scheduling.k8s.io/v1beta1"
RECORDED_VERSION = "scheduling.k8s.io/v1alpha2"
"""What 1.37 serves, and what the scenarios were recorded with."""

REFUSED_BEFORE = "workload-templates-well-formed.lockstep.dev"
"""The API server's own validation refuses what this one is about, in other words: it is for files."""

KEPT = "lockstep.dev/kept"
"""A finalizer: an object whose owner does not exist is collected within seconds."""


@dataclass
class Case:
    """One request, and what we say about it."""

    name: str
    content: dict[str, Any]
    old: dict[str, Any] | None = None
    ours: frozenset[Complaint] = field(default_factory=frozenset)

    @property
    def space(self) -> str:
        """Its namespace."""
        return str(self.content["metadata"]["namespace"])

    @property
    def resource(self) -> Resource:
        """Where to send it."""
        found = admission_of(self.content)
        return Resource(self.content["apiVersion"], found.resource.resource, found.kind.kind, bool(found.namespace))


@pytest.fixture(scope="module")
def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that knows all kinds that its version or our tests bring, and nothing that changes objects.

    It has our policies from the start as well, from a folder, and these warn.
    """
    folder = tmp_path_factory.mktemp("plane")
    plane = ControlPlane(binaries, folder, Options(scheduler=False, kwok=False, lws=False, volcano=True))
    flag = f"--admission-control-config-file={_static_configuration(folder)}"
    plane._processes["kube-apiserver"].command.append(flag)
    with plane:
        crds = plane.layout.binaries / "crds"
        plane.register_kinds(crds / "scheduling.x-k8s.io_podgroups.yaml")
        if not plane.serves(LEADER_WORKER_SETS):
            plane.register_kinds(crds / "leaderworkerset.x-k8s.io_leaderworkersets.yaml")
        yield plane


def _static_configuration(folder: Path) -> Path:
    """Write what `lockstep policy export static` gives, and the API server's configuration that reads it."""
    manifests = folder / "static"
    manifests.mkdir()
    policies = [policy for path in RULES for policy in load_policies(path.read_text(), path.name)]
    (manifests / "policies.yaml").write_text(yaml.safe_dump_all(export_static(policies, ["Warn"])))
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyConfiguration",
        "staticManifestsDir": str(manifests),
    }
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ValidatingAdmissionPolicy", "configuration": plugin}],
    }
    path = folder / "admission.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


NOT_SERVED = (
    # Groups of Kubernetes before 1.37.
    "scheduling.k8s.io/v1alpha1",
    "scheduling.k8s.io/v1alpha2",
    # Queues that only rules across objects look at.
    "scheduling.run.ai/v2",
    "kueue.x-k8s.io/v1beta1",
)
"""Versions that this API server doesn't serve; the rules' own engine is asked about them."""


def test_the_api_server_takes_every_rule_and_agrees_on_every_fixture(plane: ControlPlane) -> None:
    """Each fixture gets the same verdicts and messages: from files, warned, and denied; no type-check warning."""
    texts = [path.read_text() for path in RULES]
    policies = [policy for path, text in zip(RULES, texts, strict=True) for policy in load_policies(text, path.name)]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    cases = [case for case in _fixture_cases(policies) if case.content["apiVersion"] not in NOT_SERVED]
    _prepare(plane, cases)
    asker = Asker(plane)
    _agree(plane, asker, cases, denied=False, static=True)

    install(plane, documents, ["Warn"])
    warnings = plane.wait("types are checked", lambda: {item.name: type_checked(plane, item.name) for item in policies})
    assert [name for name, found in warnings.items() if found] == []
    _agree(plane, asker, cases, denied=False)

    install(plane, documents, ["Deny"])
    reached = _agree(plane, asker, cases, denied=True)
    told = {name for case in cases for name, _ in case.ours if case.name in reached}
    assert told == {policy.name for policy in policies} - {REFUSED_BEFORE}


def _agree(plane: ControlPlane, asker: Asker, cases: list[Case], *, denied: bool, static: bool = False) -> set[str]:
    """Ask about all cases until the API server has taken up the policies; give the names of those that reached them."""
    reached: set[str] = set()

    def differences() -> dict[str, object]:
        reached.clear()
        found: dict[str, object] = {}
        for case in cases:
            answer = (
                asker.update(case.resource, case.content) if case.old else asker.create(case.resource, case.content)
            )
            if not answer.reached:
                continue
            reached.add(case.name)
            told = filter(None, [answer.denial]) if denied else answer.complaints
            theirs = frozenset(
                (policy.removesuffix(STATIC), _comparable(message))
                for policy, message in told
                if policy.endswith(STATIC) == static
            )
            if theirs != case.ours and not (denied and theirs and theirs <= case.ours):
                found[case.name] = {"ours": sorted(case.ours), "theirs": sorted(theirs)}
        assert not found, found
        return found

    plane.wait("the API server agrees", lambda: differences() == {}, 20)
    return reached


def _fixture_cases(policies: list[Policy]) -> Iterator[Case]:
    for path in sorted(FIXTURES.glob("*/*.yaml")):
        fixture = read_fixture(path.read_text(), f"{path.parent.name}/{path.name}")
        for index, subject in enumerate(fixture.subjects):
            name = f"{fixture.file}[{index}]"
            if subject.old is None:
                yield Case(name, dict(subject.content), None, _ours(policies, subject.content, None))
                continue
            space = f"changed-{path.stem}-{index}".replace("_", "-") + f"-{path.parent.name.replace('_', '-')}"
            content, old = _moved(subject.content, space), _moved(subject.old, space)
            yield Case(name, content, old, _ours(policies, content, old))


def _moved(content: Mapping[str, Any], space: str) -> dict[str, Any]:
    """Put an object that has to exist into a namespace of its own, and hold it there."""
    return {**content, "metadata": {**content["metadata"], "namespace": space[:63].strip("-"), "finalizers": [KEPT]}}


def _ours(policies: list[Policy], content: Mapping[str, Any], old: Mapping[str, Any] | None) -> frozenset[Complaint]:
    admission = admission_of(content, operation="UPDATE" if old else "CREATE", old=old)
    broken = [item for policy in policies for item in policy.evaluate(admission).broken]
    return frozenset((item.policy, _comparable(item.message)) for item in broken)


def _comparable(message: str) -> str:
    """Leave out the engine's words for an error, which differ."""
    return message.partition(" resulted in error")[0]


def _prepare(plane: ControlPlane, cases: list[Case]) -> None:
    """Make the namespaces, and the objects that are to be changed."""
    spaces = {case.content["metadata"].get("namespace", "default") for case in cases} - {"default"}
    for space in sorted(spaces):
        plane.api.create(NAMESPACES, NAMESPACES.make(space))
    plane.wait(
        "service accounts",
        lambda: spaces <= {item["metadata"]["namespace"] for item in plane.api.items(SERVICE_ACCOUNTS)},
    )
    for case in cases:
        if case.old and plane.serves(case.resource):
            # Policies that have just been deleted stay in force for a moment.
            stored = plane.wait(f"{case.name} is there", lambda c=case: plane.api.create(c.resource, c.old, c.space))  # type: ignore[misc]
            if case.resource.kind == "Pod":
                # The API server has put a volume in, and lets no volume change.
                case.content = {**case.content, "spec": stored["spec"]}


def test_the_api_server_agrees_on_the_scenarios(plane: ControlPlane) -> None:
    """The recorded scenarios that 1.37 can be asked about: drafted policies, with parameters, warned."""
    plane.api.request("DELETE", BINDINGS.collection(), {})
    texts = [path.read_text().replace(RECORDED_VERSION, GANG_VERSION) for path in sorted(DATA.glob("0[1-6]-*.yaml"))]
    policies = [policy for text in texts for policy in load_policies(text, "draft")]
    plane.api.create(NAMESPACES, NAMESPACES.make("gang-system"))
    plane.api.create(PRIORITY_CLASSES, PRIORITY_CLASSES.make("gpu-high", value=100000))
    asked = [_scenario_case(number, scenario, policies) for number, scenario in enumerate(scenarios())]
    _prepare(plane, [case for case, _ in asked])
    for case, param in asked:
        space = case.content["metadata"]["namespace"]
        if param and param["kind"] == NATIVE_GROUPS.kind:
            plane.api.create(NATIVE_GROUPS, param, space)
    install(plane, [document for text in texts for document in yaml.safe_load_all(text)], ["Warn"])
    reached: set[str] = set()
    for limits in _distinct(param for case, param in asked if case.name.startswith("06")):
        plane.api.apply(CONFIG_MAPS, limits)
        cases = [case for case, param in asked if param == limits]
        reached |= _agree(plane, Asker(plane), cases, denied=False)
    rest = [case for case, _ in asked if not case.name.startswith("06")]
    reached |= _agree(plane, Asker(plane), rest, denied=False)
    assert len(reached) >= 30, sorted({case.name for case, _ in asked} - reached)


def _scenario_case(number: int, scenario: Scenario, policies: list[Policy]) -> tuple[Case, dict[str, Any] | None]:
    """Make the request, in a namespace of its own, and its parameter object."""
    space = f"scenario-{number}"
    content, old = _served(scenario.object, space), _served(scenario.old_object, space)
    assert content is not None
    param = _served(scenario.params, "gang-system" if scenario.id.startswith("06") else space)
    if param and scenario.id.startswith("06"):
        param["metadata"]["name"] = "gang-limits"
    params = ObjectParams(filter(None, [param]), [ParamKind("v1", "ConfigMap"), ParamKind(GANG_VERSION, "PodGroup")])
    admission = admission_of(content, operation="UPDATE" if old else "CREATE", old=old)
    # The drafts are for one kind each, but some match the objects of others: only the scenario's own is asked about.
    complaints = [item for policy in policies for item in policy.evaluate(admission, params).broken]
    ours = frozenset((item.policy, _comparable(item.message)) for item in complaints)
    return Case(scenario.id, content, old, ours), param


def _served(content: dict[str, Any] | None, space: str) -> dict[str, Any] | None:
    """Give an object as 1.37 takes it, in another namespace."""
    if content is None:
        return None
    metadata = {key: value for key, value in content["metadata"].items() if key not in ("uid", "creationTimestamp")}
    version = content["apiVersion"].replace(RECORDED_VERSION, GANG_VERSION)
    served = {**content, "apiVersion": version, "metadata": {**metadata, "namespace": space, "finalizers": [KEPT]}}
    if content["kind"] == "Pod":
        served["spec"] = {key: value for key, value in content["spec"].items() if not key.startswith("serviceAccount")}
    return served


def _distinct(params: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for param in params:
        if param and param not in found:
            found.append(param)
    return found
