"""A pod with Lockstep's label has the stamp of its scheduler, for the same group.

An API server whose gate GenericWorkload is off drops `spec.schedulingGroup` in silence.
"""

from collections.abc import Iterator

from gangs import keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Pod, stamped
from schedulers.contract import Provider
from schedulers.registry import all_providers, usual_schedulers


def check(case: Case) -> Iterator[Breach]:
    """Compare label and stamp; a scheduler of an unknown name is left alone."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    pod = case.thing
    group = pod.labels.get(keys.LOCKSTEP_GROUP)
    name = usual_schedulers(all_providers()).get(pod.scheduler)
    if group is None or name is None or pod.finished:
        return
    provider = all_providers()[name]
    claim = provider.claim(pod)
    if claim is None or claim.group != group:
        rule = f'be "{group}", as the label {keys.LOCKSTEP_GROUP} says'
        yield breach(_path(provider, group), rule, "nothing" if claim is None else f'"{claim.group}"')


def _path(provider: Provider, group: str) -> str:
    claim = provider.claim(stamped(provider.stamp(group, leader=True)))
    return "metadata" if claim is None else claim.path


RULE = relation(
    __name__,
    title="A pod with Lockstep's label carries its scheduler's stamp for the same group",
    why="The API server has dropped the field, or somebody has changed the stamp: the pod is in no gang",
    severity=ERROR,
    blind="Schedulers under names that are not their usual ones",
    kinds=[POD],
    check=check,
)
