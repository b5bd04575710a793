"""The resources a group asks for before it starts cover the whole replica."""

from collections.abc import Iterator, Mapping

from gangs.quantities import QuantityError, format_quantity, read_quantity
from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS, judged_group
from policies.registry import Breach, Case, breach, relation

FIELD = "minResources"


def check(case: Case) -> Iterator[Breach]:
    """Compare resource by resource, exactly."""
    seen = judged_group(case)
    if seen is None or not seen.provider.late_workers.floor:
        return
    floor = seen.group.spec.get(FIELD)
    listed = floor if isinstance(floor, Mapping) else {}
    for name, amount in sorted((seen.replica.requests() or {}).items()):
        if amount > 0 and _amount(listed.get(name)) < amount:
            rule = f"be at least {format_quantity(amount, name)}, what the {seen.size} pods of replica"
            got = f'"{listed[name]}"' if name in listed else "nothing"
            rule = f'{rule} "{seen.replica.name}" ask for'
            yield breach(f"spec.{FIELD}[{name}]", rule, got, certain=not seen.replica.guessed)


def _amount(value: object) -> int:
    try:
        return read_quantity(value) if isinstance(value, str | int | float) else 0
    except QuantityError:
        return 0


RULE = relation(
    __name__,
    title="A group's minResources cover the whole replica",
    why="Without a floor the group is taken for best effort; with one too low it is let in where it can't fit",
    severity=ERROR,
    blind="Room by node: schedulers compare sums. Schedulers whose groups know no resources, such as kube-scheduler",
    kinds=GROUP_KINDS,
    check=check,
)
