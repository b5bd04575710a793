"""The API server serves the kind of group that a scheduler wants, in the version that is written."""

from collections.abc import Iterator

import msgspec

from gangs import keys
from policies.findings import ERROR
from policies.group_cases import GROUP_KINDS
from policies.objects import version_of
from policies.registry import Breach, Case, breach, relation
from policies.shapes import LEADER_WORKER_SET, POD, WORKLOAD, LeaderWorkerSet, Pod
from policies.snapshot import memberships, provider_of_kind
from schedulers.contract import GroupKind, Provider
from schedulers.native_objects import API_GROUP
from schedulers.registry import all_providers, usual_schedulers


def check(case: Case) -> Iterator[Breach]:
    """Judge a group object by its version, pods and templates by the scheduler they name."""
    thing, kind = case.thing, case.subject.kind
    if isinstance(thing, Pod):
        if thing.labels.get(keys.LOCKSTEP_GANG) != keys.OPTED_OUT and (thing.lws or memberships(thing)):
            yield from _scheduler(case, "spec.schedulerName", thing)
    elif isinstance(thing, LeaderWorkerSet):
        for path, template in thing.templates.items():
            if template.labels.get(keys.LOCKSTEP_GANG) != keys.OPTED_OUT:
                yield from _scheduler(case, f"{path}.spec.schedulerName", template)
    else:
        yield from _version(case, kind)


def _scheduler(case: Case, path: str, pod: Pod) -> Iterator[Breach]:
    name = usual_schedulers(all_providers()).get(pod.scheduler)
    provider = None if name is None else all_providers()[name]
    if provider is not None and provider.kinds and not _any_served(case, provider):
        titles = " or ".join(kind.title for kind in provider.kinds)
        rule = f"be a scheduler whose groups the API server serves ({titles})"
        yield breach(path, rule, f'"{pod.scheduler}"')


def _any_served(case: Case, provider: Provider) -> bool:
    return any(case.snapshot.serves(kind) is not False for kind in provider.kinds)


def _version(case: Case, kind: str) -> Iterator[Breach]:
    written = _written(case, kind)
    if written is not None and case.snapshot.serves(written) is False:
        yield breach("apiVersion", "be served by the API server", f'"{written.api_version}"')


def _written(case: Case, kind: str) -> GroupKind | None:
    version = version_of(case.subject.content)
    if kind == WORKLOAD:
        return GroupKind(API_GROUP, version, "Workload", "workloads")
    provider = provider_of_kind(kind)
    return None if provider is None else msgspec.structs.replace(provider.kinds[0], version=version)


RULE = relation(
    __name__,
    title="The API server serves the group kind that a scheduler wants, in the version that is written",
    why="The group can't be made, and the scheduler lets its pods wait in silence",
    severity=ERROR,
    blind="Without a cluster, kinds that are installed as CRDs; whether the scheduler itself is installed",
    kinds=[POD, LEADER_WORKER_SET, WORKLOAD, *GROUP_KINDS],
    check=check,
)
