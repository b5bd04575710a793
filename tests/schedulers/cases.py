"""What a scheduler's table of cases holds: one file `cases_<provider>.py` beside each provider."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gangs.intents import Intent
from schedulers.contract import Declaration, GroupKind, Replica, Right, Role, Spec, Stamp

GROUP: Final = "vllm-0-b2efc632cb"
REQUESTS: Final = {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": "32"}


class Case(msgspec.Struct, frozen=True):
    """One replica and the spec that is expected for it."""

    what: str
    replica: Replica
    kind: GroupKind
    spec: Spec


class Declared(msgspec.Struct, frozen=True):
    """One replica of a scheduler without a group object, and what is expected on its pods."""

    what: str
    replica: Replica
    roles: tuple[Role, ...]
    age: float
    declaration: Declaration


class Cases(msgspec.Struct, frozen=True):
    """All that is expected of one provider.

    Attributes:
        leader: the leader's stamp.
        worker: a worker's stamp.
        specs: typical replicas and their specs.
        observed: a pod stamped this way and, where there are any, a group object with the fields of `specs`, below
            `tests/data/observed`.
        extra_rights: rights beside those on its group objects.
        folder: its folder below `tests/data/observed`, where that isn't its name.
        declarations: typical replicas and what is declared on their pods.
        waiting: field of `schedulers.contract.Waiting` -> a pod that was recorded waiting in this way.
    """

    leader: Stamp
    worker: Stamp
    specs: tuple[Case, ...]
    observed: tuple[str, ...] | None = None
    extra_rights: tuple[Right, ...] = ()
    folder: str = ""
    waiting: Mapping[str, str] = MappingProxyType({})
    declarations: tuple[Declared, ...] = ()


def replica(**difference: Any) -> Replica:
    """Build a replica of four pods whose workers come with the leader; say what differs."""
    usual: dict[str, Any] = {
        "namespace": "team-a",
        "lws": "vllm",
        "index": 0,
        "revision": "69fbc5554",
        "group": GROUP,
        "size": 4,
        "minimum": 4,
        "requests": REQUESTS,
        "late": None,
        "priority_class": "",
        "intent": Intent(),
    }
    return Replica(**{**usual, **difference})


def late_replica(**difference: Any) -> Replica:
    """Build a replica whose workers are not there yet."""
    return replica(**{"minimum": 1, "late": "spec.startupPolicy", **difference})
