"""A pod is placed by the scheduler that knows its group.

The commonest mistake: pods are stamped, but `schedulerName` stands on one template only, or on none
(volcano-sh/volcano#4005).
"""

from collections.abc import Iterator

from policies.findings import ERROR
from policies.registry import Breach, Case, breach, relation
from policies.shapes import DEFAULT_SCHEDULER, POD, Pod
from policies.snapshot import memberships
from schedulers.registry import all_providers, usual_schedulers

PLUGINS = frozenset({"coscheduling"})
"""Providers that a site may build into its default scheduler."""


def check(case: Case) -> Iterator[Breach]:
    """Compare the pod's scheduler with that of each of its groups; a scheduler of an unknown name is left alone."""
    assert isinstance(case.thing, Pod)  # noqa: S101 - the rule's kind
    scheduler = case.thing.scheduler
    if scheduler not in usual_schedulers(all_providers()):
        return
    for membership in memberships(case.thing):
        provider, claim = membership.provider, membership.claim
        if scheduler not in provider.scheduler_names:
            wanted = " or ".join(f'"{name}"' for name in provider.scheduler_names)
            built_in = scheduler == DEFAULT_SCHEDULER and provider.name in PLUGINS
            rule = f"be {wanted}, which knows the group of {claim.path}"
            yield breach("spec.schedulerName", rule, f'"{scheduler}"', certain=not built_in)


RULE = relation(
    __name__,
    title="A pod names the scheduler that knows its group",
    why="Another scheduler does not read the stamp: it places the pod by itself, or never",
    severity=ERROR,
    blind="Schedulers under names that are not their usual ones; whether the default scheduler has a gang plugin",
    kinds=[POD],
    check=check,
)
