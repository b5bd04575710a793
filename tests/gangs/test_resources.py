"""Requests of pods and replicas: each rule of the scheduler's arithmetic, and exactness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangs.quantities import NANO, parse_quantity
from gangs.resources import (
    MeasuredPod,
    PodResources,
    PodStatusResources,
    ResourceError,
    add,
    equal_resources,
    pod_requests,
    replica_requests,
    scale,
    template_requests,
    to_quantities,
)

if TYPE_CHECKING:
    import random

Json = dict[str, Any]


def _container(name: Any = "main", restart: Any = None, limits: Any = None, **requests: Any) -> Json:
    """A container that requests `cpu="1"`; a sidecar with `restart="Always"`."""
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests, "limits": limits}}


def _spec(*containers: Json, **fields: Any) -> PodResources:
    return msgspec.convert({"containers": list(containers), **fields}, PodResources)


def _status(**fields: Any) -> PodStatusResources:
    return msgspec.convert(fields, PodStatusResources)


_INFEASIBLE = [{"type": "PodResizePending", "reason": "Infeasible"}]
_DEFERRED = [{"type": "PodResizePending", "reason": "Deferred"}]

_SPECS: dict[str, tuple[PodResources, dict[str, str]]] = {
    "no containers ask for nothing": (_spec(), {}),
    "containers are added up": (_spec(_container(cpu="1"), _container(cpu="500m", memory="1Gi")),
                                {"cpu": "1500m", "memory": "1Gi"}),
    "a limit alone is no request of a stored pod": (_spec(_container(limits={"cpu": "1"})), {}),
    "a large init container counts instead": (
        _spec(_container(cpu="1"), _container(cpu="1"), initContainers=[_container(cpu="3")]), {"cpu": "3"}),
    "a small init container counts nothing": (
        _spec(_container(cpu="4"), initContainers=[_container(cpu="3"), _container(cpu="2")]), {"cpu": "4"}),
    "init containers run one by one": (
        _spec(_container(cpu="1"), initContainers=[_container(cpu="3"), _container(cpu="3")]), {"cpu": "3"}),
    "each resource has its own largest step": (
        _spec(_container(cpu="1", memory="4Gi"), initContainers=[_container(cpu="3", memory="1Gi")]),
        {"cpu": "3", "memory": "4Gi"}),
    "a sidecar is added to the containers": (
        _spec(_container(cpu="2"), initContainers=[_container(restart="Always", cpu="1")]), {"cpu": "3"}),
    "a sidecar is added to the init containers after it": (
        _spec(_container(cpu="1"), initContainers=[_container(restart="Always", cpu="1"), _container(cpu="5")]),
        {"cpu": "6"}),
    "a sidecar is not added to the init containers before it": (
        _spec(_container(cpu="1"), initContainers=[_container(cpu="5"), _container(restart="Always", cpu="1")]),
        {"cpu": "5"}),
    "the overhead is added last": (
        _spec(_container(cpu="1"), initContainers=[_container(cpu="3")], overhead={"cpu": "250m", "memory": "64Mi"}),
        {"cpu": "3250m", "memory": "64Mi"}),
    "pod-level requests stand in for the containers'": (
        _spec(_container(cpu="1", memory="1Gi"), resources={"requests": {"cpu": "4"}}), {"cpu": "4", "memory": "1Gi"}),
    "pod-level requests can be smaller than the containers' sum": (
        _spec(_container(cpu="8"), resources={"requests": {"cpu": "4"}}), {"cpu": "4"}),
    "pod-level requests leave devices alone": (
        _spec(_container(**{"nvidia.com/gpu": "8"}), resources={"requests": {"cpu": "4", "nvidia.com/gpu": "1"}}),
        {"cpu": "4", "nvidia.com/gpu": "8"}),
    "the overhead is added to pod-level requests": (
        _spec(resources={"requests": {"cpu": "4"}}, overhead={"cpu": "1"}), {"cpu": "5"}),
    "a number and null are quantities": (
        msgspec.convert({"containers": [{"resources": {"requests": {"cpu": 2, "memory": None}}}]}, PodResources),
        {"cpu": "2", "memory": "0"}),
}  # fmt: skip


def _amounts(quantities: dict[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text) for name, text in quantities.items()}


@pytest.mark.parametrize(("spec", "wanted"), _SPECS.values(), ids=_SPECS.keys())
def test_a_pod_asks_for_what_the_scheduler_counts(spec: PodResources, wanted: dict[str, str]) -> None:
    """Containers, sidecars, initialisation, overhead, pod-level requests."""
    assert pod_requests(spec) == _amounts(wanted)


_TEMPLATES: dict[str, tuple[PodResources, dict[str, str]]] = {
    "a limit becomes the request": (_spec(_container(limits={"nvidia.com/gpu": "8"})), {"nvidia.com/gpu": "8"}),
    "a request beside a limit stays": (_spec(_container(cpu="1", limits={"cpu": "2"})), {"cpu": "1"}),
    "an init container's limit becomes its request": (
        _spec(_container(cpu="1"), initContainers=[_container(limits={"cpu": "2"})]), {"cpu": "2"}),
    "finer than thousandths is rounded up for each container": (
        _spec(_container(cpu="100n"), _container(cpu="100n")), {"cpu": "2m"}),
    "a pod-level limit is the request that nobody made": (
        _spec(_container(memory="1Gi"), resources={"limits": {"cpu": "4", "memory": "8Gi"}}),
        {"cpu": "4", "memory": "1Gi"}),
    "a pod-level limit on huge pages wins over the containers'": (
        _spec(_container(**{"hugepages-2Mi": "2Mi"}), resources={"limits": {"hugepages-2Mi": "8Mi"}}),
        {"hugepages-2Mi": "8Mi"}),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "wanted"), _TEMPLATES.values(), ids=_TEMPLATES.keys())
def test_a_template_gets_the_defaults_of_the_api_server(spec: PodResources, wanted: dict[str, str]) -> None:
    """Templates inside custom resources are stored without defaults, their pods are not."""
    assert pod_requests(spec, defaulted=True) == _amounts(wanted)


_ONE = _spec(_container(cpu="1"))
_STATUSES: dict[str, tuple[PodStatusResources, dict[str, str]]] = {
    "a status that says nothing changes nothing": (_status(), {"cpu": "1"}),
    "more was promised": (_status(containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "2"}}]),
                          {"cpu": "2"}),
    "more is in force": (
        _status(containerStatuses=[
            {"name": "main", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}]),
        {"cpu": "3"}),
    "less is in force than asked": (
        _status(containerStatuses=[{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]), {"cpu": "1"}),
    "another container's status is not ours": (
        _status(containerStatuses=[{"name": "other", "allocatedResources": {"cpu": "9"}}]), {"cpu": "1"}),
    "an infeasible wish does not count": (
        _status(
            conditions=_INFEASIBLE,
            containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "250m"}}]), {"cpu": "250m"}),
    "a deferred wish counts": (
        _status(
            conditions=_DEFERRED,
            containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "250m"}}]), {"cpu": "1"}),
    "the pod's own status comes before its containers'": (
        _status(
            allocatedResources={"cpu": "2"}, resources={"requests": {"cpu": "3"}},
            containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "9"}}]), {"cpu": "3"}),
}  # fmt: skip


@pytest.mark.parametrize(("status", "wanted"), _STATUSES.values(), ids=_STATUSES.keys())
def test_a_resize_in_place_counts_the_largest_of_asked_promised_and_in_force(
    status: PodStatusResources, wanted: dict[str, str]
) -> None:
    """A node gives back room only once a smaller size is in force."""
    assert pod_requests(_ONE, status) == _amounts(wanted)


def test_a_resize_of_the_whole_pod_counts_like_one_of_a_container() -> None:
    """Pod-level requests are raised to what the node promised or has in force, or stand down when infeasible."""
    spec = _spec(resources={"requests": {"cpu": "2"}})
    larger = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "4"}}}
    assert pod_requests(spec, _status(**larger)) == {"cpu": 4 * NANO}
    smaller = {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
    assert pod_requests(spec, _status(**smaller)) == {"cpu": 2 * NANO}
    assert pod_requests(spec, _status(**smaller, conditions=_INFEASIBLE)) == {"cpu": NANO}


_BAD: dict[str, tuple[PodResources, str]] = {
    "a bad suffix": (_spec(_container(**{"nvidia.com/gpu": "8x"})),
                     'spec.containers[0].resources.requests[nvidia.com/gpu]: must be a quantity, got "8x"'),
    "less than nothing": (_spec(_container(), _container(cpu="-1")),
                          'spec.containers[1].resources.requests[cpu]: must not be negative, got "-1"'),
    "a bad limit beside a good request": (_spec(_container(cpu="1", limits={"cpu": "2 cpu"})),
                                          'spec.containers[0].resources.limits[cpu]: must be a quantity, got "2 cpu"'),
    "an init container": (_spec(initContainers=[_container(memory="1GB")]),
                          'spec.initContainers[0].resources.requests[memory]: must be a quantity, got "1GB"'),
    "the overhead": (_spec(overhead={"cpu": ""}), 'spec.overhead[cpu]: must be a quantity, got ""'),
    "the whole pod's": (_spec(resources={"limits": {"cpu": "x"}}),
                        'spec.resources.limits[cpu]: must be a quantity, got "x"'),
    "far too much": (_spec(_container(cpu="1e999")),
                     "spec.containers[0].resources.requests[cpu]: must be below 1e128, got more"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), _BAD.values(), ids=_BAD.keys())
def test_a_refused_quantity_is_named_by_its_field(spec: PodResources, message: str) -> None:
    """What the API server would refuse is refused with the field's path."""
    with pytest.raises(ResourceError) as caught:
        pod_requests(spec, defaulted=True)
    assert str(caught.value) == message
    assert message == f"{caught.value.path}: {caught.value.reason}"


def test_a_refused_quantity_of_a_status_is_named_too() -> None:
    """The path of a status stands beside that of its spec."""
    status = _status(containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "?"}}])
    with pytest.raises(ResourceError) as caught:
        replica_requests(MeasuredPod(spec=_ONE), [MeasuredPod(spec=_ONE, status=status)], None, 2)
    assert str(caught.value) == (
        'workers[0].status.containerStatuses[0].allocatedResources[cpu]: must be a quantity, got "?"'
    )


def test_a_replica_is_what_exists_and_templates_for_the_rest() -> None:
    """A worker that exists counts as stored; a missing one as its template with defaults."""
    leader, grown = MeasuredPod(spec=_ONE), MeasuredPod(spec=_spec(_container(cpu="5")))
    template = _spec(_container(limits={"cpu": "2"}))
    assert replica_requests(leader, [], template, 4) == {"cpu": 7 * NANO}
    assert replica_requests(leader, [grown], template, 4) == {"cpu": 10 * NANO}
    assert replica_requests(leader, [grown] * 3, None, 4) == {"cpu": 16 * NANO}


def test_a_replica_of_one_needs_no_template() -> None:
    """A leader alone is whole."""
    assert replica_requests(MeasuredPod(spec=_ONE), [], None, 1) == {"cpu": NANO}


def test_workers_beyond_the_size_count_too() -> None:
    """A size can be too small on a replica of an old revision; pods that exist use room all the same."""
    assert replica_requests(MeasuredPod(spec=_ONE), [MeasuredPod(spec=_ONE)] * 3, None, 2) == {"cpu": 4 * NANO}


def test_missing_workers_without_a_template_are_an_error() -> None:
    """A floor that leaves workers out would let half a replica start."""
    with pytest.raises(ResourceError) as caught:
        replica_requests(MeasuredPod(spec=_ONE), [], None, 3)
    assert str(caught.value) == "workerTemplate: must be given while workers are missing, got none for 2"


def test_without_a_leader_template_the_leader_is_like_a_worker() -> None:
    """LWS makes the leader from the worker template then."""
    worker = _spec(_container(limits={"cpu": "2"}))
    assert template_requests(None, worker, 4) == {"cpu": 8 * NANO}
    assert template_requests(_ONE, worker, 4) == {"cpu": 7 * NANO}
    assert template_requests(_ONE, worker, 1) == {"cpu": NANO}


def test_resource_lists_are_written_sorted_and_without_zeros() -> None:
    """The same requests give the same bytes, and a zero asks for nothing."""
    requests = {"nvidia.com/gpu": 16 * NANO, "memory": 2**34 * NANO, "example.com/x": 0, "cpu": 300 * 10**6}
    assert list(to_quantities(requests).items()) == [("cpu", "300m"), ("memory", "16Gi"), ("nvidia.com/gpu", "16")]


def test_resource_lists_compare_by_amount() -> None:
    """A server may write an amount in another way, and leave out or add a zero."""
    assert equal_resources({"cpu": "1000m", "pods": "0"}, {"cpu": 1})
    assert equal_resources(None, {})
    assert not equal_resources({"cpu": "1"}, {"cpu": "1", "memory": "1"})
    assert not equal_resources({"cpu": "1"}, None)


def test_a_real_document_decodes_with_unknown_fields_and_nulls() -> None:
    """Whatever else a pod holds is skipped, and null counts as absent everywhere."""
    document = (
        b'{"metadata":{"name":"a"},"spec":{"nodeName":"n","overhead":null,"initContainers":null,"containers":'
        b'[{"name":"a","image":"b","resources":{"claims":[{"name":"c"}],"limits":null,"requests":{"cpu":1}}},'
        b'{"name":"b","resources":null}]},"status":{"phase":"Running","containerStatuses":null}}'
    )
    pod = msgspec.json.decode(document, type=MeasuredPod)
    assert pod_requests(pod.spec, pod.status) == {"cpu": NANO}


def test_c33_gpus_that_only_have_limits_are_in_the_floor() -> None:
    """Limits count where a request is missing, resource by resource, whatever the resource is called."""
    only_limits = _spec(_container(limits={"nvidia.com/gpu": "8"}))
    assert to_quantities(template_requests(None, only_limits, 2)) == {"nvidia.com/gpu": "16"}
    partly = _spec(_container(cpu="1", limits={"cpu": "4", "memory": "64Gi", "nvidia.com/gpu": "8"}))
    assert to_quantities(template_requests(None, partly, 2)) == {"cpu": "2", "memory": "128Gi", "nvidia.com/gpu": "16"}
    stored = MeasuredPod(spec=_spec(_container(limits={"nvidia.com/gpu": "8"}, **{"nvidia.com/gpu": "8"})))
    assert to_quantities(replica_requests(stored, [], only_limits, 2)) == {"nvidia.com/gpu": "16"}


def test_c34_init_containers_sidecars_overhead_and_mixed_units_give_the_exact_floor() -> None:
    """The larger of containers and initialisation per resource, sidecars beside both, overhead; no unit loses a bit."""
    spec = _spec(
        _container("a", cpu="0.1", memory="1Gi"),
        _container("b", cpu="100m", memory="1024Mi", **{"ephemeral-storage": "10Gi"}),
        _container("c", cpu="1e-1", memory="1e3"),
        initContainers=[
            _container("sidecar", restart="Always", cpu="0.5", memory="64Mi"),
            _container("load", cpu="100m", memory="8Gi", **{"ephemeral-storage": "200Gi"}),
        ],
        overhead={"cpu": "1", "memory": "1000m"},
    )
    assert to_quantities(pod_requests(spec)) == {
        "cpu": "1800m",
        "ephemeral-storage": "200Gi",
        "memory": str(2**33 + 2**26 + 1),
    }
    tenths = _spec(*(_container(cpu="0.1") for _ in range(3)))
    assert to_quantities(pod_requests(tenths)) == {"cpu": "300m"}
    same = [_spec(_container(cpu=text)) for text in ("1", "1000m", "1e0", "1.", "1.0")]
    assert {pod_requests(spec)["cpu"] for spec in same} == {NANO}
    assert to_quantities(add(*map(pod_requests, same), {"cpu": NANO // 2})) == {"cpu": "5500m"}


_LISTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
    st.integers(0, 10**15).flatmap(lambda n: st.sampled_from([f"{n}", f"{n}m", f"{n}n", f"{n}Ki", f"{n}e3", f"0.{n}"])),
)


@given(st.lists(_LISTS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_containers_does_not_matter(lists: list[Json], dice: random.Random) -> None:
    """Sums are exact, so containers in any order and split over any pods ask for the same."""
    containers = [{"resources": {"requests": listed}} for listed in lists]
    shuffled = dice.sample(containers, len(containers))
    cut = dice.randint(0, len(containers))
    whole = pod_requests(_spec(*containers))
    assert pod_requests(_spec(*shuffled)) == whole
    assert add(pod_requests(_spec(*shuffled[:cut])), pod_requests(_spec(*shuffled[cut:]))) == whole


@given(_LISTS, st.integers(1, 64))
def test_scaling_is_adding_again_and_again(listed: Json, size: int) -> None:
    """A replica of equal pods is one pod times its size, through texts as well."""
    spec = _spec({"resources": {"requests": listed}})
    one = pod_requests(spec)
    assert scale(one, size) == add(*[one] * size)
    back = {name: parse_quantity(text) for name, text in to_quantities(scale(one, size)).items()}
    assert back == {name: amount * size for name, amount in one.items() if amount}


@given(_LISTS, _LISTS)
def test_defaults_are_applied_once(requests: Json, limits: Json) -> None:
    """A template that already has its defaults asks for the same again."""
    spec = _spec({"resources": {"requests": requests, "limits": limits}})
    first = pod_requests(spec, defaulted=True)
    stored = _spec(
        {"resources": {"requests": {name: f"{amount}n" for name, amount in first.items()}, "limits": limits}}
    )
    assert pod_requests(stored, defaulted=True) == first == pod_requests(stored)
