"""A scheduler nobody has: what the file of a new provider says, and nothing more. Source: made up."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gangs import intents
from gangs.intents import OwnKey
from schedulers.contract import (
    UNSCHEDULABLE,
    Arrival,
    Claim,
    GroupKind,
    LateWorkers,
    PodFacts,
    Provider,
    Replica,
    Right,
    Spec,
    Stamp,
    Waiting,
    claim_by_label,
)

API_GROUP: Final = "gangs.example.com"
V1: Final = GroupKind(API_GROUP, "v1", "Crew", "crews")

CREW: Final = "gangs.example.com/crew"
RANK: Final = "gangs.example.com/rank"


class MadeUp:
    """The `made_up` provider."""

    name = "made_up"
    title = "Made up"
    scheduler_names: tuple[str, ...] = ("made-up-scheduler",)
    kinds: tuple[GroupKind, ...] = (V1,)
    minimum = "atLeast"
    rights: tuple[Right, ...] = (Right(API_GROUP, ("crews",), ("get", "list", "watch", "create", "patch")),)
    late_workers = LateWorkers(Arrival.EXIST, floor=False, promise="nothing is promised")
    waiting = Waiting(capacity=UNSCHEDULABLE, members="", group="")
    words: Mapping[str, str] = MappingProxyType(
        dict(zip(intents.WORDS, ("queue", "class", "wait", "within"), strict=True))
    )
    nearest: Mapping[str, str] = MappingProxyType({})
    own_keys: intents.OwnKeys = MappingProxyType({intents.QUEUE: (OwnKey("gangs.example.com/queue"),)})

    def stamp(self, group: str, *, leader: bool) -> Stamp:
        """Name the crew and the rank."""
        return Stamp({CREW: group}, {RANK: "captain" if leader else "sailor"})

    def claim(self, pod: PodFacts) -> Claim | None:
        """Find the crew."""
        return claim_by_label(pod, CREW)

    def spec(self, replica: Replica, kind: GroupKind) -> Spec:  # noqa: ARG002 - one version
        """Say every word."""
        intent = replica.intent
        said = {
            "queue": intent.queue,
            "class": intent.priority_class or replica.priority_class or None,
            "wait": intent.schedule_timeout,
            "within": None if intent.topology is None else intent.topology.key,
        }
        return Spec({self.minimum: replica.minimum, **{key: value for key, value in said.items() if value is not None}})


PROVIDER: Final[Provider] = MadeUp()
