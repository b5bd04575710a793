"""The README's table of schedulers, rendered from the providers."""

import sys
from collections.abc import Iterable, Mapping
from typing import Final

from gangs import keys
from schedulers.contract import Provider, Stamp
from schedulers.registry import all_providers

HEADINGS: Final = (
    "provider",
    "scheduler",
    "`spec.schedulerName`",
    "stamp on pods",
    "group object",
    "late workers",
    "words",
)


def provider_table(providers: Mapping[str, Provider]) -> str:
    """Render a Markdown table, one provider a row, sorted by name, with a newline at the end."""
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    rows += [_row(provider) for _, provider in sorted(providers.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(provider: Provider) -> tuple[str, ...]:
    return (
        f"`{provider.name}`",
        provider.title,
        _codes(provider.scheduler_names),
        _stamp(provider.stamp("group", leader=True)),
        _codes(kind.title for kind in provider.kinds) or "none",
        provider.late_workers.promise.replace("|", r"\|"),
        _codes(sorted(provider.words)) or "none",
    )


def _stamp(stamp: Stamp) -> str:
    parts = []
    if stamp.scheduling_group is not None:
        parts.append("`spec.schedulingGroup.podGroupName`")
    if stamp.workload_ref is not None:
        parts.append("`spec.workloadRef`")
    for what, values in (("label", stamp.labels), ("annotation", stamp.annotations)):
        if values:
            parts.append(f"{what} {_codes(sorted(values))}")
    if stamp.gated:
        parts.append(f"gate `{keys.GATE}`")
    return "; ".join(parts)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(provider_table(all_providers()))
