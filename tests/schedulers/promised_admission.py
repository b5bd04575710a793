"""Who is stamped and who is left alone, from admission on; one promise a function."""

import copy
from typing import Any, Final

from gangs import keys
from gangs.names import lws_volcano_group_name
from schedulers.contract import Provider
from schedulers.volcano import GROUP_NAME
from tests.builders import JsonObject, review
from tests.reconciler.sights import decoded, merged
from tests.schedulers.scene import REVISION, Scene

KUEUE: Final = "kueue.x-k8s.io/"
KUEUE_GATES: Final = [{"name": f"{KUEUE}admission"}, {"name": f"{KUEUE}topology"}]
KUEUE_MARKS: Final = {
    "labels": {f"{KUEUE}queue-name": "team", f"{KUEUE}managed": "true", f"{KUEUE}pod-group-name": "leaderworkerset-x"},
    "annotations": {f"{KUEUE}pod-group-total-count": "3", f"{KUEUE}role-hash": "main"},
}
SPEC: Final = {"containers": [{"name": "main", "image": "registry.example/main:1"}]}


def every_pod_is_born_with_its_group(provider: Provider) -> None:
    """Leader and workers name one group from their creation on, which our label shows."""
    scene = Scene(provider)
    scene.apply(size=3, replicas=2)
    scene.run(scene.lws_controller)
    for index in ("0", "1"):
        pods = scene.pods(group_index=index)
        (name,) = {scene.group_of(pod) for pod in pods}
        assert [pod["metadata"]["labels"][keys.LOCKSTEP_GROUP] for pod in pods] == [name] * 3


def admitted_again_is_left_alone(provider: Provider) -> None:
    """A pod that was admitted once gets no patch when it is reviewed again, and the same answer byte for byte."""
    scene = Scene(provider)
    scene.apply(size=2)
    scene.run(scene.lws_controller)
    for pod in scene.pods():
        assert scene.admit(copy.deepcopy(pod)) == pod
        body = review(pod, namespace="team-a")
        assert scene.decide_admission(body) == scene.decide_admission(body)


def an_opted_out_set_is_left_alone(provider: Provider) -> None:
    """The label on the pod template, or on the namespace: no stamp, no group object, no gate."""
    scene = Scene(provider)
    off = {"metadata": {"labels": {keys.LOCKSTEP_GANG: keys.OPTED_OUT}}}
    scene.apply(size=2, pod=off)
    scene.run(scene.lws_controller, scene.reconciler)
    assert [scene.group_of(pod) for pod in scene.pods()] == [None, None]
    assert scene.groups() == []
    scene = Scene(provider, webhook=False)
    labels = {keys.LOCKSTEP_GANG: keys.OPTED_OUT}
    scene.world.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": labels}})
    scene.apply(size=2)
    scene.run(scene.lws_controller, scene.reconciler)
    assert [scene.group_of(pod) for pod in scene.pods()] == [None, None]
    assert scene.groups() == []


def groups_of_others_are_left_alone(provider: Provider) -> None:
    """A group in the pod template, or LWS's own Volcano provider: pods keep it, and no group of ours is made."""
    stamp = provider.stamp("someone-elses", leader=False)
    theirs: dict[str, Any] = {"metadata": {"labels": dict(stamp.labels), "annotations": dict(stamp.annotations)}}
    if stamp.scheduling_group is not None:
        theirs["spec"] = {"schedulingGroup": {"podGroupName": stamp.scheduling_group}}
    scene = Scene(provider)
    scene.apply(size=2, pod=theirs)
    scene.run(scene.lws_controller, scene.reconciler)
    assert [scene.group_of(pod) for pod in scene.pods()] == ["someone-elses"] * 2
    of_lws = {"metadata": {"annotations": {GROUP_NAME: lws_volcano_group_name("other", 0, REVISION)}}}
    scene.apply("other", size=2, pod=of_lws)
    scene.run(scene.lws_controller, scene.reconciler)
    assert not [pod for pod in scene.pods() if keys.LOCKSTEP_GROUP in pod["metadata"]["labels"]]
    assert scene.groups() == []


def pods_of_no_leaderworkerset_are_left_alone(provider: Provider) -> None:
    """Plain pods, and those of Jobs and JobSets, of the same scheduler: not one byte is changed."""
    scene = Scene(provider)
    of_jobset = {"jobset.sigs.k8s.io/jobset-name": "train", "batch.kubernetes.io/job-name": "train-workers-0"}
    for labels in ({}, {"app": "web"}, of_jobset):
        metadata = {"name": "train-0", "namespace": "team-a", "labels": labels, "annotations": {}}
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        pod["spec"] = SPEC | {"schedulerName": provider.scheduler_names[0]}
        assert scene.admit(copy.deepcopy(pod)) == pod
        scene.world.put(merged(pod, {"metadata": {"uid": "plain"}}))
        assert not scene.reconciler()


def kueue_beside_us_keeps_what_is_its_own(provider: Provider) -> None:
    """An LWS with a queue name has Kueue's gates and our group: made while pods are gated, and the gates stay."""
    scene = Scene(provider)
    scene.apply(size=3, pod={"metadata": KUEUE_MARKS, "spec": {"schedulingGates": KUEUE_GATES}})
    scene.run()
    assert scene.bound() == 0
    for pod in scene.pods():
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"].startswith(KUEUE)]
        assert gates == KUEUE_GATES
        for where, marks in KUEUE_MARKS.items():
            assert marks.items() <= pod["metadata"][where].items()
        assert not [key for key in provider.stamp("x", leader=True).labels if key.startswith(KUEUE)]
    if provider.kinds:
        assert [scene.minimum(group) for group in scene.groups()] == [3]
    for pod in scene.pods():
        admitted = [gate for gate in pod["spec"]["schedulingGates"] if not gate["name"].startswith(KUEUE)]
        scene.world.put(merged(pod, {"spec": {"schedulingGates": admitted}}))
    scene.run()
    assert scene.bound() == 3


def another_schedulers_pods_carry_nothing_of_it(provider: Provider) -> None:
    """A pod of the same LWS that names a scheduler which nobody configured is admitted as it is."""
    scene = Scene(provider)
    scene.apply(size=2, pod={"spec": {"schedulerName": "nobody-knows-it"}})
    scene.run(scene.lws_controller, scene.reconciler)
    for pod in scene.pods():
        assert provider.claim(decoded(pod)) is None
        assert keys.LOCKSTEP_GROUP not in pod["metadata"]["labels"]
    assert scene.groups() == []
