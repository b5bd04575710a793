"""Plays through, without a cluster, what becomes of an LWS: the real decisions on the pods that LWS would make."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gangs import keys, late, names
from gangs.members import read_member
from reconciler.actions import Action, CreateGroup, PatchGroup, Say
from reconciler.decisions import decide
from reconciler.gates import declaration_for, read_whole, standing_of
from reconciler.objects import GroupObject, LeaderWorkerSet, Metadata, OwnerReference, Pod, StatefulSet
from reconciler.replicas import Sight
from schedulers.configuration import Configuration
from schedulers.contract import GroupKind, Provider, Replica
from webhook.mutation import Decider

REVISION: Final = "revision"
KEY: Final = "key"
DRAWN: Final = "xxxxxxxxxx"
"""Stands for the ten digits that differ with every leader."""

Json = dict[str, Any]


class Rehearsal(msgspec.Struct, frozen=True):
    """What becomes of one replica.

    Attributes:
        name: pod name of its leader.
        patches: role -> operations that the webhook puts on a pod of it; none for a pod that is left alone.
        warnings: what the webhook says.
        group: the group object as it is created, `None` for none.
        raised: the change once late workers are there, `None` for none.
        remarks: what the reconciler says.
        declared: what is written on every pod when its gate is opened, `None` where there are no gates.
    """

    name: str
    patches: Mapping[str, list[Json]]
    warnings: list[str]
    group: Json | None
    raised: Json | None
    remarks: list[str]
    declared: Json | None = None


class Stage:
    """One LWS and a configuration."""

    def __init__(self, lws: LeaderWorkerSet, manifest: Json, configuration: Configuration) -> None:
        """Take an LWS, typed and as it stands in its manifest."""
        self.lws, self._configuration = lws, configuration
        self._namespace = lws.metadata.namespace or "default"
        self._template = manifest["spec"]["leaderWorkerTemplate"]
        self._annotations: Mapping[str, str] = lws.metadata.annotations or {}
        self.size = lws.spec.leader_worker_template.size or 1

    @property
    def provider(self) -> Provider | None:
        """The provider of the leader's scheduler."""
        return self._configuration.provider(self.scheduler_name("leader"))

    @property
    def why_late(self) -> str | None:
        """Why workers come late, if they do."""
        return late.why_late(self.lws.spec.startup_policy, self._annotations, self.size)

    def scheduler_name(self, role: str) -> str:
        """`spec.schedulerName` of a role's template."""
        return str(self.pod_template(role).get("spec", {}).get("schedulerName") or "")

    def pod_template(self, role: str) -> Json:
        """Template of a role; the leader has the workers' where it has none of its own."""
        worker: Json = self._template["workerTemplate"]
        leader: Json | None = self._template.get("leaderTemplate")
        return leader if role == "leader" and leader is not None else worker

    def group_name(self, index: int) -> str:
        """Name of a replica's group, with a stand-in for the digits that differ with every leader."""
        return self._group(index)[: -len(DRAWN)] + DRAWN

    def rehearse(self, index: int) -> Rehearsal:
        """Play one replica through: admission of its pods, then the reconciler with and without its workers."""
        patches, warnings = {}, []
        for role, number in (("leader", 0), ("worker", 1))[: self.size]:
            patches[role], told = self._admit(self._pod(index, number))
            warnings += told
        alone = self._actions(index, workers=0, group=None)
        group = next((action.body for action in alone if isinstance(action, CreateGroup)), None)
        later = self._actions(index, workers=self.size - 1, group=group) if group is not None else []
        raised = next((action.body for action in later if isinstance(action, PatchGroup)), None)
        stand_ins = {KEY: "<drawn for each leader>", REVISION: "<revision>", self._group(index): self.group_name(index)}
        return Rehearsal(
            name=f"{self.lws.metadata.name}-{index}",
            patches=with_stand_ins(patches, stand_ins),
            warnings=warnings,
            group=with_stand_ins(group, stand_ins),
            raised=with_stand_ins(raised, stand_ins),
            remarks=[action.message for action in alone if isinstance(action, Say)],
            declared=with_stand_ins(self._declared(index), stand_ins),
        )

    def _group(self, index: int) -> str:
        return names.group_name(self._namespace, self.lws.metadata.name, index, REVISION, KEY)

    def _admit(self, pod: Json) -> tuple[list[Json], list[str]]:
        """Review a pod's creation and apply the patch to it."""
        request = {
            "uid": "rehearsal",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": self._namespace,
            "object": pod,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = msgspec.json.decode(Decider(self._configuration, lambda: KEY)(msgspec.json.encode(review)).body)
        operations = msgspec.json.decode(base64.b64decode(answer["response"].get("patch", "")) or b"[]")
        for operation in operations:
            *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
            place: Any = pod
            for parent in parents:
                place = place[parent]
            if last == "-":
                place.append(operation["value"])
            else:
                place[last] = operation["value"]
        return operations, list(answer["response"].get("warnings", []))

    def _declared(self, index: int) -> Json | None:
        """Give what the reconciler writes on the pods when it opens their gates."""
        sight = self._sight(index, workers=self.size - 1 if self.why_late is None else 0, group=None)
        standing = None if sight is None else standing_of(sight, self._configuration)
        replica = None if standing is None else read_whole(standing, self._configuration)
        if standing is None or not isinstance(replica, Replica):
            return None
        declaration = declaration_for(standing, replica)
        return {"labels": dict(declaration.labels), "annotations": dict(declaration.annotations)}

    def _actions(self, index: int, *, workers: int, group: Mapping[str, object] | None) -> list[Action]:
        """Let the reconciler decide about the replica with some of its workers there."""
        sight = self._sight(index, workers=workers, group=group)
        return [] if sight is None else list(decide(sight, self._configuration, _preferred).actions)

    def _sight(self, index: int, *, workers: int, group: Mapping[str, object] | None) -> Sight | None:
        """See the replica with some of its workers there; `None` when its leader is of no LWS."""
        leader, metadata = self._stored(index, 0), self.lws.metadata
        member = read_member(self._namespace, leader.metadata.name, leader.labels, leader.annotations)
        if member is None:
            return None
        return Sight(
            leader=leader,
            member=member,
            group=None if group is None else msgspec.convert(group, GroupObject),
            workers=[self._stored(index, number + 1) for number in range(workers)],
            stateful_set=self._stateful_set(index, leader),
            lws=msgspec.structs.replace(
                self.lws, metadata=msgspec.structs.replace(metadata, namespace=self._namespace)
            ),
        )

    def _stored(self, index: int, number: int) -> Pod:
        """Make a pod as the API server would store it after admission."""
        pod = self._pod(index, number)
        pod["metadata"]["labels"].setdefault(keys.GROUP_KEY, KEY)
        self._admit(pod)
        return msgspec.convert(pod, Pod)

    def _stateful_set(self, index: int, leader: Pod) -> StatefulSet:
        name = leader.metadata.name
        owner = OwnerReference(kind="Pod", name=name, uid=leader.metadata.uid, controller=True)
        content = {"spec": {"replicas": self.size - 1, "template": self.pod_template("worker")}}
        made = msgspec.convert(content, StatefulSet)
        return msgspec.structs.replace(
            made, metadata=Metadata(name=name, namespace=self._namespace, uid=f"set-{index}", owner_references=[owner])
        )

    def _pod(self, index: int, number: int) -> Json:
        """Make a pod as LWS's StatefulSets send it for admission."""
        name, template = self.lws.metadata.name, self.pod_template("leader" if number == 0 else "worker")
        leader = f"{name}-{index}"
        labels = dict(template.get("metadata", {}).get("labels") or {})
        annotations = dict(template.get("metadata", {}).get("annotations") or {}) | {keys.SIZE: str(self.size)}
        labels |= {keys.LWS_NAME: name, keys.REVISION: REVISION}
        if keys.EXCLUSIVE_TOPOLOGY in self._annotations:
            annotations[keys.EXCLUSIVE_TOPOLOGY] = self._annotations[keys.EXCLUSIVE_TOPOLOGY]
        owner = {"kind": "StatefulSet", "name": name if number == 0 else leader, "controller": True}
        if number == 0:
            labels[keys.WORKER_INDEX] = "0"
        else:
            labels |= {keys.GROUP_INDEX: str(index), keys.GROUP_KEY: KEY}
            annotations[keys.LEADER_NAME] = leader
            owner["uid"] = f"set-{index}"
        return {
            "metadata": {
                "name": leader if number == 0 else f"{leader}-{number}",
                "namespace": self._namespace,
                "uid": f"pod-{index}-{number}",
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [owner],
            },
            "spec": defaulted(template.get("spec") or {}),
        }


def defaulted(spec: Json) -> Json:
    """Default a pod's spec as the API server does before it is stored: a limit without a request is the request."""
    return spec | {
        field: [_defaulted_container(container) for container in spec[field]]
        for field in ("containers", "initContainers")
        if isinstance(spec.get(field), list)
    }


def with_stand_ins(content: Any, stand_ins: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Put stand-ins where a cluster would put what nobody can know before, and leave UIDs out."""
    if isinstance(content, Mapping):
        return {key: with_stand_ins(value, stand_ins) for key, value in content.items() if key != "uid"}
    if isinstance(content, list):
        return [with_stand_ins(value, stand_ins) for value in content]
    return stand_ins.get(content, content) if isinstance(content, str) else content


def _defaulted_container(container: Json) -> Json:
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return container | {"resources": resources | {"requests": requests}}


def _preferred(kinds: Sequence[GroupKind]) -> GroupKind | None:
    return next(iter(kinds), None)
