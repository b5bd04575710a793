"""Stands down where a scheduler overwrites stamps: its own groups are in charge then, and there are never two writers.

Seen with KAI 0.12: its podgrouper writes another group onto pods that were admitted with ours, one by one. A replica is
left to it as soon as one pod shows that; a group object that was made before goes with its leader.
"""

from gangs import keys
from reconciler.actions import Say
from reconciler.replicas import Sight
from schedulers.abilities import OverwritesStamps
from schedulers.contract import Claim, Provider


def overwritten(sight: Sight, provider: Provider) -> Claim | None:
    """Find a pod's membership that was written over a stamp of ours; our label still says which that was."""
    if not isinstance(provider, OverwritesStamps):
        return None
    ours = [pod for pod in sight.pods if pod.labels.get(keys.LOCKSTEP_GROUP) == sight.member.group]
    claims = (provider.claim(pod) for pod in ours)
    return next((claim for claim in claims if claim is not None and claim.group != sight.member.group), None)


def say_overwritten(provider: Provider, claim: Claim) -> Say:
    """Say that a scheduler's own groups are in charge, and how to change that; once for each LWS."""
    assert isinstance(provider, OverwritesStamps)  # noqa: S101 - else nothing was overwritten
    message = f"{why_overwritten(provider, claim)}: no groups are made for them; needs {provider.way_out}"
    return Say("StampsOverwritten", message, provider.name)


def why_overwritten(provider: Provider, claim: Claim) -> str:
    """Say what has happened, without the group's name: it differs from replica to replica."""
    return f"{provider.title} writes {claim.path} over ours and puts pods into groups of its own"
