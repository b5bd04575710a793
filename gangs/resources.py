"""What a pod, and a whole replica, asks of the cluster: the scheduler's own arithmetic, in exact integers.

Follows `PodRequests` of k8s.io/component-helpers `resource/helpers.go` with the options that kube-scheduler 1.37 sets.
Left out: amounts that DRA claims add to a pod (gate DRANodeAllocatableResources, alpha and off by default), and the
guesses for containers without requests, which only score nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from gangs.quantities import NANO, QuantityError, QuantityValue, equal_quantities, format_quantity, read_quantity
from gangs.shapes import (
    NOTHING,
    Container,
    ContainerResources,
    ContainerStatus,
    HasResources,
    MeasuredPod,
    PodCondition,
    PodResources,
    PodStatusResources,
    ResourceList,
    spec_lists,
    status_lists,
)

__all__ = [
    "Container",
    "ContainerResources",
    "ContainerStatus",
    "HasResources",
    "MeasuredPod",
    "PodCondition",
    "PodResources",
    "PodStatusResources",
    "Requests",
    "ResourceError",
    "ResourceList",
    "add",
    "equal_resources",
    "pod_requests",
    "replica_requests",
    "scale",
    "template_requests",
    "to_quantities",
]

Requests: TypeAlias = dict[str, int]
"""Resource name to amount in units of 1e-9."""

_MILLI = NANO // 1000
_POD_LEVEL = frozenset({"cpu", "memory"})
_HUGE_PAGES = "hugepages-"


class ResourceError(ValueError):
    """A pod that the API server refuses because of one of its quantities.

    Attributes:
        path: the field, such as `spec.containers[0].resources.requests[nvidia.com/gpu]`.
        reason: the rule and the culprit, such as `must be a quantity, got "8x"`.
    """

    def __init__(self, path: str, reason: str) -> None:
        """Say which field breaks which rule."""
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


_Amount: TypeAlias = Callable[[QuantityValue], int]
_Wanted: TypeAlias = Callable[[Container], ResourceList]


def pod_requests(
    spec: PodResources, status: PodStatusResources | None = None, *, defaulted: bool = False, path: str = "spec"
) -> Requests:
    """Compute what the scheduler counts for one pod.

    For each resource the larger of all containers and sidecars running and each step of the initialisation, pod-level
    requests in their place where they are set, plus the overhead. A status counts for a resize in place: the largest
    of what is asked, promised and in force, without what is asked once the node called it infeasible.

    Args:
        spec: the pod's spec or a template's.
        status: the pod's status; None counts the spec alone.
        defaulted: apply what the API server does when it stores a pod (a limit is also the request where that is
            missing, finer than 1/1000 is rounded up). For templates; stored pods have had it.
        path: where the spec stands, for messages.

    Raises:
        ResourceError: a quantity that the API server refuses; names its field.
    """
    try:
        return _pod_requests(spec, status, defaulted=defaulted)
    except QuantityError as error:
        raise _located(spec, status, path) from error


def template_requests(leader: PodResources | None, worker: PodResources, size: int) -> Requests:
    """Compute a whole replica from its two templates; without a leader template LWS makes the leader from the worker's.

    Raises:
        ResourceError: a quantity that the API server refuses; names its field.
    """
    first = pod_requests(leader, defaulted=True, path="leaderTemplate.spec") if leader else None
    each = pod_requests(worker, defaulted=True, path="workerTemplate.spec")
    return add(each if first is None else first, scale(each, size - 1))


def replica_requests(
    leader: HasResources, workers: Sequence[HasResources], worker_template: PodResources | None, size: int
) -> Requests:
    """Compute a whole replica: the pods that exist as they are stored, the missing ones from the worker template.

    Pods that exist always count, also beyond `size`, which can be too small on replicas of an old revision.

    Args:
        leader: the leader pod.
        workers: the worker pods that exist.
        worker_template: the worker template of the replica's own revision; not needed once all workers exist.
        size: how many pods the replica has, the leader included.

    Raises:
        ResourceError: a quantity that the API server refuses, or workers are missing and there is no template.
    """
    parts = [pod_requests(leader.spec, leader.status, path="leader.spec")]
    parts += (pod_requests(pod.spec, pod.status, path=f"workers[{i}].spec") for i, pod in enumerate(workers))
    missing = size - 1 - len(workers)
    if missing > 0:
        if worker_template is None:
            raise ResourceError("workerTemplate", f"must be given while workers are missing, got none for {missing}")
        parts.append(scale(pod_requests(worker_template, defaulted=True, path="workerTemplate.spec"), missing))
    return add(*parts)


def add(*parts: Mapping[str, int]) -> Requests:
    """Add up resource by resource."""
    total: Requests = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def scale(requests: Mapping[str, int], times: int) -> Requests:
    """Multiply each resource."""
    return {name: amount * times for name, amount in requests.items()}


def to_quantities(requests: Mapping[str, int]) -> dict[str, str]:
    """Write requests as a resource list, for `minResources` of a PodGroup or `minResource` of a task group.

    Plain resource names in their order. Zeros are left out: neither Volcano (enqueue) nor coscheduling
    (`CheckClusterResource`) gains anything from them, and both look a name up on every node.
    """
    return {name: format_quantity(amount, name) for name, amount in sorted(requests.items()) if amount}


def equal_resources(left: Mapping[str, QuantityValue] | None, right: Mapping[str, QuantityValue] | None) -> bool:
    """Tell whether two resource lists ask for the same, however it is written; a missing name is zero."""
    one, other = left or NOTHING, right or NOTHING
    return all(equal_quantities(one.get(name), other.get(name)) for name in one.keys() | other.keys())


@lru_cache(maxsize=4096)
def _exact(value: QuantityValue) -> int:
    amount = read_quantity(value)
    if amount < 0:
        raise QuantityError(f'must not be negative, got "{value}"')
    return amount


@lru_cache(maxsize=4096)
def _stored(value: QuantityValue) -> int:
    """The amount as the API server keeps it in a pod: `SetDefaults_ResourceList` rounds up to thousandths."""
    return -(-_exact(value) // _MILLI) * _MILLI


def _pod_requests(spec: PodResources, status: PodStatusResources | None, *, defaulted: bool) -> Requests:
    amount = _stored if defaulted else _exact
    if status is None:
        total = _aggregate(spec, _asked_by_default if defaulted else _asked, amount)
    else:
        total = _aggregate_with_status(spec, status, amount)
    if spec.resources:
        total |= _pod_level(spec.resources, status, total if defaulted else None, amount)
    if spec.overhead:
        _add_list(total, spec.overhead, amount)
    return total


def _add_list(total: Requests, listed: ResourceList, amount: _Amount) -> None:
    for name, value in listed.items():
        total[name] = total.get(name, 0) + amount(value)


def _raise_to(total: Requests, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _read(listed: ResourceList, amount: _Amount) -> Requests:
    return {name: amount(value) for name, value in listed.items()}


def _asked(container: Container) -> ResourceList:
    return (container.resources and container.resources.requests) or NOTHING


def _asked_by_default(container: Container) -> ResourceList:
    if not container.resources:
        return NOTHING
    limits = container.resources.limits or NOTHING
    _read(limits, _stored)  # a limit that is refused spoils the pod, also beside a good request
    return limits | (container.resources.requests or NOTHING)


def _aggregate(spec: PodResources, wanted: _Wanted, amount: _Amount) -> Requests:
    total: Requests = {}
    for container in spec.containers or ():
        _add_list(total, wanted(container), amount)
    if spec.init_containers:
        _include_init(total, spec.init_containers, wanted, amount)
    return total


def _include_init(total: Requests, containers: Sequence[Container], wanted: _Wanted, amount: _Amount) -> None:
    """Add the sidecars, then raise to the largest step: an init container and the sidecars that started before it.

    https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/753-sidecar-containers
    """
    sidecars: Requests = {}
    peak: Requests = {}
    for container in containers:
        listed = wanted(container)
        if container.restart_policy == "Always":
            _add_list(total, listed, amount)
            _add_list(sidecars, listed, amount)
            _raise_to(peak, sidecars)
        else:
            step = dict(sidecars)
            _add_list(step, listed, amount)
            _raise_to(peak, step)
    _raise_to(total, peak)


def _aggregate_with_status(spec: PodResources, status: PodStatusResources, amount: _Amount) -> Requests:
    infeasible = _resize_infeasible(status)
    asked = {} if infeasible else _aggregate(spec, _asked, amount)
    silent = not status.container_statuses and not status.init_container_statuses
    if silent and not infeasible and status.allocated_resources is None:
        return asked
    for listed in _given(spec, status, amount, infeasible=infeasible):
        _raise_to(asked, listed)
    return asked


def _resize_infeasible(status: PodStatusResources) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _given(
    spec: PodResources, status: PodStatusResources, amount: _Amount, *, infeasible: bool
) -> tuple[Requests, Requests]:
    """What the node promised, and what is in force: for the pod where its status says so, else by container."""
    in_force = status.resources.requests if status.resources else None
    if status.allocated_resources is not None and in_force is not None:
        return _read(status.allocated_resources, amount), _read(in_force, amount)
    by_name: dict[str | None, ContainerStatus] = {}
    for known in chain(status.container_statuses or (), status.init_container_statuses or ()):
        by_name.setdefault(known.name, known)

    def unknown(container: Container) -> ResourceList:
        return NOTHING if infeasible else _asked(container)

    def promised(container: Container) -> ResourceList:
        known = by_name.get(container.name)
        listed = known.allocated_resources if known else None
        return unknown(container) if listed is None else listed

    def actuated(container: Container) -> ResourceList:
        known = by_name.get(container.name)
        listed = known.resources.requests if known and known.resources else None
        return promised(container) if listed is None else listed

    return _aggregate(spec, promised, amount), _aggregate(spec, actuated, amount)


def _supported(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _pod_level(
    resources: ContainerResources, status: PodStatusResources | None, defaults: Requests | None, amount: _Amount
) -> Requests:
    """The requests of the pod as a whole that stand in for those of its containers."""
    asked = _read(resources.requests or NOTHING, amount)
    if defaults is not None:
        for name, limit in _read(resources.limits or NOTHING, amount).items():
            # Huge pages can't be overcommitted, so there the limit wins over the containers' sum.
            if name not in asked and (name not in defaults or name.startswith(_HUGE_PAGES)):
                asked[name] = limit
    if not any(map(_supported, asked)):
        return {}
    if status is not None and status.resources is not None:
        if _resize_infeasible(status):
            asked = {}
        _raise_to(asked, _read(status.resources.requests or NOTHING, amount))
        _raise_to(asked, _read(status.allocated_resources or NOTHING, amount))
    return {name: value for name, value in asked.items() if _supported(name)}


def _located(spec: PodResources, status: PodStatusResources | None, path: str) -> ResourceError:
    """Find the first field whose quantity is refused; only called when there is one."""
    for where, listed in chain(spec_lists(spec, path), status_lists(status, f"{path.removesuffix('spec')}status")):
        for name, value in listed.items():
            try:
                _exact(value)
            except QuantityError as error:
                return ResourceError(f"{where}[{name}]", str(error))
    raise AssertionError("a quantity was refused that no list holds")
