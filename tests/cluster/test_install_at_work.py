"""The installation at work with its own accounts: the deadlock is gone, and every right is used and none is missing."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from manifests.shipped import NAMESPACE
from tests.cluster.client import ApiError
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.install import MANIFESTS, MUTATING, POLICY, RECONCILER, VALIDATING, Installation, account_name
from tests.cluster.install_rights import EXEMPT, VERBS, Exempt, granted, refused, used
from tests.cluster.resources import (
    MUTATING_WEBHOOKS,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    VOLCANO_GROUPS,
    Json,
    Resource,
)
from tests.cluster.scenarios import COSCHEDULING, NATIVE, Scheduler
from tests.manifests.final_check import WAY_OUT
from tests.manifests.monitoring import expressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import PlaneFactory

OPERATORS = Path(__file__).parent / "crds" / "operators.yaml"
SERVICE_MONITORS = Resource("monitoring.coreos.com/v1", "servicemonitors", "ServiceMonitor")
MUTATING_ENTRY, VALIDATING_ENTRY = "pods.lockstep.dev", "pods.policy.lockstep.dev"
VOLCANO = Scheduler("volcano", "volcano", VOLCANO_GROUPS, ("minMember",))


def _pod(name: str, spec: Json | None = None, **metadata: Json) -> Json:
    container = {"name": "server", "image": "registry.example/server:1"}
    return PODS.make(name, metadata=metadata, spec={"containers": [container], **(spec or {})})


_LABELS = {
    "leaderworkerset.sigs.k8s.io/name": "vllm",
    "leaderworkerset.sigs.k8s.io/worker-index": "0",
    "leaderworkerset.sigs.k8s.io/template-revision-hash": "1",
}
_SIZE = {"leaderworkerset.sigs.k8s.io/size": "1"}
PLAIN_POD = _pod("plain")
LWS_POD = _pod("vllm-0", labels=_LABELS, annotations=_SIZE)
ADMITTED = {
    "plain": PLAIN_POD,
    "another scheduler": _pod("vllm-0", {"schedulerName": "another"}, labels=_LABELS, annotations=_SIZE),
    "opted out": _pod("vllm-0", labels={**_LABELS, "lockstep.dev/gang": "off"}, annotations=_SIZE),
}

NODES = ["n1", "n2", "n3", "n4"]


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane with both schedulers and four one-pod nodes."""
    plane = start_plane(Options(coscheduling=True, volcano=True))
    plane.register_kinds(OPERATORS)
    plane.nodes.add(NODES)
    return plane


@pytest.fixture(scope="module")
def installation(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The installation of all schedulers, from the manifests alone, with what is scraped."""
    folder = tmp_path_factory.mktemp("installation")
    with Installation(plane, folder, components=["monitoring"]) as running:
        yield running


@pytest.mark.parametrize("scheduler", [NATIVE, COSCHEDULING], ids=["native", "coscheduling"])
def test_exactly_the_replicas_that_fit_are_placed_whole(
    plane: ControlPlane, installation: Installation, scheduler: Scheduler
) -> None:
    """Ten by two on four nodes, with the accounts' own tokens: two whole, none in part; two more nodes, one more."""
    name = f"deadlock-{scheduler.provider}"
    plane.lws.create(name, 10, 2, scheduler=scheduler.name)
    plane.wait("two replicas whole", lambda: len(plane.lws.whole(name, 2)) == 2)
    plane.holds("two whole and none in part", lambda: bound(plane, name) == 4 and not plane.lws.in_part(name, 2))
    plane.nodes.add(["n5", "n6"])
    plane.wait("a third replica whole", lambda: len(plane.lws.whole(name, 2)) == 3)
    plane.holds("three whole and none in part", lambda: bound(plane, name) == 6 and not plane.lws.in_part(name, 2))
    plane.lws.delete(name)
    plane.wait("all pods gone", lambda: not plane.lws.pods(name), 60)
    plane.wait("all groups gone", lambda: not plane.api.items(scheduler.groups, "default"), 60)
    for node in ("n5", "n6"):
        plane.nodes.delete(node)
    assert installation.processes["reconciler"].alive


def test_applied_again_it_empties_nothing(plane: ControlPlane, installation: Installation) -> None:
    """Certificates and bundles that were filled in are as they were."""
    before = filled(plane)
    assert all(before)
    installation.apply()
    assert filled(plane) == before


def filled(plane: ControlPlane) -> list[object]:
    """Give what the reconciler fills in: two Secrets and two bundles."""
    secrets = [plane.api.get(SECRETS, name, NAMESPACE).get("data") for name in ("lockstep-tls", "lockstep-ca")]
    hooks = [plane.api.get(MUTATING_WEBHOOKS, MUTATING), plane.api.get(VALIDATING_WEBHOOKS, VALIDATING)]
    return [*secrets, *(hook["webhooks"][0]["clientConfig"].get("caBundle") for hook in hooks)]


def test_a_group_follows_its_late_workers(plane: ControlPlane, installation: Installation) -> None:
    """The minimum is raised by the account's own right to patch."""
    plane.lws.create("late", 1, 2, startupPolicy="LeaderReady")
    plane.wait("the minimum is the size", lambda: [NATIVE.minimum_of(each) for each in groups(plane, NATIVE)] == [2])
    plane.lws.delete("late")
    plane.wait("all pods gone", lambda: not plane.lws.pods("late"), 60)
    assert installation.processes["reconciler"].alive


def test_a_group_that_was_edited_is_mended(plane: ControlPlane, installation: Installation) -> None:
    """For schedulers whose kinds alone are served, too."""
    for number, scheduler in enumerate((COSCHEDULING, VOLCANO)):
        name = f"edited-{number}"
        plane.lws.create(name, 1, 2, scheduler=scheduler.name)
        group = plane.wait("the group is there", lambda s=scheduler: groups(plane, s))[0]["metadata"]["name"]  # type: ignore[misc]
        plane.api.merge(scheduler.groups, group, scheduler.patch_of(1))
        plane.wait("the edit is mended", lambda s=scheduler: s.minimum_of(groups(plane, s)[0]) == 2)  # type: ignore[misc]
        plane.lws.delete(name)
        plane.wait("all pods gone", lambda name=name: not plane.lws.pods(name), 60)  # type: ignore[misc]
    assert installation.processes["reconciler"].alive


def groups(plane: ControlPlane, scheduler: Scheduler) -> list[Json]:
    """List a scheduler's groups."""
    return plane.api.items(scheduler.groups, "default")


def test_with_both_servers_down_pods_are_created(plane: ControlPlane, installation: Installation) -> None:
    """Pods of no LWS as if nothing were there; those of an LWS too, and they get their group from the reconciler."""
    with installation.away("webhook", "policy"):
        before = plane.webhooks.calls(MUTATING_ENTRY), plane.webhooks.calls(VALIDATING_ENTRY)
        plane.api.create(PODS, PLAIN_POD, query="dryRun=All")
        assert (plane.webhooks.calls(MUTATING_ENTRY), plane.webhooks.calls(VALIDATING_ENTRY)) == before
        plane.lws.create("missed", 1, 2, scheduler=COSCHEDULING.name)
        plane.wait("its pods are there", lambda: len(plane.lws.pods("missed")) == 2)
        # The reconciler, whose container runs on, adds what can be added to a pod that exists.
        plane.wait("its pods are members", lambda: all(map(marked, plane.lws.pods("missed"))), 60)
    plane.wait("it is whole", lambda: plane.lws.whole("missed", 2) == [0], 60)
    plane.lws.delete("missed")
    plane.wait("all pods gone", lambda: not plane.lws.pods("missed"), 60)


def test_with_both_servers_hanging_a_pod_waits_no_longer_than_the_time_outs(
    plane: ControlPlane, installation: Installation
) -> None:
    """Two seconds for the webhook and three for the policy service; a plain pod waits for neither."""
    servers = [installation.processes[name] for name in ("webhook", "policy")]
    try:
        for server in servers:
            server.send(signal.SIGSTOP)
        began = time.monotonic()
        plane.api.create(PODS, PLAIN_POD, query="dryRun=All")
        plain = time.monotonic() - began
        admitted = plane.api.create(PODS, LWS_POD, query="dryRun=All")
        waited = time.monotonic() - began - plain
    finally:
        for server in servers:
            server.send(signal.SIGCONT)
    assert not marked(admitted)
    assert plain < 2
    # What the API server itself takes on a busy machine comes on top.
    assert 5 <= waited < 5 + 4


def test_fail_closed_refuses_pods_without_a_group_and_says_how_to_get_out(
    plane: ControlPlane, installation: Installation
) -> None:
    """And refuses nothing else; with the label that the message names, the pod is admitted."""
    installation.apply("fail-closed")
    with installation.away("webhook", "policy"):
        message = plane.wait("an LWS pod is refused", lambda: refusal(plane, LWS_POD))
        assert message.endswith(
            f"metadata.labels[lockstep.dev/group]: must be set by the webhook lockstep-mutating, got nothing; {WAY_OUT}"
        )
        for label in ("plain", "another scheduler", "opted out"):
            assert not refusal(plane, ADMITTED[label]), label
    plane.wait("with the webhook back it is admitted", lambda: not refusal(plane, LWS_POD))
    installation.apply()


def test_rules_that_refuse_refuse_nothing_of_ours(plane: ControlPlane, installation: Installation) -> None:
    """With every rule in force, of the API server and of the policy service, replicas start whole as before."""
    installation.apply("policies-deny")
    for number, scheduler in enumerate((NATIVE, COSCHEDULING)):
        name = f"strict-{number}"
        plane.lws.create(name, 1, 2, scheduler=scheduler.name)
        plane.wait("it is whole", lambda name=name: plane.lws.whole(name, 2) == [0], 60)  # type: ignore[misc]
        plane.lws.delete(name)
        plane.wait("all pods gone", lambda name=name: not plane.lws.pods(name), 60)  # type: ignore[misc]
    plane.wait("a forged member is refused", lambda: "members-owned-by-their-replica" in refusal(plane, LWS_POD))
    installation.apply()


def test_every_metric_of_alerts_and_panels_is_scraped(plane: ControlPlane, installation: Installation) -> None:
    """As the ServiceMonitors say: over TLS, verified by the published authority for the Service's name."""
    monitors = plane.api.items(SERVICE_MONITORS, NAMESPACE)
    text = "".join(map(installation.scraped, monitors))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    there = kinds.keys() | {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    named = {name for expression in expressions() for name in re.findall(r"lockstep_[a-z_]+", expression)}
    assert len(named) > 15
    assert named - there == set()


def refusal(plane: ControlPlane, pod: Json) -> str:
    """Give the message that a pod is refused with, empty when it is admitted."""
    try:
        plane.api.create(PODS, pod, query="dryRun=All")
    except ApiError as error:
        return error.message
    return ""


def marked(pod: Json) -> bool:
    """Is it a member of a group of ours?"""
    return "lockstep.dev/group" in pod["metadata"]["labels"]


def bound(plane: ControlPlane, name: str) -> int:
    """Count the bound pods of an LWS."""
    return sum(placement.bound for placement in plane.lws.replicas(name).values())


def test_every_right_is_used_and_none_is_missing(plane: ControlPlane, installation: Installation) -> None:
    """By the audit log of all tests above: nothing that RBAC refused, nothing granted that nobody needs."""
    installation.stop()
    unused = set()
    for account in (RECONCILER, POLICY):
        events = plane.audit.events(user=account_name(account), verbs=VERBS, dry_runs=True)
        assert refused(events) == []
        unused |= granted(account) - used(account, events)
    assert {use for use in unused if not any(each.covers(use) for each in EXEMPT)} == set()


@pytest.mark.parametrize("exempt", EXEMPT, ids=lambda each: f"{each.group} {' '.join(each.resources)} {each.verbs[0]}")
def test_an_exception_is_about_a_right_and_names_a_test(exempt: Exempt) -> None:
    """A right that was taken away leaves no exception behind, and each reason leads to a file."""
    rights = granted(RECONCILER) | granted(POLICY)
    assert any(exempt.covers(use) for use in rights)
    files = re.findall(r"tests/\S+\.py", exempt.reason)
    assert files
    assert all((MANIFESTS.parent / file).is_file() for file in files)
