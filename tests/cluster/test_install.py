"""The shipped manifests on a real API server: taken as they stand, with pods that may do nothing on their nodes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from manifests.shipped import NAMESPACE, install_objects, shipped
from tests.cluster.client import ApiError
from tests.cluster.control_plane import Options
from tests.cluster.install import MANIFESTS
from tests.cluster.resources import PODS, Json
from tests.manifests.built import objects_of
from tests.manifests.chart import OPTIONS

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane, PlaneFactory

DEPLOYMENTS = ("lockstep-webhook", "lockstep-policy")
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """An API server with its controllers, on which nothing of ours was ever applied."""
    plane = start_plane(Options(scheduler=False, kwok=False, lws=False))
    plane.register_kinds(Path(__file__).parent / "crds" / "operators.yaml")
    return plane


def test_it_is_taken_whole_and_applied_again_changes_nothing(plane: ControlPlane) -> None:
    """The base twice, then the rendered file twice, under strict validation: no field refused, no object changed."""
    base, install = ("-k", str(MANIFESTS / "base")), ("-f", str(MANIFESTS / "install.yaml"))
    for where in (base, install):
        plane.kubectl("apply", "--validate=strict", *where)
        before = versions(plane)
        said = plane.kubectl("apply", "--validate=strict", *where).splitlines()
        # kubectl sends the selector of every budget again; the API server finds nothing to change.
        changed = {line for line in said if not line.endswith(" unchanged")}
        assert changed == {f"poddisruptionbudget.policy/{name} configured" for name in DEPLOYMENTS}
        assert versions(plane) == before
    assert len(versions(plane)) == len(install_objects())


def versions(plane: ControlPlane) -> dict[tuple[str, str], int | str]:
    """Give the generation of each object of the installation that is there, its version where it has none."""
    install = str(MANIFESTS / "install.yaml")
    text = plane.kubectl("get", "-f", install, "--ignore-not-found", "-o", "json")
    found = json.loads(text)["items"] if text else []
    return {
        (each["kind"], each["metadata"]["name"]): each["metadata"].get(
            "generation", each["metadata"]["resourceVersion"]
        )
        for each in found
    }


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_its_pods_are_restricted(plane: ControlPlane, deployment: str) -> None:
    """Pod Security of the API server itself takes the pods in our namespace, and refuses them with one more right."""
    pod = pod_of(deployment)
    dry_run(plane, pod)
    for name, container in enumerate(pod["spec"]["containers"]):
        changed = copy.deepcopy(pod)
        del changed["spec"]["containers"][name]["securityContext"]["allowPrivilegeEscalation"]
        with pytest.raises(ApiError, match=f'violates PodSecurity "restricted.*"{container["name"]}" must set'):
            dry_run(plane, changed)


def test_only_the_reconciler_and_the_policy_service_get_a_token(plane: ControlPlane) -> None:
    """As the API server's own ServiceAccount admission leaves the pods: nothing is mounted beside what is written."""
    containers = [each for name in DEPLOYMENTS for each in dry_run(plane, pod_of(name))["spec"]["containers"]]
    mounted = {each["name"]: {mount["mountPath"] for mount in each["volumeMounts"]} for each in containers}
    assert {name for name, paths in mounted.items() if TOKENS in paths} == {"reconciler", "policy"}
    assert mounted["webhook"] == {"/etc/lockstep/tls", "/etc/lockstep/config"}
    assert not [each["name"] for each in containers if each["name"] == "webhook" and each.get("env")]


@pytest.mark.parametrize("component", OPTIONS)
def test_every_component_is_taken_whole(plane: ControlPlane, component: str) -> None:
    """Under strict validation, on top of the installation of all schedulers."""
    without = install_objects()
    objects = [each for each in objects_of(component, root="install") if each not in without]
    assert objects
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    said = plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=listed)
    assert len(said.splitlines()) == len(objects)


def test_c56_what_is_deleted_leaves_nothing_in_the_way(plane: ControlPlane) -> None:
    """`kubectl delete -f` takes the webhook configurations and the rules with it, whatever becomes of the namespace."""
    plane.kubectl("delete", "-f", str(MANIFESTS / "install.yaml"), "--wait=false")
    plane.wait("nothing but the namespace is left", lambda: {kind for kind, _ in versions(plane)} <= {"Namespace"}, 60)


def pod_of(deployment: str) -> Json:
    """Make a pod of a shipped Deployment's template."""
    found = shipped("Deployment", deployment)
    assert found is not None
    template = found["spec"]["template"]
    return PODS.make(f"{deployment}-probe", NAMESPACE, metadata=template["metadata"], spec=template["spec"])


def dry_run(plane: ControlPlane, pod: Json) -> Json:
    """Let the API server admit a pod without storing it; a quota counts only once its controller has seen it."""
    path = f"{PODS.collection(NAMESPACE)}?dryRun=All"

    def admitted() -> Json:
        try:
            return plane.api.request("POST", path, pod)
        except ApiError as error:
            if "status unknown for quota" in error.message:
                raise LookupError(error.message) from error
            raise AdmissionError(error) from error

    try:
        return plane.wait("the quota is counted", admitted)
    except AdmissionError as refused:
        raise refused.error from None


class AdmissionError(Exception):
    """A refusal that waiting won't change."""

    def __init__(self, error: ApiError) -> None:
        """Keep the answer."""
        super().__init__(str(error))
        self.error = error
