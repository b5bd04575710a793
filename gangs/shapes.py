"""The parts of a pod that decide its size, as structs that decode nothing else, and the lists of quantities in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from gangs.quantities import QuantityValue

if TYPE_CHECKING:
    from collections.abc import Iterator

ResourceList: TypeAlias = dict[str, QuantityValue]
"""Resource name to quantity, as in JSON."""

NOTHING: ResourceList = {}
"""Shared, never written to."""


class ContainerResources(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """`resources` of a container, of a pod as a whole, or of their status."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class Container(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """The part of a container that the arithmetic reads; an init container that restarts "Always" is a sidecar."""

    name: str | None = None
    restart_policy: str | None = None
    resources: ContainerResources | None = None


class PodResources(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """The part of a PodSpec that the arithmetic reads. Subclass it to read more of the same object."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: ResourceList | None = None
    resources: ContainerResources | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What the node gave a container: `allocated_resources` was promised, `resources` is in force."""

    name: str | None = None
    allocated_resources: ResourceList | None = None
    resources: ContainerResources | None = None


class PodCondition(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """One condition of a pod."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class PodStatusResources(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """The part of a PodStatus that the arithmetic reads. Subclass it to read more of the same object."""

    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: ResourceList | None = None
    resources: ContainerResources | None = None
    conditions: list[PodCondition] | None = None


class HasResources(Protocol):
    """A stored pod, whatever else its struct holds."""

    @property
    def spec(self) -> PodResources:
        """The pod's spec."""

    @property
    def status(self) -> PodStatusResources | None:
        """The pod's status, where it has one."""


class MeasuredPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The smallest pod with a size."""

    spec: PodResources = PodResources()
    status: PodStatusResources | None = None


def spec_lists(spec: PodResources, path: str) -> Iterator[tuple[str, ResourceList]]:
    """Yield every resource list of a spec that stands at `path`, with the list's own path."""
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(containers or ()):
            yield from _lists(container.resources, f"{path}.{field}[{i}]")
    yield from _lists(spec.resources, path)
    yield f"{path}.overhead", spec.overhead or NOTHING


def status_lists(status: PodStatusResources | None, path: str) -> Iterator[tuple[str, ResourceList]]:
    """Yield every resource list of a status that stands at `path`, with the list's own path."""
    if status is None:
        return
    fields = (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    )
    for field, statuses in fields:
        for i, known in enumerate(statuses or ()):
            yield f"{path}.{field}[{i}].allocatedResources", known.allocated_resources or NOTHING
            yield from _lists(known.resources, f"{path}.{field}[{i}]")
    yield f"{path}.allocatedResources", status.allocated_resources or NOTHING
    yield from _lists(status.resources, path)


def _lists(resources: ContainerResources | None, where: str) -> Iterator[tuple[str, ResourceList]]:
    if resources:
        yield f"{where}.resources.requests", resources.requests or NOTHING
        yield f"{where}.resources.limits", resources.limits or NOTHING
