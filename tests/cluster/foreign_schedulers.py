"""Koordinator and KAI beside a control plane: their command lines, and what must be there before they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.processes import free_port
from tests.cluster.resources import KAI_QUEUES, NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Client
    from tests.cluster.commands import Layout
    from tests.cluster.processes import Process

KOORDINATOR_NAMESPACE = "koordinator-system"
"""Where its plugin ElasticQuota writes."""

NEEDS_DEVICES = "DeviceShare"
"""A plugin that lets no pod with a GPU bind where nodes have no Device objects."""

TAKEN_BY_KAI = "example.com/kai-groups-them"
"""Label of pods, with any value, that KAI's podgrouper is not kept away from."""

STALE = 10
"""Seconds after which KAI evicts what is left of a group that is short of its minimum; 60 by default."""

PARENT_QUEUE, QUEUE = "default-parent-queue", "default-queue"
UNLIMITED = {key: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for key in ("cpu", "gpu", "memory")}
QUEUES = {PARENT_QUEUE: None, QUEUE: PARENT_QUEUE}
"""Name of a queue -> its parent. Pods go to leaves."""


def koordinator(layout: Layout) -> Process:
    """Koordinator's scheduler with the profile that it ships."""
    kubeconfig = str(layout.kubeconfig("koordinator"))
    shipped = yaml.safe_load((layout.binaries / "koordinator-scheduler.yaml").read_text())
    configuration = yaml.safe_load(shipped["data"]["koord-scheduler-config"])
    configuration["leaderElection"] = {"leaderElect": False}
    configuration["clientConnection"] = {"kubeconfig": kubeconfig, "qps": 200, "burst": 400}
    for profile in configuration["profiles"]:
        _leave_out(profile["plugins"], NEEDS_DEVICES)
    return layout.process(
        "koordinator",
        f"--config={layout.write('koordinator.json', configuration)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        "--port=0",
        f"--authentication-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup=true",
        f"--authorization-kubeconfig={kubeconfig}",
    )


def _leave_out(plugins: dict[str, Any], name: str) -> None:
    for point in plugins.values():
        point["enabled"] = [plugin for plugin in point["enabled"] if plugin["name"] != name]


def kai(layout: Layout) -> Iterator[Process]:
    """KAI's scheduler, its binder, and its podgrouper, which is kept away from all pods but those with a label."""
    environment = {"KUBECONFIG": str(layout.kubeconfig("kai"))}
    yield layout.process(
        "kai-scheduler",
        f"--listen-address=127.0.0.1:{free_port()}",
        # Else it listens on every interface.
        "--plugin-server-port=-1",
        "--schedule-period=300ms",
        f"--default-staleness-grace-period={STALE}s",
        "--v=1",
        environment=environment,
    )
    for name in ("kai-binder", "kai-podgrouper"):
        selector = [f"--pod-label-selector={TAKEN_BY_KAI}=yes"] if name == "kai-podgrouper" else []
        yield layout.process(
            name,
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            *selector,
            environment=environment,
        )


def prepare_koordinator(api: Client) -> None:
    """Create the namespace that it writes to."""
    api.create(NAMESPACES, NAMESPACES.make(KOORDINATOR_NAMESPACE))


def prepare_kai(api: Client) -> None:
    """Create a queue without limits, and its parent."""
    for name, parent in QUEUES.items():
        spec = {"resources": UNLIMITED, **({"parentQueue": parent} if parent else {})}
        api.create(KAI_QUEUES, KAI_QUEUES.make(name, spec=spec))
