"""A PodGroup, and a pod of Kubernetes 1.35, agree with the Workload template that they name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.findings import ERROR
from policies.objects import value_at
from policies.registry import Breach, Case, breach, relation
from policies.shapes import POD, WORKLOAD, Group
from policies.snapshot import group_kind
from schedulers.native import PROVIDER

REFERENCES = (
    ("spec.workloadRef", "workloadName", "templateName"),
    ("spec.podGroupTemplateRef.workload", "workloadName", "podGroupTemplateName"),
)
"""Where a PodGroup names its template: 1.37, 1.36."""

POD_REFERENCE = ("spec.workloadRef", "name", "podGroup")
AGREE = ("schedulingPolicy", "priorityClassName", "disruptionMode")
"""Fields of a template that a PodGroup takes over."""
MINIMUM = "schedulingPolicy.gang.minCount"

Json = Mapping[str, Any]


def check(case: Case) -> Iterator[Breach]:
    """Follow the reference, then compare field by field."""
    references = REFERENCES if isinstance(case.thing, Group) else (POD_REFERENCE,)
    for path, workload_field, template_field in references:
        reference = value_at(case.subject.content, path)
        if isinstance(reference, Mapping):
            names = reference.get(workload_field), reference.get(template_field)
            yield from _follow(case, (f"{path}.{workload_field}", f"{path}.{template_field}"), names)


def _follow(case: Case, paths: tuple[str, str], names: tuple[object, object]) -> Iterator[Breach]:
    if not isinstance(names[0], str) or not isinstance(names[1], str):
        return
    workload = case.snapshot.get(WORKLOAD, Group, case.thing.metadata.namespace, names[0])
    if workload is None:
        known = case.snapshot.knows(WORKLOAD)
        yield breach(paths[0], "name a Workload that exists in its namespace", f'"{names[0]}"', certain=known)
        return
    template = next((each for each in _templates(workload.spec) if each.get("name") == names[1]), None)
    if template is None:
        yield breach(paths[1], f'name a template of Workload "{names[0]}"', f'"{names[1]}"')
    elif isinstance(case.thing, Group):
        yield from _compare(case.thing.spec, template, names[1])


def _templates(spec: Json) -> Sequence[Json]:
    listed = [*_list(spec.get("podGroupTemplates")), *_list(spec.get("podGroups"))]
    return [each for each in listed if isinstance(each, Mapping)]


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _compare(spec: Json, template: Json, name: str) -> Iterator[Breach]:
    for path, ours, theirs in _leaves(AGREE, spec, template):
        if theirs is not None and ours != theirs and not _raised(path, ours, theirs):
            yield breach(f"spec.{path}", f'{_rule(theirs)} as in template "{name}"', _shown(ours))


def _raised(path: str, ours: object, theirs: object) -> bool:
    """Tell whether a minimum has been raised since, as it is when late workers have come."""
    return path == MINIMUM and isinstance(ours, int) and isinstance(theirs, int) and ours > theirs


def _leaves(fields: Sequence[str], ours: Json, theirs: Json) -> Iterator[tuple[str, object, object]]:
    for field in fields:
        mine, other = ours.get(field), theirs.get(field)
        if isinstance(other, Mapping) and other and isinstance(mine, Mapping):
            below = _leaves(sorted(other), mine, other)
            yield from ((f"{field}.{path}", one, two) for path, one, two in below)
        else:
            yield field, mine, other


def _rule(value: object) -> str:
    return "be set" if isinstance(value, Mapping) else f"be {_shown(value)}"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    return f'"{value}"' if isinstance(value, str) else str(value)


RULE = relation(
    __name__,
    title="Workload, template and PodGroup agree",
    why="The scheduler reads the PodGroup alone: what the Workload promises would silently not hold",
    severity=ERROR,
    blind="In files, Workloads that only the cluster has; composite templates",
    kinds=[group_kind(PROVIDER), POD],
    check=check,
)
