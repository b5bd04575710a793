"""What the shipped objects promise, by themselves: read from the rendered installation as doctor and users read it."""

from importlib import metadata
from pathlib import Path

import pytest
import yaml

from lockstep.main import _make_parser
from manifests.shipped import NAMESPACE, install_objects, shipped
from policies.admission import admission_of
from policies.cel.errors import Failure
from policies.cel.expressions import Scope, compile_expression
from schedulers.configuration import default_configuration, load_configuration
from tests.manifests.documents import Json
from tests.manifests.rendered import MANIFESTS

OBJECTS = install_objects()
DEPLOYMENTS = [each for each in OBJECTS if each["kind"] == "Deployment"]
CONTAINERS = [each for one in DEPLOYMENTS for each in one["spec"]["template"]["spec"]["containers"]]
WEBHOOKS = [
    hook
    for each in OBJECTS
    if each["kind"] in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for hook in each["webhooks"]
]
ROLES = [each for each in OBJECTS if each["kind"] in ("Role", "ClusterRole")]
ODD_PODS: dict[str, Json] = {
    "nothing": {},
    "no labels": {"metadata": {"name": "p"}},
    "null maps": {"metadata": {"labels": None, "annotations": None}},
    "empty maps": {"metadata": {"labels": {}, "annotations": {}}},
    "other keys": {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}},
    "an empty opt-out": {"metadata": {"labels": {"lockstep.dev/gang": ""}}},
}


def test_every_object_says_what_it_is_of() -> None:
    """And of which version, the package's own."""
    wanted = {"app.kubernetes.io/part-of": "lockstep", "app.kubernetes.io/version": metadata.version("lockstep")}
    for each in OBJECTS:
        assert wanted.items() <= each["metadata"]["labels"].items(), each["metadata"]["name"]


def test_what_is_handed_out_is_a_copy() -> None:
    """Who changes an object changes nobody else's."""
    first = shipped("Namespace", NAMESPACE)
    assert first is not None
    first["metadata"]["name"] = "changed"
    assert shipped("Namespace", NAMESPACE) != first
    assert shipped("Namespace", "another") is None


def test_c51_no_bundle_and_no_key_is_shipped() -> None:
    """No file sets a caBundle or data of a Secret, so none can blank them; and none holds key material."""
    for path in MANIFESTS.rglob("*.yaml"):
        text = path.read_text()
        assert "caBundle:" not in text, path
        assert "PRIVATE KEY" not in text, path
        assert "BEGIN CERTIFICATE" not in text, path
    secrets = [each for each in OBJECTS if each["kind"] == "Secret"]
    assert {each["metadata"]["name"] for each in secrets} == {"lockstep-tls", "lockstep-ca"}
    assert not [each for each in secrets if each.keys() & {"data", "stringData"}]


@pytest.mark.parametrize("hook", WEBHOOKS, ids=lambda hook: str(hook["name"]))
def test_c54_an_unrelated_pod_depends_on_no_webhook_of_ours(hook: Json) -> None:
    """Only the creation of LWS pods, outside of kube-system and of our own namespace, for three seconds at most."""
    [rule] = hook["rules"]
    assert (rule["resources"], rule["operations"], rule["scope"]) == (["pods"], ["CREATE"], "Namespaced")
    [selected] = hook["objectSelector"]["matchExpressions"]
    assert selected == {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    by_name = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    assert by_name in hook["namespaceSelector"]["matchExpressions"]
    assert hook["timeoutSeconds"] <= 3
    assert hook["failurePolicy"] == "Ignore"


@pytest.mark.parametrize("hook", WEBHOOKS, ids=lambda hook: str(hook["name"]))
def test_c57_c58_a_webhook_says_how_it_wants_to_be_called(hook: Json) -> None:
    """Dry runs are welcome; what other webhooks change afterwards is looked at again; newer versions match too."""
    assert hook["sideEffects"] == "None"
    assert hook["matchPolicy"] == "Equivalent"
    assert hook["admissionReviewVersions"] == ["v1"]
    if hook["clientConfig"]["service"]["path"] == "/mutate":
        assert hook["reinvocationPolicy"] == "IfNeeded"


def test_ours_is_called_before_those_that_build_on_it() -> None:
    """The API server calls configurations in the order of their names."""
    [name] = [each["metadata"]["name"] for each in OBJECTS if each["kind"] == "MutatingWebhookConfiguration"]
    assert name < "lws-mutating-webhook-configuration"
    assert name < "yunikorn-admission-controller-cfg"


@pytest.mark.parametrize("pod", ODD_PODS.values(), ids=ODD_PODS)
def test_a_match_condition_never_errs(pod: Json) -> None:
    """An error would count as a failed call; whatever a pod lacks, each condition is true or false."""
    bindings = admission_of({"apiVersion": "v1", "kind": "Pod", **pod}).bindings
    for hook in WEBHOOKS:
        for condition in hook["matchConditions"]:
            value = compile_expression(condition["expression"], Scope(), ["bool"]).evaluate(bindings)
            assert not isinstance(value, Failure), value
            assert value is True


@pytest.mark.parametrize(
    ("key", "value"),
    [("labels", {"lockstep.dev/gang": "off"}), ("annotations", {"kubernetes.io/config.mirror": "x"})],
    ids=["opted out", "a mirror pod"],
)
def test_a_match_condition_keeps_pods_away(key: str, value: Json) -> None:
    """Those that opted out, and those that only mirror what a kubelet runs already."""
    bindings = admission_of({"apiVersion": "v1", "kind": "Pod", "metadata": {key: value}}).bindings
    for hook in WEBHOOKS:
        values = [compile_expression(c["expression"], Scope()).evaluate(bindings) for c in hook["matchConditions"]]
        assert values.count(False) == 1


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: str(each["metadata"]["name"]))
def test_c55_one_pod_is_always_left(deployment: Json) -> None:
    """Two or more, on different nodes, of which a drain takes one and a rollout none."""
    spec, pod = deployment["spec"], deployment["spec"]["template"]["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    spread = {each["topologyKey"]: each["whenUnsatisfiable"] for each in pod["topologySpreadConstraints"]}
    assert spread["kubernetes.io/hostname"] == "DoNotSchedule"
    budget = shipped("PodDisruptionBudget", deployment["metadata"]["name"])
    assert budget is not None
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["spec"]["selector"] == spec["selector"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: str(each["metadata"]["name"]))
def test_a_pod_is_killed_only_after_its_drain(deployment: Json) -> None:
    """The drain outlives the endpoints' way to every node; the longest request and the server's end fit in."""
    pod = deployment["spec"]["template"]["spec"]
    drain = next(
        int(arg.partition("=")[2]) for arg in pod["containers"][0]["args"] if arg.startswith("--drain-seconds")
    )
    assert drain >= 15
    assert pod["terminationGracePeriodSeconds"] >= drain + 10 + 5


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda each: str(each["name"]))
def test_a_container_is_given_what_its_command_takes(container: Json) -> None:
    """Every argument is an option of this version; memory is bounded; there is no secret in the environment."""
    parsed = _make_parser(container["args"]).parse_args(container["args"])
    assert parsed.run
    assert container["resources"]["limits"]["memory"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert not [each for each in container.get("env", ()) if "secretKeyRef" in each.get("valueFrom", {})]
    assert container["image"] == f"lockstep:{metadata.version('lockstep')}"


def test_the_configuration_is_the_default_one(tmp_path: Path) -> None:
    """The installation of all schedulers names them all; the final check looks after the same ones."""
    content = shipped("ConfigMap", "lockstep-config")
    assert content is not None
    file = tmp_path / "config.yaml"
    file.write_text(content["data"]["config.yaml"])
    configuration = load_configuration(str(file))
    assert configuration == default_configuration()
    check = shipped("ValidatingAdmissionPolicy", "lockstep-final-check")
    assert check is not None
    expression = check["spec"]["variables"][0]["expression"]
    assert sorted(yaml.safe_load(expression)) == sorted(configuration.schedulers)


@pytest.mark.parametrize("role", ROLES, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_a_role_gives_nothing_by_pattern(role: Json) -> None:
    """No wildcard, no right to take more rights, no list of Secrets; what is changed of others is named."""
    for rule in role["rules"]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])
        if {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"} & set(rule["resources"]):
            assert rule["resourceNames"]
            assert set(rule["verbs"]) <= {"get", "patch"}


def test_a_role_is_bound_to_our_accounts_alone() -> None:
    """To one of two, in our namespace."""
    bindings = [each for each in OBJECTS if each["kind"].endswith("RoleBinding")]
    subjects = {(one["kind"], one["name"], one["namespace"]) for each in bindings for one in each["subjects"]}
    assert subjects == {("ServiceAccount", f"lockstep-{name}", NAMESPACE) for name in ("reconciler", "policy")}


def test_the_namespace_demands_restricted_pods() -> None:
    """In all three modes, of a version that is named."""
    namespace = shipped("Namespace", NAMESPACE)
    assert namespace is not None
    labels = namespace["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"].startswith("v1.")
