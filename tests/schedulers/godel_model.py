"""What Gödel does with pods and PodGroups, as far as a gang can see it; it can't be built beside the other parts.

Read at kubewharf/godel-scheduler 90de2d0: `pkg/dispatcher/internal/queue/unit.go` (who is let through),
`pkg/scheduler/core/unit_scheduler/unit_scheduler.go` (what is placed, and what is written when nothing fits),
`pkg/scheduler/framework/plugins/coscheduling/coscheduling.go` (a PodGroup that timed out), and
`pkg/binder/controller/podgroup.go` (phases, of which Scheduled and Timeout are final).
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from tests.builders import JsonObject
from tests.reconciler.sights import merged
from tests.schedulers.scene import RUNNING, Scene

NAME: Final = "godel.bytedance.com/pod-group-name"
LOCK: Final = "godel.bytedance.com/podgroup-final-op-lock"
DEFAULT_TIMEOUT: Final = 300
"""Seconds, where the PodGroup says nothing."""
FINAL: Final = ("Scheduled", "Timeout")
FAILED: Final[JsonObject] = {
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingFailed"}]}
}


class GodelModel:
    """Dispatcher, scheduler and binder of one cluster.

    Attributes:
        now: its clock.
    """

    def __init__(self, scene: Scene) -> None:
        """Work on the objects of a scene, and in its room."""
        self._scene, self._world = scene, scene.world
        self.now = datetime(2026, 11, 29, 22, 5, 32, tzinfo=UTC)

    def pass_time(self, **amount: float) -> None:
        """Let some time pass, as `datetime.timedelta` takes it."""
        self.now += timedelta(**amount)

    def controller(self) -> bool:
        """Give every PodGroup the phase that follows; it finds the pods of one by their label."""
        return any(self._step(group) for group in self._scene.groups())

    def scheduler(self) -> bool:
        """Try every PodGroup whose pods are let through; they are found by their annotation."""
        return any(self._try(group) for group in self._scene.groups())

    def run(self) -> None:
        """Let everybody in the scene act until nothing is left to do."""
        scene = self._scene
        scene.run(scene.lws_controller, scene.reconciler, self.controller, self.scheduler)

    def phase(self, group: JsonObject) -> str:
        """Give a PodGroup's phase, empty for none yet."""
        return str(group.get("status", {}).get("phase", ""))

    def _step(self, group: JsonObject) -> bool:
        group = self._with_creation(group)
        was, pods = self.phase(group), self._pods(group, "labels")
        if was in FINAL:
            return False
        bound = sum("nodeName" in pod["spec"] for pod in pods)
        minimum = group["spec"]["minMember"]
        phase = "Pending" if len(pods) < minimum else "PreScheduling"
        if len(pods) >= minimum <= bound or any(pod["status"]["phase"] == "Running" for pod in pods):
            phase = "Scheduled"
        elif self._timed_out(group):
            phase = "Timeout"
            group = merged(group, {"metadata": {"annotations": {LOCK: "pg-controller"}}})
        if phase != was:
            self._world.put(merged(group, {"status": {"phase": phase}}))
        return phase != was

    def _try(self, group: JsonObject) -> bool:
        pods = self._pods(group, "annotations")
        waiting = [pod for pod in pods if "nodeName" not in pod["spec"]]
        phase, minimum = self.phase(group), group["spec"]["minMember"]
        held_back = phase in ("Pending", "Unknown") and len(pods) < minimum
        ever = phase == "Scheduled"
        if not waiting or held_back or phase == "Timeout" or (len(waiting) < minimum and not ever):
            return False
        if self._scene.room < (1 if ever else minimum):
            return any(self._fail(pod) for pod in waiting)
        for pod in waiting[: self._scene.room]:
            self._world.put(merged(pod, RUNNING))
            self._scene.room -= 1
        return True

    def _fail(self, pod: JsonObject) -> bool:
        failed = merged(pod, FAILED)
        if failed != pod:
            self._world.put(failed)
        return failed != pod

    def _pods(self, group: JsonObject, where: str) -> list[JsonObject]:
        meta = group["metadata"]
        return [
            pod
            for pod in self._world.of_kind("Pod")
            if pod["metadata"]["namespace"] == meta["namespace"] and pod["metadata"][where].get(NAME) == meta["name"]
        ]

    def _with_creation(self, group: JsonObject) -> JsonObject:
        if "creationTimestamp" not in group["metadata"]:
            group = merged(group, {"metadata": {"creationTimestamp": self.now.isoformat()}})
            self._world.put(group)
        return group

    def _timed_out(self, group: JsonObject) -> bool:
        age = self.now - datetime.fromisoformat(group["metadata"]["creationTimestamp"])
        return bool(age.total_seconds() > group["spec"].get("scheduleTimeoutSeconds", DEFAULT_TIMEOUT))
