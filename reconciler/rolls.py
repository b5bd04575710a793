"""The pods of a replica by what they carry."""

import msgspec

from gangs import keys
from reconciler.objects import Pod
from reconciler.replicas import Sight
from schedulers.abilities import LosesStamps
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import GroupKind, Provider


class Roll(msgspec.Struct, frozen=True):
    """The pods of a replica by what they carry.

    Attributes:
        members: pods of its group.
        dropped: labelled as ours, but without the field: the API server's gate is off.
        unstamped: pods that nobody has put into a group.
        strangers: pods in someone else's group, of another scheduler, or kept away from Lockstep by their template.
    """

    members: tuple[Pod, ...]
    dropped: tuple[Pod, ...]
    unstamped: tuple[Pod, ...]
    strangers: tuple[Pod, ...]


def call_roll(sight: Sight, provider: Provider, configuration: Configuration) -> Roll:
    """Sort the pods of a replica by what they carry."""
    places: dict[str, list[Pod]] = {"members": [], "dropped": [], "unstamped": [], "strangers": []}
    for pod in sight.pods:
        places[_place(pod, sight, provider, configuration)].append(pod)
    return Roll(**{place: tuple(pods) for place, pods in places.items()})


def why_dropped(provider: Provider, kind: GroupKind | None) -> str:
    """Say why the API server drops a provider's stamp."""
    how = provider.why_dropped(kind) if isinstance(provider, LosesStamps) else "drops its stamp"
    return f"the API server {how}"


def opted_out(pod: Pod) -> bool:
    """Tell whether a pod's template keeps Lockstep away."""
    return pod.labels.get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT


def kept_away(sight: Sight) -> bool:
    """Tell whether a replica is not Lockstep's business: by its template, or by its namespace.

    A namespace's label counts for replicas that begin under it: one whose leader is stamped still needs its group.
    """
    namespace = None if sight.namespace is None else sight.namespace.metadata.labels
    off = (namespace or {}).get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT
    return opted_out(sight.leader) or (off and keys.LOCKSTEP_GROUP not in sight.leader.labels)


def waits(pod: Pod) -> bool:
    """Tell whether a pod waits for its scheduler: no node, and no gate of anyone that holds it back."""
    return not pod.bound and not pod.finished and not pod.leaving and not pod.spec.scheduling_gates


def _place(pod: Pod, sight: Sight, provider: Provider, configuration: Configuration) -> str:
    member = sight.member
    if configuration.provider(pod.spec.scheduler_name) is not provider:
        return "strangers"
    if other_claim(pod, member, provider, member.group) is not None:
        return "strangers"
    if provider.claim(pod) is not None:
        return "members"
    if keys.LOCKSTEP_GROUP in pod.labels:
        return "dropped"
    return "strangers" if opted_out(pod) else "unstamped"
