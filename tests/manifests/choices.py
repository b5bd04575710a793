"""What of an object depends on options: several versions of one tree, merged into one tree with choices in it.

Each option's version was made with that option alone. Options that change the same place differently can't be merged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple


class _Absent:
    """Nothing is there."""

    def __repr__(self) -> str:
        """Show it in messages."""
        return "nothing"


ABSENT: Final = _Absent()


class Choice(NamedTuple):
    """A place that options change: what each of them makes of it, and what it is without any."""

    versions: Mapping[str, Any]
    otherwise: Any


class Appended(NamedTuple):
    """Items that an option adds to the end of a list."""

    option: str
    items: Sequence[Any]


class Clash(ValueError):  # noqa: N818 - reads as what it is
    """Two options want the same place."""


def merged(base: Any, versions: Mapping[str, Any], path: str = "") -> Any:
    """Merge a tree with its versions by option; equal places stay as they are.

    Raises:
        Clash: two options change one scalar, or one list other than at its end.
    """
    changed = {option: tree for option, tree in versions.items() if tree != base}
    if not changed:
        return base
    trees = [base, *changed.values()]
    if all(isinstance(tree, dict) for tree in trees):
        names = dict.fromkeys(name for tree in trees for name in tree)
        return {
            name: merged(
                base.get(name, ABSENT),
                {option: tree.get(name, ABSENT) for option, tree in changed.items()},
                f"{path}.{name}",
            )
            for name in names
        }
    if all(isinstance(tree, list) for tree in trees):
        return _merged_lists(base, changed, path)
    if len(changed) > 1:
        raise Clash(f"{path}: must be changed by one option, got {', '.join(changed)}")
    return Choice(changed, base)


def _merged_lists(base: list[Any], changed: Mapping[str, list[Any]], path: str) -> Any:
    """Merge item by item; more items at the end are an option's own. A list that got shorter is taken whole."""
    if any(len(items) < len(base) for items in changed.values()):
        if len(changed) > 1:
            raise Clash(f"{path}: must be cut by one option, got {', '.join(changed)}")
        return Choice(changed, base)
    items: list[Any] = [
        merged(item, {option: each[place] for option, each in changed.items()}, f"{path}[{place}]")
        for place, item in enumerate(base)
    ]
    return items + [Appended(option, each[len(base) :]) for option, each in changed.items() if len(each) > len(base)]
