"""Keys that LeaderWorkerSet and Lockstep put on pods, spelt once.

Source: kubernetes-sigs/lws `api/leaderworkerset/v1/leaderworkerset_types.go`.
"""

from typing import Final

LWS_API_VERSION: Final = "leaderworkerset.x-k8s.io/v1"
LWS_KIND: Final = "LeaderWorkerSet"

LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
GROUP_KEY: Final = "leaderworkerset.sigs.k8s.io/group-key"
REVISION: Final = "leaderworkerset.sigs.k8s.io/template-revision-hash"
SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
LEADER_NAME: Final = "leaderworkerset.sigs.k8s.io/leader-name"
EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP_EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"

LOCKSTEP_GROUP: Final = "lockstep.dev/group"
"""Label on every stamped pod and every group object of ours: the group's name."""

GATE: Final = "lockstep.dev/group"
"""Scheduling gate on pods of schedulers without a group object, until the reconciler has written what they read."""

LOCKSTEP_SHARED: Final = "lockstep.dev/shared"
"""Label on objects of ours that groups of several replicas share: the object's name."""

LOCKSTEP_GANG: Final = "lockstep.dev/gang"
"""Label on a pod template: `off` keeps Lockstep away."""
OPTED_OUT: Final = "off"

WORD_PREFIX: Final = "lockstep.dev/"
"""Prefix of the annotations that carry the words of `gangs.intents`."""

CLAIM_TEMPLATE: Final = "lockstep.dev/resource-claim-template"
"""Annotation on a pod template: the ResourceClaimTemplate of which each replica gets one claim, shared by its pods."""

CLAIM: Final = "lockstep"
"""Name of that claim in a pod whose template has no entry for it."""

DISAGGREGATED_API_VERSION: Final = "disaggregatedset.x-k8s.io/v1"
DISAGGREGATED_KIND: Final = "DisaggregatedSet"
DISAGGREGATED_NAME: Final = "disaggregatedset.x-k8s.io/name"
DISAGGREGATED_ROLE: Final = "disaggregatedset.x-k8s.io/role"
DISAGGREGATED_SLICE: Final = "disaggregatedset.x-k8s.io/slice"
DISAGGREGATED_REVISION: Final = "disaggregatedset.x-k8s.io/revision"
"""On LeaderWorkerSets and pods of a DisaggregatedSet (kubernetes-sigs/lws `api/disaggregatedset/v1`)."""
