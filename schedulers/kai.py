"""KAI: `scheduling.run.ai` PodGroup.

KAI's own podgrouper puts every pod into a group that it makes. It leaves stamped pods alone from v0.15, by the
annotation `kai.scheduler/skip-podgrouper`, or where `--pod-label-selector` or `--namespace-label-selector` keeps it
away; else it overwrites the stamp, which is seen on the pods, and its own group is in charge.

Sources: kai-scheduler/KAI-Scheduler `pkg/podgrouper/pod_controller.go`, `docs/topology/README.md`,
`pkg/apis/scheduling/v2alpha2/podgroup_types.go`, `pkg/scheduler/actions/stalegangeviction/stalegangeviction.go`.
"""

from types import MappingProxyType
from typing import Final

from gangs import intents
from gangs.intents import OwnKey
from schedulers.contract import (
    UNSCHEDULABLE,
    Arrival,
    Claim,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Spec,
    Stamp,
    Waiting,
    claim_by_annotation,
    podgroup_rights,
)

API_GROUP: Final = "scheduling.run.ai"
V2ALPHA2: Final = GroupKind(API_GROUP, "v2alpha2", "PodGroup", "podgroups")

POD_GROUP: Final = "pod-group-name"
SKIP_PODGROUPER: Final = "kai.scheduler/skip-podgrouper"
QUEUE: Final = "kai.scheduler/queue"
PRIORITY_CLASS: Final = "priorityClassName"
TOPOLOGY: Final = "kai.scheduler/topology"
REQUIRED: Final = "kai.scheduler/topology-required-placement"
PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
STALENESS: Final = "kai.scheduler/staleness-grace-period"

DEFAULT_QUEUE: Final = "default-queue"
DEFAULT_TOPOLOGY: Final = "cluster-topology"
"""Name of the Topology object in KAI's documentation."""

NEVER_STALE: Final = "-1s"
"""From v0.17; before, the field is pruned."""


class Kai:
    """The `kai` provider."""

    name = "kai"
    title = "KAI"
    scheduler_names = ("kai-scheduler",)
    kinds = (V2ALPHA2,)
    minimum = "minMember"
    rights = podgroup_rights(API_GROUP)
    late_workers = LateWorkers(
        Arrival.BOUND,
        floor=False,
        promise="the leader may start before there is room for its workers, which are a gang once all are placed",
    )
    waiting = Waiting(capacity=UNSCHEDULABLE, members="", group="")
    words = MappingProxyType(
        {
            intents.QUEUE: "queue",
            intents.PRIORITY_CLASS: "priorityClassName",
            intents.TOPOLOGY: "topologyConstraint",
        }
    )
    nearest = MappingProxyType(
        {intents.SCHEDULE_TIMEOUT: "placing all members in one step, so that none waits for the rest"}
    )
    own_keys: intents.OwnKeys = MappingProxyType(
        {
            intents.QUEUE: (OwnKey(QUEUE, label=True),),
            intents.PRIORITY_CLASS: (OwnKey(PRIORITY_CLASS, label=True),),
            intents.TOPOLOGY: (OwnKey(REQUIRED, form="{},required"), OwnKey(PREFERRED, form="{},preferred")),
        }
    )
    queues = GroupKind(API_GROUP, "v2", "Queue", "queues")
    settings = (TOPOLOGY, PREEMPTIBILITY, STALENESS)
    way_out = f"KAI from v0.15, which honours {SKIP_PODGROUPER}, or a podgrouper with --pod-label-selector"

    def stamp(self, group: str, *, leader: bool) -> Stamp:  # noqa: ARG002 - the contract's signature
        """Name the PodGroup and ask the podgrouper to leave the pod alone."""
        return Stamp(annotations={POD_GROUP: group, SKIP_PODGROUPER: "true"})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the PodGroup that the pod's annotation names."""
        return claim_by_annotation(pod, POD_GROUP)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Compute minimum, queue, priority, topology; what an older KAI prunes is written once.

        Without a priority class KAI would take a group for preemptible. A replica with late workers is incomplete
        for as long as they take to come: that must not have its leader evicted.
        """
        fields: dict[str, object] = {"minMember": replica.minimum, "queue": replica.intent.queue or DEFAULT_QUEUE}
        fixed: tuple[str, ...] = ()
        priority_class = replica.asked_priority_class
        preemptibility = replica.own.get(PREEMPTIBILITY, "" if priority_class else "non-preemptible")
        staleness = replica.own.get(STALENESS, NEVER_STALE if replica.late else "")
        if priority_class:
            fields["priorityClassName"] = priority_class
        if preemptibility:
            fields["preemptibility"] = preemptibility
        if staleness:
            fields["stalenessGracePeriod"] = staleness
            fixed = ("stalenessGracePeriod",)
        if topology := replica.intent.topology:
            level = "requiredTopologyLevel" if topology.required else "preferredTopologyLevel"
            fields["topologyConstraint"] = {
                "topology": replica.own.get(TOPOLOGY, DEFAULT_TOPOLOGY),
                level: topology.key,
            }
        return Spec(fields, fixed=fixed)


PROVIDER: Final[Provider] = Kai()
