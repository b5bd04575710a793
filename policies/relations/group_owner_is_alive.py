"""The pod that controls a group object exists, with the UID that the reference names.

After a fast recreation the group of the dead leader is still there under the same name, and is collected later
(kubernetes-sigs/lws#1054).
"""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Group, OwnerReference, Pod


def check(case: Case) -> Iterator[Breach]:
    """Look the controlling pod up."""
    group = case.thing
    if not isinstance(group, Group) or group.leaving:
        return
    for number, owner in enumerate(group.metadata.owner_references or ()):
        if owner.controller and owner.kind == POD:
            yield from _judge(case, group, f"metadata.ownerReferences[{number}]", owner)


def _judge(case: Case, group: Group, path: str, owner: OwnerReference) -> Iterator[Breach]:
    pod = case.snapshot.get(POD, Pod, group.metadata.namespace, owner.name)
    if pod is None:
        yield breach(f"{path}.name", "name a pod that exists", f'"{owner.name}"', certain=case.snapshot.knows(POD))
    elif pod.metadata.uid and pod.metadata.uid != owner.uid:
        rule = f'be "{pod.metadata.uid}", the UID of pod "{owner.name}"'
        yield breach(f"{path}.uid", rule, f'"{owner.uid}"')


RULE = relation(
    __name__,
    title="The pod that controls a group is alive and has the UID that the group names",
    why="A group of a dead leader is collected under its successor's members, which then wait for ever",
    severity=ERROR,
    blind="Owners that are no pods; in files, pods that have no UID yet",
    kinds=GROUP_KINDS,
    check=check,
)
