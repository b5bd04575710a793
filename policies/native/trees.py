"""Rules over a Workload's whole tree of templates (1.37): names, depth, children, one priority.

Source: pkg/apis/scheduling/validation/validation.go of kubernetes/kubernetes 1.37, which runs on create and update.
"""

from collections.abc import Iterator
from typing import Any, Final

from policies.native.fields import DEEPEST_TREE
from policies.native.preparing import Json
from policies.native.problems import DUPLICATE, INVALID, Path, Problem, problem

_LEAVES: Final = "podGroupTemplates"
_BRANCHES: Final = "compositePodGroupTemplates"


def tree_problems(spec: Json) -> Iterator[Problem]:
    """Find what is wrong with the templates of a Workload's spec taken together."""
    yield from _repeated_names(spec, ("spec",), {leaf.get("name") for leaf in spec.get(_LEAVES, ())})
    for index, branch in enumerate(spec.get(_BRANCHES, ())):
        path = ("spec", _BRANCHES, index)
        if _levels(branch) > DEEPEST_TREE:
            yield problem(path, INVALID, f"be a tree of at most {DEEPEST_TREE} levels", _levels(branch))
        yield from _childless(branch, path)
    priorities = {(item.get("priorityClassName"), item.get("priority")) for item in _all(spec)}
    if len(priorities) > 1:
        yield problem(
            "spec", INVALID, "have one priorityClassName and one priority in all templates", _told(priorities)
        )


def _repeated_names(node: Json, path: Path, names: set[Any]) -> Iterator[Problem]:
    """Find names that other lists of the tree have; those of one list are the schema's business."""
    branches = node.get(_BRANCHES, [])
    for index, branch in enumerate(branches):
        yield from _repeated(branch, (*path, _BRANCHES, index), names)
    names |= {branch.get("name") for branch in branches}
    for index, branch in enumerate(branches):
        where = (*path, _BRANCHES, index)
        leaves = branch.get(_LEAVES, [])
        for position, leaf in enumerate(leaves):
            yield from _repeated(leaf, (*where, _LEAVES, position), names)
        names |= {leaf.get("name") for leaf in leaves}
        yield from _repeated_names(branch, where, names)


def _repeated(item: Json, path: Path, names: set[Any]) -> Iterator[Problem]:
    if item.get("name") in names:
        yield problem((*path, "name"), DUPLICATE, "be unique in the whole tree of templates", item.get("name"))


def _levels(branch: Json) -> int:
    """Count levels; every composite template is taken to have leaves below it."""
    return 1 + max(map(_levels, branch.get(_BRANCHES, ())), default=1)


def _childless(branch: Json, path: Path) -> Iterator[Problem]:
    if _LEAVES not in branch and _BRANCHES not in branch:
        yield problem(path, INVALID, f"have at least one of {_LEAVES}, {_BRANCHES}", branch.get("name"))
    for index, child in enumerate(branch.get(_BRANCHES, ())):
        yield from _childless(child, (*path, _BRANCHES, index))


def _all(node: Json) -> Iterator[Json]:
    yield from node.get(_LEAVES, ())
    for branch in node.get(_BRANCHES, ()):
        yield branch
        yield from _all(branch)


def _told(priorities: set[tuple[Any, Any]]) -> list[str]:
    return sorted(f"{name or 'no class'}/{'unset' if number is None else number}" for name, number in priorities)
