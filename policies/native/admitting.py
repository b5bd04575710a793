"""What admission plugins of the API server say by looking at other objects.

Sources in kubernetes/kubernetes: plugin/pkg/admission/podgroup (1.36 only, removed by PR 139008);
plugin/pkg/admission/scheduling/podgroupprotection (refuses pods from 1.38.0-alpha.2 on, PR 141021).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.native.preparing import Json
from policies.native.problems import FORBIDDEN, Problem, problem
from policies.native.shapes import value_at
from policies.targets import ALPHA_138, GENERIC_WORKLOAD, Target

_GROUP: Final = "scheduling.k8s.io/"


def admission_problems(content: Json, existing: Sequence[Mapping[str, Any]], target: Target) -> Iterator[Problem]:
    """Find why a new object is refused because of others.

    Args:
        content: the prepared object.
        existing: all objects there are, of any kind, in any namespace.
        target: version and gates decide which plugins there are.
    """
    if not target.enabled(GENERIC_WORKLOAD):
        return
    if target.version == "1.36" and content["kind"] == "PodGroup":
        yield from _workload_exists(content, existing)
    if target.version == ALPHA_138 and content["kind"] == "Pod":
        yield from _group_lives(content, existing)


def _workload_exists(group: Json, existing: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    path = ("spec", "podGroupTemplateRef", "workload")
    reference = value_at(group, path)
    if not isinstance(reference, dict):
        return
    name, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
    workload = _find("Workload", name, group, existing)
    if workload is None:
        yield problem((*path, "workloadName"), FORBIDDEN, "be the name of an existing Workload", name)
    elif _ends(workload):
        yield problem((*path, "workloadName"), FORBIDDEN, "be the name of a Workload that is not being deleted", name)
    elif template not in _templates(workload):
        yield problem((*path, "podGroupTemplateName"), FORBIDDEN, "be a template of that Workload", template)


def _group_lives(pod: Json, existing: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    path = ("spec", "schedulingGroup", "podGroupName")
    name = value_at(pod, path)
    group = _find("PodGroup", name, pod, existing)
    if group is not None and _ends(group):
        yield problem(path, FORBIDDEN, "be the name of a PodGroup that is not being deleted", name)


def _find(kind: str, name: object, near: Json, existing: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    namespace = value_at(near, ("metadata", "namespace"))
    for other in existing:
        where = (value_at(other, ("metadata", "namespace")), value_at(other, ("metadata", "name")))
        of_group = str(other.get("apiVersion")).startswith(_GROUP)
        if of_group and other.get("kind") == kind and where == (namespace, name):
            return other
    return None


def _ends(item: Mapping[str, Any]) -> bool:
    return value_at(item, ("metadata", "deletionTimestamp")) is not None


def _templates(workload: Mapping[str, Any]) -> list[object]:
    templates = value_at(workload, ("spec", "podGroupTemplates"))
    return [value_at(item, ("name",)) for item in templates] if isinstance(templates, list) else []
