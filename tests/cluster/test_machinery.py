"""The reconciler's machinery on a real API server."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from reconciler.api import Misconfigured, load_api
from reconciler.contract import Conflict
from reconciler.discovery import Discovery, served_versions
from reconciler.fence import Fence, FencedApi
from reconciler.leases import LeaseName
from reconciler.pacing import Backoff
from reconciler.recorder import ObjectRef, Recorder
from reconciler.store import Store
from reconciler.telemetry import Meters
from reconciler.watching import Settings, Target, Watch
from schedulers.contract import GroupKind
from tests.cluster.control_plane import VOLCANO_CRDS, ControlPlane, Options
from tests.cluster.resources import CONFIG_MAPS, EVENTS, LEASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.api import HttpApi
    from tests.cluster.control_plane import PlaneFactory

MAPS = GroupKind("", "v1", "ConfigMap", "configmaps")
LEASE = LeaseName("default", "contest")
QUICK = Settings(page=7, server_timeout=20.0, backoff=Backoff(0.3, 2.0))


class Meta(msgspec.Struct, frozen=True):
    """Identity of an object."""

    name: str
    namespace: str
    resourceVersion: str  # noqa: N815


class ConfigMap(msgspec.Struct, frozen=True):
    """What these tests read."""

    metadata: Meta


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """An API server and nothing that runs pods."""
    return start_plane(Options(scheduler=False, kwok=False, lws=False))


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[HttpApi]:
    connection = load_api(plane.kubeconfig())
    yield connection
    connection.close()


class Following:
    """A watch of all config maps."""

    def __init__(self, api: HttpApi) -> None:
        """Start it."""
        self.store: Store[ConfigMap] = Store()
        self.meters, self.hints = Meters(), list[tuple[ConfigMap | None, ConfigMap | None]]()
        decode = msgspec.json.Decoder(ConfigMap).decode
        hint = self._hint
        self.watch = Watch(api, Target(MAPS), decode, self.store, hint, settings=QUICK, meters=self.meters)
        self.watch.start()

    def _hint(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        self.hints.append((old, new))

    def equals(self, plane: ControlPlane) -> bool:
        """Compare with what the server lists now."""
        wanted = {(m["metadata"]["name"], m["metadata"]["resourceVersion"]) for m in plane.api.items(CONFIG_MAPS)}
        return wanted == {(m.metadata.name, m.metadata.resourceVersion) for m in self.store.objects()}

    def relists(self) -> float:
        """Count lists made anew."""
        return sum(
            sample.value
            for metric in self.meters.registry.collect()
            for sample in metric.samples
            if sample.name == "lockstep_watch_relists_total"
        )


@pytest.fixture
def following(api: HttpApi) -> Iterator[Following]:
    made = Following(api)
    yield made
    assert made.watch.stop()


def make_maps(plane: ControlPlane, prefix: str, count: int) -> None:
    """Create config maps."""
    for number in range(count):
        plane.api.create(CONFIG_MAPS, CONFIG_MAPS.make(f"{prefix}-{number}"))


def test_pages_and_changes(plane: ControlPlane, api: HttpApi) -> None:
    """A list in pages of seven is whole, and changes after it arrive without another list."""
    make_maps(plane, "paged", 25)
    following = Following(api)
    assert following.watch.wait_synced(10)
    assert following.equals(plane)
    plane.api.merge(CONFIG_MAPS, "paged-3", {"data": {"a": "b"}})
    plane.api.delete(CONFIG_MAPS, "paged-4")
    make_maps(plane, "later", 3)
    plane.wait("all changes", lambda: following.equals(plane), 10)
    assert following.relists() == 0
    assert following.watch.stop()


def test_api_server_away_for_five_seconds(plane: ControlPlane, following: Following) -> None:
    """After an outage the watch goes on by itself with nothing missed and no hint for what stayed the same."""
    make_maps(plane, "outage", 5)
    plane.wait("in step", lambda: following.equals(plane), 10)
    hints = len(following.hints)
    plane.kill("kube-apiserver")
    plane.wait("noticed", lambda: following.watch.problem, 10)
    plane.holds("alive", lambda: following.watch.progress_age() < 5, 5)
    plane.start("kube-apiserver")
    plane.wait("back", lambda: not following.watch.problem, 30)
    assert len(following.hints) == hints
    plane.api.delete(CONFIG_MAPS, "outage-1")
    make_maps(plane, "after", 2)
    plane.wait("in step again", lambda: following.equals(plane), 10)


def test_a_killed_holder_is_followed_within_the_term(plane: ControlPlane) -> None:
    """Of two holders one leads; killed, it is followed after its term; ended cleanly, at once."""
    first, second = contender(plane, "first"), contender(plane, "second")
    plane.wait("one leads", lambda: holder(plane) in ("first", "second"), 20)
    leading, waiting = (first, second) if holder(plane) == "first" else (second, first)
    plane.holds("it stays", lambda: holder(plane) == ("first" if leading is first else "second"), 4)
    leading.kill()
    began = time.monotonic()
    third = "second" if leading is first else "first"
    plane.wait("the other leads", lambda: holder(plane) == third, 20)
    taken = time.monotonic() - began
    assert 1.5 < taken < 5
    waiting.communicate("", timeout=20)
    assert waiting.returncode == 0
    assert holder(plane) == ""
    assert plane.api.get(LEASES, LEASE.name)["spec"]["leaseTransitions"] == 1
    leading.communicate(timeout=5)


def contender(plane: ControlPlane, identity: str) -> subprocess.Popen[str]:
    """Start a process that stands for election."""
    command = [sys.executable, "-m", "tests.cluster.contender", str(plane.kubeconfig()), LEASE.name, identity]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def holder(plane: ControlPlane) -> str | None:
    """Who leads according to the Lease."""
    lease = plane.api.find(LEASES, LEASE.name)
    return None if lease is None else lease["spec"].get("holderIdentity", "")


def test_a_version_precondition_in_a_patch_is_honoured(plane: ControlPlane, api: HttpApi) -> None:
    """A merge patch that names an old version is a conflict: what elections stand on."""
    made = plane.api.create(CONFIG_MAPS, CONFIG_MAPS.make("precious"))
    plane.api.merge(CONFIG_MAPS, "precious", {"data": {"a": "1"}})
    body = msgspec.json.encode(
        {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    )
    with pytest.raises(Conflict) as caught:
        api.request(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/precious",
            body=body,
            content_type="application/merge-patch+json",
        )
    assert caught.value.reason == "Conflict"
    assert plane.api.get(CONFIG_MAPS, "precious")["data"] == {"a": "1"}


def test_events_are_accepted_and_made_once(plane: ControlPlane, api: HttpApi) -> None:
    """A real API server takes our Events, and two recorders that say the same leave one."""
    made = plane.api.create(CONFIG_MAPS, CONFIG_MAPS.make("talked-about"))
    about = ObjectRef("v1", "ConfigMap", "default", "talked-about", made["metadata"]["uid"])
    meters = [Meters(), Meters()]
    recorders = [Recorder(FencedApi(api, Fence.always()), instance="i", meters=meter) for meter in meters]
    for recorder in recorders:
        recorder.say(about, "Warning", "KindNotServed", "podgroups are not served")
        recorder.start()
    plane.wait("both said it", lambda: sum(said(meter, "ok") + said(meter, "known") for meter in meters) == 2, 10)
    events = [event for event in plane.api.items(EVENTS) if event["involvedObject"]["name"] == "talked-about"]
    assert [(event["reason"], event["message"], event["count"]) for event in events] == [
        ("KindNotServed", "podgroups are not served", 1)
    ]
    assert all(recorder.stop() for recorder in recorders)


def said(meters: Meters, outcome: str) -> float:
    """Count Events by what became of them."""
    return meters.registry.get_sample_value("lockstep_events_total", {"outcome": outcome}) or 0


def test_discovery(plane: ControlPlane, api: HttpApi) -> None:
    """What is served is found, what is installed later is found later."""
    native = GroupKind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
    volcano = GroupKind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
    discovery = Discovery(api, [native, volcano, MAPS])
    discovery.poll()
    assert discovery.served == {native, MAPS}
    assert "v1beta1" in served_versions(api, "scheduling.k8s.io")
    plane.register_kinds(VOLCANO_CRDS)
    discovery.poll()
    assert discovery.served == {native, MAPS, volcano}


def test_credentials_that_are_not_accepted(plane: ControlPlane, api: HttpApi) -> None:
    """The check passes with good credentials, and refuses bad and missing ones in one clear message."""
    api.check()
    good = plane.kubeconfig().read_text()
    for bad in (good.replace(plane.users["admin"].token, "wrong"), good.replace(plane.users["admin"].token, "")):
        path = plane.folder / "bad-kubeconfig"
        path.write_text(bad)
        with pytest.raises(Misconfigured, match=r"must accept our credentials, got 40[13]"):
            load_api(path).check()
