"""The API server has the feature gates without which it drops fields in silence, a pod's group among them."""

from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.native import find_dropped
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, POD, WORKLOAD, LeaderWorkerSet, Pod
from policies.snapshot import group_kind, placed
from policies.targets import GENERIC_WORKLOAD
from schedulers.native import PROVIDER
from schedulers.registry import all_providers, usual_schedulers

GATE = " while the gate "
"""In the message about a field that a gate decides about; others are unknown to every API server of that version."""


def check(case: Case) -> Iterator[Breach]:
    """Judge objects by the fields that they would lose, an LWS by what the pods of its templates would."""
    subject, thing = case.subject, case.thing
    if not isinstance(thing, LeaderWorkerSet):
        stored = subject.content if subject.stored else subject.old  # what is stored has been kept
        for problem in find_dropped(placed(subject.content), stored, case.target):
            if GATE in problem.message:
                yield Breach(problem.path, problem.message)
    elif not case.target.enabled(GENERIC_WORKLOAD):
        for path, template in thing.templates.items():
            if _is_native(template) and template.labels.get(keys.LOCKSTEP_GANG) != keys.OPTED_OUT:
                rule = f"be a scheduler that has gangs without the feature gate {GENERIC_WORKLOAD}"
                yield breach(f"{path}.spec.schedulerName", rule, f'"{template.scheduler}"', certain=False)


def _is_native(template: Pod) -> bool:
    return usual_schedulers(all_providers()).get(template.scheduler) == PROVIDER.name


RULE = relation(
    __name__,
    title="The API server has the feature gates that keep a pod's group and a group's fields",
    why="With the gate off the API server drops the field without a word, and the pods start one by one",
    severity=ERROR,
    blind="The gates of the scheduler and of the controller manager",
    kinds=[POD, LEADER_WORKER_SET, WORKLOAD, group_kind(PROVIDER)],
    check=check,
)
