"""Who else has put a pod into a group."""

from gangs import names
from gangs.members import Member
from schedulers.contract import Claim, PodFacts, Provider
from schedulers.volcano import GROUP_NAME


def other_claim(pod: PodFacts, member: Member, provider: Provider, group: str | None) -> Claim | None:
    """Find a claim on a pod that is not ours.

    That is another group of the pod's scheduler, or the stamp of LWS's own Volcano provider, which LWS puts on the
    pods of every scheduler once it is on.

    Args:
        pod: the pod.
        member: what the pod, or its leader, says of its replica.
        provider: the pod's scheduler.
        group: the group that Lockstep names for it.
    """
    own = names.lws_volcano_group_name(member.lws, member.index, member.revision)
    if pod.annotations.get(GROUP_NAME) == own:
        return Claim(f"metadata.annotations[{GROUP_NAME}]", own)
    claim = provider.claim(pod)
    return claim if claim is not None and claim.group != group else None
