"""Where workers come late, the scheduler makes sure of room for them before their leader starts.

kube-scheduler's groups know no resources, so it can't: a replica whose leader runs may wait for its workers' room.
"""

from collections.abc import Iterator

from gangs import keys, late
from policies.findings import NOTE
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, LeaderWorkerSet
from schedulers.registry import all_providers, usual_schedulers


def check(case: Case) -> Iterator[Breach]:
    """Say what the LWS's scheduler can't promise."""
    lws = case.thing
    assert isinstance(lws, LeaderWorkerSet)  # noqa: S101 - the rule's kind
    template = lws.leader_template
    name = usual_schedulers(all_providers()).get(template.scheduler)
    reason = late.why_late(lws.spec.startup_policy or "", lws.annotations, lws.size)
    if name is None or reason is None or template.labels.get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT:
        return
    provider = all_providers()[name]
    if not provider.late_workers.floor:
        rule = f"make no workers late where {provider.title} can't hold room for them"
        yield breach(
            reason, rule, f"a group that is not protected once its leader runs: {provider.late_workers.promise}"
        )


RULE = relation(
    __name__,
    title="The scheduler makes sure of room for late workers before their leader starts",
    why="The leader may start and hold its devices while there is no room for its workers",
    severity=NOTE,
    blind="Room by node; what other schedulers hold",
    kinds=[LEADER_WORKER_SET],
    check=check,
)
