"""The Kubernetes version and feature gates that a review is made for.

Source: pkg/features/kube_features.go of kubernetes/kubernetes, releases 1.35 to 1.37; 1.38-alpha from its change log.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
CLAIMS: Final = "DRAWorkloadResourceClaims"
WITH_JOB: Final = "WorkloadWithJob"
COMPOSITE: Final = "CompositePodGroup"
PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
EVICTION: Final = "EvictionRequestAPI"

ALPHA_138: Final = "1.38-alpha"

GATES: Final[Mapping[str, frozenset[str]]] = {
    "1.35": frozenset({GENERIC_WORKLOAD, GANG_SCHEDULING}),
    "1.36": frozenset({GENERIC_WORKLOAD, GANG_SCHEDULING, PREEMPTION, TOPOLOGY, CLAIMS, WITH_JOB}),
    "1.37": frozenset({GENERIC_WORKLOAD, TOPOLOGY, CLAIMS, WITH_JOB, COMPOSITE, PREEMPTION_POLICY, EVICTION}),
    ALPHA_138: frozenset({GENERIC_WORKLOAD, TOPOLOGY, CLAIMS, WITH_JOB, COMPOSITE, PREEMPTION_POLICY, EVICTION}),
}
"""Gates that decide about groups, by version; all of them are off unless asked for."""

NEWEST: Final = "1.37"
_PATCH: Final = re.compile(r"v?(\d+\.\d+)(?:\.\d+)?")
_OFF: Final = "-"


class BadTarget(ValueError):  # noqa: N818 - reads as what the text is
    """A version or gate that no review can be made for; the message is `<word>: must ..., got ...`."""


class Target(msgspec.Struct, frozen=True):
    """What the API server is.

    Attributes:
        version: a key of `GATES`.
        gates: names that are on; with a leading "-", names that are said to be off.
    """

    version: str = NEWEST
    gates: frozenset[str] = frozenset({GENERIC_WORKLOAD})

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on; the same name with "-" wins."""
        return gate in self.gates and _OFF + gate not in self.gates


def parse_target(version: str, gates: str = GENERIC_WORKLOAD) -> Target:
    """Read a target as people write it.

    Args:
        version: `1.37`; a patch level and a leading "v" are fine, "1.38-alpha" is the one pre-release.
        gates: names separated by commas, "-Name" for off; empty for none.

    Raises:
        BadTarget: the version is not known, or a gate is none of its gates. (An API server does not start with a
            gate that its version lacks.)
    """
    known = GATES.get(_minor(version))
    if known is None:
        raise BadTarget(f'target: must be one of {", ".join(GATES)}, got "{version[:40]}"')
    names = frozenset(name.strip() for name in gates.split(",") if name.strip())
    for name in sorted(names):
        if name.removeprefix(_OFF) not in known:
            choices = ", ".join(sorted(known))
            raise BadTarget(f'gates: must be gates of Kubernetes {_minor(version)} ({choices}), got "{name[:80]}"')
    return Target(_minor(version), names)


def _minor(version: str) -> str:
    found = _PATCH.fullmatch(version)
    return version if found is None else found[1]
