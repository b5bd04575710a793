"""The parts of a replica: its leader, and its workers, which are alike; what each asks and where it may go."""

from collections.abc import Iterator, Mapping, Sequence

from gangs import keys
from gangs.resources import Requests, pod_requests, to_quantities
from reconciler.objects import Pod, PodSpec
from reconciler.replicas import Sight, worker_template
from schedulers.contract import Role

LEADER = "leader"
WORKER = "worker"


def roles_of(sight: Sight, members: Sequence[Pod], needed: int) -> list[Role]:
    """Compute the roles of a replica.

    Pods that exist count as they are stored, with what other webhooks have added to them; workers that don't yet, by
    the template of their own revision.

    Args:
        sight: the replica's objects.
        members: those of its pods that are placed together.
        needed: how many there are once it is whole.

    Raises:
        gangs.resources.ResourceError: when a template asks for something that is no quantity.
    """
    return [*_leader(sight, members), *_workers(sight, members, needed)]


def _leader(sight: Sight, members: Sequence[Pod]) -> Iterator[Role]:
    leader = sight.leader
    if leader in members:
        asks = pod_requests(leader.spec, leader.status)
        yield Role(LEADER, 1, to_quantities(asks), placement(leader.spec), _labels(sight))


def _workers(sight: Sight, members: Sequence[Pod], needed: int) -> Iterator[Role]:
    workers = [pod for pod in members if pod is not sight.leader]
    number = needed - (len(members) - len(workers))
    template = worker_template(sight)
    if number <= 0 or (not workers and template is None):
        return
    asks = [pod_requests(pod.spec, pod.status) for pod in workers]
    if not asks and template is not None:
        asks = [pod_requests(template, defaulted=True, path="workerTemplate.spec")]
    spec = workers[0].spec if workers else template
    where = placement(spec) if isinstance(spec, PodSpec) else {}
    if _exclusive(sight) and sight.leader.spec.affinity is not None:
        # LWS sends the workers to their leader's domain, which nobody knows before the leader is placed.
        where = {**where, "affinity": sight.leader.spec.affinity}
    yield Role(WORKER, number, to_quantities(_largest(asks)), where, _labels(sight))


def placement(spec: PodSpec) -> dict[str, object]:
    """Give the fields of a pod's spec that say where it may go; only those that are set."""
    fields: Mapping[str, object] = {
        "nodeSelector": spec.node_selector,
        "tolerations": spec.tolerations,
        "affinity": spec.affinity,
    }
    return {name: value for name, value in fields.items() if value}


def _labels(sight: Sight) -> dict[str, str]:
    """Give the label that the terms of exclusive placement look for, where there are such terms."""
    key = sight.member.key
    return {keys.GROUP_KEY: key} if _exclusive(sight) and key is not None else {}


def _exclusive(sight: Sight) -> bool:
    return keys.EXCLUSIVE_TOPOLOGY in sight.leader.annotations


def _largest(amounts: Sequence[Requests]) -> Requests:
    largest: Requests = {}
    for one in amounts:
        for name, amount in one.items():
            largest[name] = max(amount, largest.get(name, 0))
    return largest
