"""The objects of kube-scheduler's gangs, as each version of Kubernetes spells them.

Sources: kubernetes/api `scheduling/v1alpha1/types.go` (v0.35.4), `scheduling/v1alpha2/types.go` (v0.36.3),
`scheduling/v1beta1/types.go` and `scheduling/v1alpha3/types.go` (v0.37.2); kubernetes/kubernetes
`pkg/registry/scheduling/podgroup/strategy.go` for what is dropped; KEP-4671, KEP-5710, KEP-5732, KEP-6012.
"""

from collections.abc import Mapping
from typing import Final

from gangs import intents, keys
from schedulers.contract import GatedField, GroupKind, Replica, Spec

API_GROUP: Final = "scheduling.k8s.io"


def _kind(version: str, kind: str) -> GroupKind:
    return GroupKind(API_GROUP, version, kind, f"{kind.lower()}s")


V1BETA1: Final = _kind("v1beta1", "PodGroup")
V1ALPHA3: Final = _kind("v1alpha3", "PodGroup")
V1ALPHA2: Final = _kind("v1alpha2", "PodGroup")
V1ALPHA1: Final = _kind("v1alpha1", "Workload")
"""Kubernetes 1.35 has no PodGroup: the group is a part of a Workload."""

COMPOSITE: Final = _kind("v1alpha3", "CompositePodGroup")
DISAGGREGATED: Final = GroupKind("disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet", "disaggregatedsets")

FIELD: Final = "schedulingGroup"
FIELD_OF_1_35: Final = "workloadRef"
"""Field of a pod's spec that names its group."""

TEMPLATE: Final = "replica"
"""Name of the template of a replica's group in its Workload."""

GANG: Final = "schedulingPolicy.gang.minCount"
GANG_OF_1_35: Final = "podGroups.0.policy.gang.minCount"

TOPOLOGY: Final = GatedField(
    "schedulingConstraints", "TopologyAwareWorkloadScheduling", "required pod affinity in the pod templates"
)
CLAIMS: Final = GatedField("resourceClaims", "DRAWorkloadResourceClaims")
PREEMPTION: Final = GatedField("preemptionPolicy", "PodGroupPreemptionPolicy")
PARENT: Final = GatedField("parentCompositePodGroupName", "CompositePodGroup")
MODE_OF_1_36: Final = GatedField("disruptionMode", "WorkloadAwarePreemption")
CLASS_OF_1_36: Final = GatedField(
    "priorityClassName", "WorkloadAwarePreemption", "spec.priorityClassName in both pod templates", "disruptionMode"
)

MOST_CLAIMS: Final = 4
FIXED: Final = (
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "preemptionPolicy",
    "parentCompositePodGroupName",
    "workloadRef",
    "podGroupTemplateRef",
)
"""Fields of a PodGroup that can't be changed after its creation, in any version."""


def group_spec(replica: Replica, kind: GroupKind) -> Spec:
    """Compute the spec of a replica's group in the terms of a version."""
    if kind == V1ALPHA1:
        return Spec(workload_of_one(replica), fixed=("controllerRef", "podGroups"))
    fields = template_fields(replica, kind, replica.minimum)
    fixed = tuple(name for name in FIXED if name in fields)
    gated = tuple(one for one in gates_of(kind) if one.field in fields)
    return Spec(fields, fixed=fixed if kind != V1ALPHA2 else (*fixed, GANG), gated=gated)


def template_fields(replica: Replica, kind: GroupKind, minimum: int) -> dict[str, object]:
    """Compute what a PodGroup and the template it is made from have in common, from Kubernetes 1.36."""
    whole: object = "PodGroup" if kind == V1ALPHA2 else {"all": {}}
    fields: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "disruptionMode": whole}
    if name := class_of(replica, kind):
        fields["priorityClassName"] = name
    if kind != V1ALPHA2 and replica.preemption_policy:
        fields["preemptionPolicy"] = replica.preemption_policy
    topology = replica.intent.topology
    if topology is not None and topology.required:
        fields["schedulingConstraints"] = {"topology": [{"key": topology.key}]}
    if replica.claims:
        claims = sorted(replica.claims.items())[:MOST_CLAIMS]
        fields["resourceClaims"] = [{"name": name, "resourceClaimName": claim} for name, claim in claims]
    return fields


def class_of(replica: Replica, kind: GroupKind) -> str:
    """Give the group's priority class.

    From 1.37 kube-scheduler never places a group whose priority differs from its pods'; 1.36 goes by the group's.
    """
    wanted = replica.intent.priority_class
    return wanted if kind == V1ALPHA2 and wanted else replica.priority_class


def gates_of(kind: GroupKind) -> tuple[GatedField, ...]:
    """List the fields of a version that are dropped where a gate is off."""
    if kind == V1ALPHA1:
        return ()
    if kind == V1ALPHA2:
        return (TOPOLOGY, CLAIMS, MODE_OF_1_36, CLASS_OF_1_36)
    return (TOPOLOGY, CLAIMS, PREEMPTION, PARENT)


def probe_fields(kind: GroupKind) -> Mapping[str, object] | None:
    """Compute the spec of a PodGroup that has every gated field.

    Where PodGroupPreemptionPolicy is on, the Priority plugin fills `preemptionPolicy` in; a value of ours might differ
    from that of the cluster's default class, and be refused.
    """
    if kind == V1ALPHA1:
        return None
    fields: dict[str, object] = {
        "schedulingPolicy": {"gang": {"minCount": 1}},
        "schedulingConstraints": {"topology": [{"key": "kubernetes.io/hostname"}]},
        "resourceClaims": [{"name": "probe", "resourceClaimName": "lockstep-probe"}],
    }
    if kind == V1ALPHA2:
        return {**fields, "disruptionMode": "PodGroup"}
    return {**fields, "parentCompositePodGroupName": "lockstep-probe", **reference(kind, "lockstep-probe", TEMPLATE)}


def workload_of_one(replica: Replica) -> dict[str, object]:
    """Compute the Workload that is a replica's group in Kubernetes 1.35; nothing of it can be changed later."""
    group = {"name": TEMPLATE, "policy": {"gang": {"minCount": replica.minimum}}}
    return {"controllerRef": controller_of(replica), "podGroups": [group]}


def controller_of(replica: Replica) -> dict[str, object]:
    """Name the LeaderWorkerSet as what a Workload is about."""
    return {"apiGroup": keys.LWS_API_VERSION.partition("/")[0], "kind": keys.LWS_KIND, "name": replica.lws}


def workload_kind(kind: GroupKind) -> GroupKind:
    """Give the kind of Workload that goes with a kind of PodGroup."""
    return _kind(kind.version, "Workload")


def reference(kind: GroupKind, workload: str, template: str) -> dict[str, object]:
    """Compute the field of a PodGroup, or of a CompositePodGroup, that names the template it is made from."""
    if kind == V1ALPHA2:
        names = {"workloadName": workload, "podGroupTemplateName": template}
        return {"podGroupTemplateRef": {"workload": names}}
    return {"workloadRef": {"workloadName": workload, "templateName": template}}


def refusal(word: str, replica: Replica, kind: GroupKind) -> str | None:
    """Say why a word is not honoured for a replica, `None` when it is; see `schedulers.contract.RefusesWords`."""
    wanted, topology = replica.intent.priority_class, replica.intent.topology
    said = {intents.PRIORITY_CLASS: wanted, intents.TOPOLOGY: topology}.get(word)
    if kind == V1ALPHA1 and said is not None:
        return "has nothing of the kind in Kubernetes 1.35; the nearest are the fields of the pod templates"
    if word == intents.PRIORITY_CLASS and wanted and class_of(replica, kind) != wanted:
        nearest = "spec.priorityClassName in both pod templates"
        return f"never places a group whose priority differs from its pods'; the nearest is {nearest}"
    if word == intents.TOPOLOGY and topology is not None and not topology.required:
        return "knows no preferred topology; the nearest is preferred affinity in the pod templates"
    return None


def why_dropped(reference: str, kind: GroupKind | None) -> str:
    """Say why pods that refer to their group in the words of one version lost that.

    Args:
        reference: `schedulingGroup`, `workloadRef` or `both`.
        kind: the kind of group object that the cluster serves.
    """
    wanted = FIELD_OF_1_35 if kind == V1ALPHA1 else FIELD
    if kind is not None and reference not in ("both", wanted):
        return f"drops spec.{reference} (this version has spec.{wanted}: set native.podReference)"
    return f"drops spec.{FIELD if reference == 'both' else reference} (gate GenericWorkload is off)"
