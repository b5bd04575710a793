"""The API server keeps kube-scheduler's stamp: the feature gate GenericWorkload is on."""

from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.seeing import Seen

NAME: Final = "gates"
NATIVE: Final = "native"
FIELDS: Final = frozenset({"schedulingGroup", "workloadRef"})
"""The second is how Kubernetes 1.35 spells it."""

WHY: Final = "the API server drops the pod's group without a word, and kube-scheduler places pod by pod"
MEND: Final = (
    "start kube-apiserver, kube-controller-manager and kube-scheduler with --feature-gates=GenericWorkload=true"
)


def find(seen: Seen) -> Iterator[Finding]:
    """Look for the field in a pod that came back from a dry run."""
    for probe in seen.probes:
        if probe.provider != NATIVE or NATIVE not in seen.served or probe.pod is None or not probe.group:
            continue
        if not FIELDS & probe.pod["spec"].keys():
            pod = f'a stamped pod of scheduler "{probe.scheduler}" (dry run)'
            what = f"spec.schedulingGroup of {pod}: must be kept, got nothing"
            yield Finding(NAME, ERROR, what, WHY, MEND)
