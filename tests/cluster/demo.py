"""`python -m tests.cluster.demo`: the deadlock of ten replicas on four nodes, without and with Lockstep.

The control plane is real: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the LWS controller, built
from their Go modules; only the nodes are fakes, made by kwok.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.cluster import binaries, toolchain
from tests.cluster.catalogue import BASE
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.lockstep import Lockstep
from tests.cluster.pictures import picture
from tests.cluster.resources import NATIVE_GROUPS
from tests.cluster.resources import NODES as RESOURCE_NODES

NAME, REPLICAS, SIZE = "vllm", 10, 2
NODES = ["n1", "n2", "n3", "n4"]
SETTLE = 3.0


def main() -> int:
    """Run the demo; 0 when the pictures are what they should be, 1 when not, 3 when something can't be built."""
    try:
        folder = binaries.ensure(BASE)
    except toolchain.BuildError as error:
        toolchain.say(str(error))
        return 3
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as scratch:
        say("Starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, LWS, kwok ...")
        begun = time.monotonic()
        with ControlPlane(folder, Path(scratch) / "plane", Options()) as plane:
            say(f"... it is ready after {time.monotonic() - begun:.0f} s: {plane.server}")
            plane.nodes.add(NODES)
            say(f"\n{REPLICAS} replicas of {SIZE} pods, {len(NODES)} nodes that hold one pod each.\n")
            fine = without(plane) and with_lockstep(plane, Path(scratch) / "lockstep")
        say("\nThe control plane is stopped, nothing is left.")
    return 0 if fine else 1


def without(plane: ControlPlane) -> bool:
    """Show pod-by-pod placement; tells whether the deadlock is there."""
    plane.lws.create(NAME, REPLICAS, SIZE)
    plane.wait("all pods exist and four are bound", lambda: settled(plane), 60)
    time.sleep(SETTLE)
    draw("WITHOUT LOCKSTEP: kube-scheduler places pod by pod", plane)
    deadlocked = bool(plane.lws.in_part(NAME, SIZE))
    plane.lws.delete(NAME)
    plane.wait("pods are gone", lambda: not plane.lws.pods(NAME), 60)
    return deadlocked


def with_lockstep(plane: ControlPlane, folder: Path) -> bool:
    """Show whole-replica placement, and what two more nodes bring; tells whether every replica is whole or absent."""
    say("Starting Lockstep: the webhook over TLS, the reconciler with its own rights ...\n")
    with Lockstep(plane, folder):
        plane.lws.create(NAME, REPLICAS, SIZE)
        plane.wait("all pods exist and four are bound", lambda: settled(plane), 60)
        time.sleep(SETTLE)
        draw("WITH LOCKSTEP: one group for each replica", plane)
        first = plane.lws.whole(NAME, SIZE)
        plane.nodes.add(["n5", "n6"])
        plane.wait("one more replica is whole", lambda: len(plane.lws.whole(NAME, SIZE)) > len(first), 30)
        time.sleep(SETTLE)
        draw("TWO MORE NODES bring exactly one more replica", plane)
        fine = len(first) == 2 and len(plane.lws.whole(NAME, SIZE)) == 3 and not plane.lws.in_part(NAME, SIZE)
        plane.lws.delete(NAME)
        plane.wait("groups went with their leaders", lambda: not plane.api.items(NATIVE_GROUPS), 60)
        say("The LWS is deleted; all group objects went with their leaders.")
        return fine


def settled(plane: ControlPlane) -> bool:
    """Tell whether all pods exist and as many are bound as there are nodes."""
    placements = plane.lws.replicas(NAME).values()
    return sum(p.total for p in placements) == REPLICAS * SIZE and sum(p.bound for p in placements) == len(NODES)


def draw(title: str, plane: ControlPlane) -> None:
    """Print a picture of the cluster."""
    nodes = sorted(node["metadata"]["name"] for node in plane.api.items(RESOURCE_NODES))
    say("\n".join([title, "", *picture(plane.lws.pods(NAME), nodes, SIZE), ""]))


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)  # noqa: T201 - this is the demo


if __name__ == "__main__":
    sys.exit(main())
