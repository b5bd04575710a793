"""Pods that were admitted without their group, because the webhook was not reached."""

from collections.abc import Iterator
from typing import Final

from gangs import keys
from reconciler.actions import Action, DeletePod, LookAgain, PatchPod, Say
from reconciler.objects import Pod
from reconciler.replicas import Sight
from reconciler.rolls import Roll
from schedulers.configuration import RECREATE, Configuration
from schedulers.contract import Provider, Stamp

FIRST_RECREATION: Final = 5.0
LONGEST_BETWEEN_RECREATIONS: Final = 600.0
MOST_DOUBLINGS: Final = 10
"""Beyond the longest wait; without a bound, a week of recreations is more than a float holds."""


def mend_unstamped(sight: Sight, provider: Provider, configuration: Configuration, roll: Roll) -> Iterator[Action]:
    """Stamp in place what can still be stamped; report, and delete if configured, what can't."""
    group = sight.member.group
    pods = [pod for pod in roll.unstamped if not (pod.leaving or pod.finished)]
    if group is None or not pods:
        return
    for pod in pods:
        stamp = provider.stamp(group, leader=pod is sight.leader)
        if stamp.fits_later:
            yield PatchPod(pod.metadata.namespace, pod.metadata.name, _stamping(pod, group, stamp))
        yield _report(pod, provider, stamp)
    if configuration.repair == RECREATE and not fits_later(provider):
        yield from recreate(sight, [pod for pod in pods if not pod.bound])


def recreate(sight: Sight, unbound: list[Pod]) -> Iterator[Action]:
    """Delete unstamped pods that aren't bound, each time after a longer wait: the webhook may still be away."""
    if not unbound:
        return
    due = min(LONGEST_BETWEEN_RECREATIONS, FIRST_RECREATION * 2.0 ** min(sight.recreations, MOST_DOUBLINGS))
    if sight.age < due:
        yield LookAgain(due - sight.age, "waits before it recreates unstamped pods")
        return
    for pod in [sight.leader] if sight.leader in unbound else unbound:
        yield DeletePod(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def fits_later(provider: Provider) -> bool:
    """Tell whether pods that exist can still be stamped for a scheduler."""
    return provider.stamp("any", leader=True).fits_later


def _stamping(pod: Pod, group: str, stamp: Stamp) -> dict[str, object]:
    """Build the merge patch that adds a stamp; the UID keeps it off a successor of the same name."""
    labels = {keys.LOCKSTEP_GROUP: group, **stamp.labels}
    return {"metadata": {"uid": pod.metadata.uid, "labels": labels, "annotations": dict(stamp.annotations)}}


def _report(pod: Pod, provider: Provider, stamp: Stamp) -> Say:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if stamp.fits_later:
        message = f"pod {name}: was admitted without its group, and has been stamped now"
        return Say("StampedLate", message, pod.metadata.uid)
    message = f"pod {name}: was admitted without its group, and {provider.title} places it alone"
    return Say("UnstampedPod", message, pod.metadata.uid)
