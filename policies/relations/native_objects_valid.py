"""An object of `scheduling.k8s.io`, or a pod, is one that the API server of the target version takes."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.native import find_dropped, validate
from policies.objects import DELETE
from policies.registry import Breach, Case, relation
from policies.relations.feature_gate_is_on import GATE
from policies.shapes import POD, WORKLOAD
from policies.snapshot import placed

GROUPS = ("PodGroup.scheduling.k8s.io", "CompositePodGroup.scheduling.k8s.io")

STATUS = "status"
"""Left out on every write but its own, which is no fault of the manifest."""


def check(case: Case) -> Iterator[Breach]:
    """Ask the offline validation of that version."""
    subject = case.subject
    if subject.operation == DELETE:
        return
    content = placed(subject.content)
    for problem in validate(content, subject.old, case.target):
        yield Breach(problem.path, problem.message)
    for problem in find_dropped(content, subject.old, case.target):
        if GATE not in problem.message and problem.path != STATUS:
            yield Breach(problem.path, problem.message)


RULE = relation(
    __name__,
    title="A Workload, a PodGroup and a pod's reference to them are valid for the target Kubernetes",
    why="The API server would refuse the object, or drop the field, when it is applied",
    severity=ERROR,
    blind="Fields that Lockstep does not know; other validation of pods",
    kinds=[WORKLOAD, *GROUPS, POD],
    check=check,
    raw=True,
)
