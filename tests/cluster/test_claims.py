"""A ResourceClaim for each replica on the real control plane: made, allocated once, shared, gone with its leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.evidence import said
from tests.cluster.lockstep import Lockstep
from tests.cluster.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import PlaneFactory
    from tests.cluster.resources import Json

CLAIMS = Resource("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
TEMPLATES = Resource("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate")
CLASSES = Resource("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False)
SLICES = Resource("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False)
DRIVER = "fabric.example"
CHANNELS = 2
ASKS = {"annotations": {"lockstep.dev/resource-claim-template": "channel"}}


@pytest.fixture(scope="module", params=[True, False], ids=["claims of groups on", "claims of groups off"])
def plane_with_devices(
    request: pytest.FixtureRequest, start_plane: PlaneFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with two channels that every node reaches, and Lockstep."""
    plane = start_plane(Options(gates={"GenericWorkload": True, "DRAWorkloadResourceClaims": request.param}))
    plane.api.create(CLASSES, CLASSES.make(DRIVER, spec={}))
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"channel-{number}"} for number in range(CHANNELS)]
    slice_ = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": devices}
    plane.api.create(SLICES, SLICES.make("fabric", spec=slice_))
    with Lockstep(plane, tmp_path_factory.mktemp("lockstep")):
        yield plane


@pytest.fixture
def plane(plane_with_devices: ControlPlane) -> ControlPlane:
    """The same, emptied, with room for everything but channels."""
    plane_with_devices.reset()
    plane_with_devices.api.delete_all(TEMPLATES)
    plane_with_devices.nodes.add(["n1", "n2", "n3", "n4"], gpus=64, cpu="64", memory="256Gi")
    return plane_with_devices


def test_each_replica_shares_one_claim(plane: ControlPlane) -> None:
    """Two channels, three replicas: two run, each on one channel for all its pods, and the third waits whole."""
    create_template(plane)
    plane.lws.create("vllm", 3, 2, gpus=1, pod_metadata=ASKS)
    plane.wait("two replicas run", lambda: len(plane.lws.whole("vllm", 2)) == CHANNELS)
    plane.holds("the third waits", lambda: sorted(plane.lws.replicas("vllm").values()) == [(0, 2), (2, 2), (2, 2)], 3)
    pods, claims = pods_by_group(plane), {claim["metadata"]["name"]: claim for claim in plane.api.items(CLAIMS)}
    assert claims.keys() == pods.keys()
    allocated = [claim for claim in claims.values() if "allocation" in claim.get("status", {})]
    assert len({devices(claim) for claim in allocated}) == len(allocated) == CHANNELS
    for name, members in pods.items():
        assert {pod["spec"]["resourceClaims"][0]["resourceClaimName"] for pod in members} == {name}
        leader = next(pod for pod in members if "-" not in pod["metadata"]["name"].removeprefix("vllm-"))
        owner = claims[name]["metadata"]["ownerReferences"][0]
        assert (owner["uid"], owner["controller"]) == (leader["metadata"]["uid"], True)

    plane.lws.delete("vllm")
    plane.wait("no claim is left", lambda: not plane.lws.pods("vllm") and not plane.api.items(CLAIMS))


def test_the_group_holds_the_claim_where_it_can(plane: ControlPlane) -> None:
    """Where the gate is on, the claim is reserved for the PodGroup; otherwise for each pod."""
    create_template(plane)
    plane.lws.create("vllm", 1, 3, gpus=1, pod_metadata=ASKS)
    plane.wait("it runs", lambda: plane.lws.whole("vllm", 3) == [0])
    (claim,) = plane.api.items(CLAIMS)
    holders = [(one["resource"], one["name"]) for one in claim["status"]["reservedFor"]]
    if plane.options.gates["DRAWorkloadResourceClaims"]:
        assert holders == [("podgroups", claim["metadata"]["name"])]
    else:
        assert sorted(holders) == [("pods", "vllm-0"), ("pods", "vllm-0-1"), ("pods", "vllm-0-2")]


def test_a_missing_template_is_told_and_nothing_is_lost(plane: ControlPlane) -> None:
    """The replica waits whole until the template is there."""
    plane.lws.create("vllm", 1, 2, gpus=1, pod_metadata=ASKS)
    message = 'resourceclaimtemplate "channel": must exist, got none: the replica waits for its ResourceClaim'
    plane.wait("it is told", lambda: said(plane, "ClaimTemplateMissing") == [message])
    plane.wait("it waits whole", lambda: plane.lws.replicas("vllm") == {0: (0, 2)})
    create_template(plane)
    plane.wait("it runs", lambda: plane.lws.whole("vllm", 2) == [0])


def create_template(plane: ControlPlane) -> None:
    """Create the template that the replicas name."""
    request = {"name": "channel", "exactly": {"deviceClassName": DRIVER}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    plane.api.create(TEMPLATES, TEMPLATES.make("channel", "default", spec=spec))


def pods_by_group(plane: ControlPlane) -> dict[str, list[Json]]:
    """The pods by the group that their label names."""
    found: dict[str, list[Json]] = {}
    for pod in plane.lws.pods("vllm"):
        found.setdefault(pod["metadata"]["labels"]["lockstep.dev/group"], []).append(pod)
    return found


def devices(claim: Any) -> tuple[str, ...]:
    """The devices that a claim was given."""
    return tuple(result["device"] for result in claim["status"]["allocation"]["devices"]["results"])
