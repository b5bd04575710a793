"""The priority class of pods, templates and groups exists."""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, POD, PRIORITY_CLASS, Group, LeaderWorkerSet, Pod, Thing

BUILT_IN = frozenset({"system-cluster-critical", "system-node-critical"})
FIELD = "spec.priorityClassName"


def check(case: Case) -> Iterator[Breach]:
    """Look up what the object names; a file set without any PriorityClass says nothing about them."""
    known = case.snapshot.knows(PRIORITY_CLASS)
    if not known and not case.snapshot.has_any(PRIORITY_CLASS):
        return
    for path, name in _named(case.thing):
        if name not in BUILT_IN and case.snapshot.get(PRIORITY_CLASS, Thing, "", name) is None:
            yield breach(path, "name a PriorityClass that exists", f'"{name}"', certain=known)


def _named(thing: Thing) -> Iterator[tuple[str, str]]:
    places: dict[str, object] = {}
    if isinstance(thing, Group):
        places[FIELD] = thing.spec.get("priorityClassName")
    elif isinstance(thing, Pod) and thing.lws is not None:
        places[FIELD] = thing.spec.priority_class_name
    elif isinstance(thing, LeaderWorkerSet):
        places = {f"{path}.{FIELD}": pod.spec.priority_class_name for path, pod in thing.templates.items()}
    yield from ((path, name) for path, name in places.items() if isinstance(name, str) and name)


RULE = relation(
    __name__,
    title="The priority class of a pod, a template or a group exists",
    why="The API server refuses pods of an unknown class, and native groups too: the replica is never made",
    severity=ERROR,
    blind="In files, classes that only the cluster has",
    kinds=[POD, LEADER_WORKER_SET, *GROUP_KINDS],
    check=check,
)
