"""Changes to the pod templates of a LeaderWorkerSet, as merge patches. LWS rolls out whatever changes them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from reconciler.objects import Pod
from schedulers.configuration import DEFAULT_SCHEDULER
from schedulers.contract import Claim, Provider

Json = dict[str, Any]

TEMPLATES: Final = ("leaderTemplate", "workerTemplate")
WHERE: Final = "spec.leaderWorkerTemplate"
PARTITION: Final = "spec.rolloutStrategy.rollingUpdateConfiguration.partition"


def templates_of(lws: Json) -> Iterator[tuple[str, Json]]:
    """Give the pod templates that an LWS has, with their field's name."""
    given = lws["spec"]["leaderWorkerTemplate"]
    for name in TEMPLATES:
        if given.get(name) is not None:
            yield name, given[name]


def scheduler_names(lws: Json) -> dict[str, str]:
    """Read the schedulers that the templates name, by the template's field."""
    return {name: template["spec"].get("schedulerName") or DEFAULT_SCHEDULER for name, template in templates_of(lws)}


def claims_by_hand(lws: Json, provider: Provider) -> dict[str, Claim]:
    """Find the groups that a user has written into the templates for a scheduler, by the template's field."""
    found = {}
    for name, template in templates_of(lws):
        claim = provider.claim(msgspec.convert(template, Pod))
        if claim is not None:
            found[name] = claim
    return found


def move_patch(lws: Json, scheduler_name: str) -> Json | None:
    """Build the patch that names another scheduler in all templates; `None` when they name it already.

    It holds for the version of the LWS that was read, and for no other.
    """
    others = [name for name, now in scheduler_names(lws).items() if now != scheduler_name]
    return _patch(lws, {name: {"spec": {"schedulerName": scheduler_name}} for name in others})


def release_patch(lws: Json, provider: Provider) -> Json | None:
    """Build the patch that takes a scheduler's group keys off all templates; `None` when they carry none."""
    stamp = provider.stamp("any", leader=True)
    changes = {}
    for name, template in templates_of(lws):
        metadata = template.get("metadata") or {}
        change = {
            field: gone
            for field, ours in (("labels", stamp.labels), ("annotations", stamp.annotations))
            if (gone := dict.fromkeys(sorted(set(ours) & set(metadata.get(field) or {}))))
        }
        merged: Json = {"metadata": change} if change else {}
        if stamp.scheduling_group is not None and template["spec"].get("schedulingGroup"):
            merged["spec"] = {"schedulingGroup": None}
        if merged:
            changes[name] = merged
    return _patch(lws, changes)


def partition_of(lws: Json) -> int:
    """Read how many of the first replicas LWS leaves out of a rollout."""
    value: object = lws
    for step in PARTITION.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 0


def _patch(lws: Json, templates: Json) -> Json | None:
    if not templates:
        return None
    version = lws["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "spec": {"leaderWorkerTemplate": templates}}
