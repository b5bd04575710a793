"""What the policy service knows of its cluster, and for how long."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from lockstep.cluster_view import NOT_YET, ClusterView
from lockstep.collecting import Collected, subjects_of
from policies.objects import Subject
from policies.shapes import POD, Pod
from policies.targets import Target
from reconciler.contract import Unreachable
from serving.health import Health
from serving.logs import LineWriter
from serving.metrics import Metrics

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"team": "a"}}}


def _pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n"}, "spec": {}}


class _Cluster:
    """A cluster that can be away."""

    def __init__(self) -> None:
        self.contents: list[dict[str, Any]] = [NAMESPACE, _pod("first")]
        self.away = False
        self.asked = threading.Event()

    def read(self) -> Collected:
        self.asked.set()
        if self.away:
            raise Unreachable("connection refused")
        contents = list(self.contents)
        return Collected(subjects_of(contents), contents, frozenset({POD}), ("x",), Target("1.36"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the view writes."""
    return tmp_path / "log"


def _view(cluster: _Cluster, log: Path, every: float = 60) -> tuple[ClusterView, Health]:
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY)
    health = Health()
    return ClusterView(cluster.read, every, health, Metrics(LineWriter(descriptor), "lockstep_policy")), health


def test_it_is_not_ready_before_the_first_look(log: Path) -> None:
    """Nothing is known then, and that is said."""
    view, health = _view(_Cluster(), log)
    assert health.reason_not_ready() == NOT_YET
    assert view.target() is None
    assert view.namespace_labels("n") == {}
    assert view.around([Subject(_pod("p"))], certain=True).get(POD, Pod, "n", "p") is not None
    view.look()
    assert health.reason_not_ready() == ""
    assert view.target() == Target("1.36")
    assert view.namespace_labels("n") == {"team": "a"}


def test_an_absence_counts_only_where_it_is_asked_for(log: Path) -> None:
    """An admission is not refused for what was created a moment ago."""
    view, _ = _view(_Cluster(), log)
    view.look()
    assert view.around([], certain=True).knows(POD)
    assert not view.around([], certain=False).knows(POD)
    assert view.around([Subject(_pod("p"))], certain=False).get(POD, Pod, "n", "first") is not None


def test_what_was_known_stays_while_the_cluster_is_away(log: Path) -> None:
    """The service goes on, and the log says why its view grows old."""
    cluster = _Cluster()
    view, health = _view(cluster, log)
    view.look()
    cluster.away = True
    view.look()
    assert health.reason_not_ready() == ""
    assert view.around([], certain=True).get(POD, Pod, "n", "first") is not None
    assert json.loads(log.read_text())["message"] == "cluster not read"


def test_it_looks_again_and_again(log: Path) -> None:
    """By itself, once it is started."""
    cluster = _Cluster()
    view, _ = _view(cluster, log, every=0.01)
    view.start()
    for _ in range(3):
        cluster.asked.clear()
        assert cluster.asked.wait(10)
