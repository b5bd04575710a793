"""YuniKorn: every pod names a task group that its leader lists, and the list's minimums add up to the replica.

A pod whose task group is not in the list never leaves the gang phase (apache/yunikorn-k8shim#403).
"""

import json
from collections.abc import Iterator, Mapping

from gangs import keys
from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, Pod

TASK_GROUP = "yunikorn.apache.org/task-group-name"
TASK_GROUPS = "yunikorn.apache.org/task-groups"
LONGEST = 1 << 18
"""Characters: all annotations of an object together may not be more."""


def check(case: Case) -> Iterator[Breach]:
    """Judge the list on a pod that has one, and the name on every pod."""
    pod = case.thing
    assert isinstance(pod, Pod)  # noqa: S101 - the rule's kind
    if pod.lws is None:
        return
    groups = _listed(pod)
    if pod.leads and groups is not None:
        yield from _sum(pod, groups)
    leader = case.snapshot.get(POD, Pod, pod.metadata.namespace, pod.annotations.get(keys.LEADER_NAME, ""))
    listed = _listed(pod if pod.leads or leader is None else leader)
    name = pod.annotations.get(TASK_GROUP)
    if name is not None and listed is not None and name not in listed:
        choices = ", ".join(f'"{each}"' for each in sorted(listed)) or "none"
        rule = f"name a task group that the leader lists ({choices})"
        yield breach(f"metadata.annotations[{TASK_GROUP}]", rule, f'"{name}"')


def _sum(pod: Pod, groups: Mapping[str, int]) -> Iterator[Breach]:
    size, total = pod.annotations.get(keys.SIZE, ""), sum(groups.values())
    if size.isascii() and size.isdigit() and size.lstrip("0") != str(total):
        rule = f"have minimums that add up to {size}, the pods of the replica"
        yield breach(f"metadata.annotations[{TASK_GROUPS}]", rule, str(total))


def _listed(pod: Pod) -> dict[str, int] | None:
    text = pod.annotations.get(TASK_GROUPS)
    if text is None or len(text) > LONGEST:
        return None
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    named = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {str(item.get("name")): _minimum(item.get("minMember")) for item in named}


def _minimum(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


RULE = relation(
    __name__,
    title="YuniKorn's task groups are listed on the leader and cover the replica",
    why="A pod whose task group is missing from the list never leaves the gang phase",
    severity=ERROR,
    blind="Resources of the task groups; leaders that are not among the reviewed objects",
    kinds=[POD],
    check=check,
)
