"""An LWS pod in a group is made by its replica's own StatefulSet, by UID: labels and names can be forged."""

from collections.abc import Iterator

from gangs.keys import LWS_KIND
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, STATEFUL_SET, OwnerReference, Pod, StatefulSet
from policies.snapshot import memberships

PATH = "metadata.ownerReferences"
SET = "StatefulSet"


def check(case: Case) -> Iterator[Breach]:
    """Follow the chain of controllers of a member, as far as it is known."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    pod = case.thing
    owner = pod.metadata.controller
    if pod.lws is None or owner is None or owner.kind != SET or not memberships(pod):
        return
    made_by = case.snapshot.get(STATEFUL_SET, StatefulSet, pod.metadata.namespace, owner.name)
    if made_by is None:
        if case.snapshot.knows(STATEFUL_SET):
            yield breach(PATH, "name a StatefulSet that exists", f'"{owner.name}"')
    elif made_by.metadata.uid and made_by.metadata.uid != owner.uid:
        rule = f'name the UID "{made_by.metadata.uid}" of StatefulSet "{owner.name}"'
        yield breach(PATH, rule, f'"{owner.uid}"')
    else:
        yield from _maker(case, pod, made_by)


def _maker(case: Case, pod: Pod, made_by: StatefulSet) -> Iterator[Breach]:
    """Judge who controls the StatefulSet: the LWS for leaders, the leader for workers."""
    name, owner = made_by.metadata.name, made_by.metadata.controller
    wanted = LWS_KIND if pod.leads else POD
    if owner is None or owner.kind != wanted or (pod.leads and owner.name != pod.lws):
        maker = f'{LWS_KIND} "{pod.lws}"' if pod.leads else "its leader pod"
        yield breach(PATH, f"name a StatefulSet that {maker} controls", f'"{name}" of {_shown(owner)}')
        return
    leader = case.snapshot.get(POD, Pod, pod.metadata.namespace, owner.name)
    if not pod.leads and leader is not None and leader.metadata.uid and leader.metadata.uid != owner.uid:
        rule = f'name a StatefulSet of the living leader "{owner.name}"'
        yield breach(PATH, rule, f'"{name}" of a leader with another UID')


def _shown(owner: OwnerReference | None) -> str:
    return "nobody" if owner is None else f'{owner.kind} "{owner.name}"'


RULE = relation(
    __name__,
    title="A member of a replica's group is made by that replica's StatefulSet",
    why="A pod with forged labels would be counted as a member, and a whole replica would start with one pod missing",
    severity=ERROR,
    blind="StatefulSets that are not among the reviewed objects; in files, objects that have no UID yet",
    kinds=[POD],
    check=check,
)
