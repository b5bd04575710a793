"""API servers of older Kubernetes in a control plane whose other parts are of the usual version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.cluster import commands
from tests.cluster.control_plane import Options
from tests.cluster.processes import Process
from tests.cluster.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.control_plane import ControlPlane

API_SERVER = "kube-apiserver"

WORKLOADS_OF_1_35 = Resource("scheduling.k8s.io/v1alpha1", "workloads", "Workload")
WORKLOADS_OF_1_36 = Resource("scheduling.k8s.io/v1alpha2", "workloads", "Workload")
GROUPS_OF_1_36 = Resource("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup")
WORKLOADS = Resource("scheduling.k8s.io/v1beta1", "workloads", "Workload")

QUIET = Options(gates={}, runtime_config={}, scheduler=False, kwok=False)
"""The parts beside an older API server: no scheduler, and a controller manager that knows no gate of it."""


@dataclass(frozen=True)
class ApiServer:
    """One version of the API server.

    Attributes:
        binary: its file's name.
        version: of `scheduling.k8s.io` that it serves beside its usual ones.
        gates: feature gates.
    """

    binary: str
    version: str
    gates: Mapping[str, bool] = field(default_factory=lambda: {"GenericWorkload": True})


V1_35 = ApiServer("kube-apiserver-1.35", "v1alpha1")
V1_36 = ApiServer("kube-apiserver-1.36", "v1alpha2")
V1_37 = ApiServer("kube-apiserver", "v1beta1")


def replace_api_server(plane: ControlPlane, server: ApiServer) -> None:
    """Put another API server in the place of a plane's own, which must not run; its data and port stay."""
    made = commands.api_server(plane.layout, server.gates, {f"scheduling.k8s.io/{server.version}": "true"})
    command = [str(plane.layout.binaries / server.binary), *made.command[1:]]
    plane._processes[API_SERVER] = Process(API_SERVER, command, made.log)


def upgrade(plane: ControlPlane, server: ApiServer) -> None:
    """Take the API server down and start another version on the same data."""
    plane.kill(API_SERVER)
    replace_api_server(plane, server)
    plane.start(API_SERVER)
