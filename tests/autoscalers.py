"""`docs/autoscalers.md`, rendered from the providers and from the pods that were recorded waiting."""

from collections.abc import Iterable, Mapping
from typing import Final

from schedulers.contract import Provider, Waiting
from tests.schedulers.promised_files import cases_of

WAITS: Final[Mapping[str, str]] = {"capacity": "for room", "members": "for members", "group": "for its group"}
"""Field of `Waiting` -> what the pods wait for."""

HEAD: Final = """\
# Autoscalers

Rendered from the providers by `make render`.

Cluster Autoscaler and Karpenter make nodes for pods whose condition `PodScheduled` is False with the reason
`Unschedulable`, and for no others. So pods of a replica that waits for room should carry that reason; those that wait
for other members, or for Lockstep (their group object, or its gate), should not. This is what each scheduler writes; a
dash is no condition at all.

"""

TAIL: Final = """
Each reason is that of a recorded pod where one is named, and is held against the real scheduler in
[tests/cluster/test_autoscalers.py](../tests/cluster/test_autoscalers.py) where it can be run; Gödel's is read from its
source. Where a replica looks wrong, `lockstep status` says so in the replica's row, and as `autoscaler` in JSON: it
looks at the pods themselves, since conditions go stale (a gate's reason outlives the gate while the scheduler writes
nothing).

With Kueue beside Lockstep, pods are gated until there is quota, and no autoscaler sees them before.
"""


def autoscalers_page(providers: Iterable[Provider]) -> str:
    """Render the page for some providers."""
    rows = [("scheduler", *(f"waits {what}" for what in WAITS.values()), "looks right", "what to know", "recorded")]
    rows += [("---",) * len(rows[0])]
    rows += [_row(provider) for provider in sorted(providers, key=lambda provider: provider.name)]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + TAIL


def _row(provider: Provider) -> tuple[str, ...]:
    waiting, recorded = provider.waiting, cases_of(provider).waiting
    return (
        provider.title,
        *(_reason(waiting, field) for field in WAITS),
        "yes" if waiting.looks_right else "**no**",
        waiting.remark or "-",
        ", ".join(f"`{name}`" for name in recorded.values()) or "-",
    )


def _reason(waiting: Waiting, field: str) -> str:
    reason = getattr(waiting, field)
    shown = f"`{reason}`" if reason else "-"
    if field == "capacity" and waiting.stand_ins:
        return f"{shown}, on placeholders `{waiting.stand_ins}`"
    return shown
