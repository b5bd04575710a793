"""The schedulers that LWS pods name are configured, and their kind of group is served."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import CONFIG_MAP, CONFIGURATION, Place
from lockstep.doctoring.seeing import Seen

NAME: Final = "schedulers"
WHY_BAD: Final = "no process starts with it, and those that run go on with what they read before"
WHY_ABSENT: Final = "their groups can't be made, and their scheduler waits for them or goes without"


def find(seen: Seen) -> Iterator[Finding]:
    """Check the configuration against pods and kinds."""
    if seen.misconfigured:
        place = Place(CONFIG_MAP, seen.namespace, CONFIGURATION)
        what = f"{place}: must be a configuration, got {seen.misconfigured}"
        yield Finding(NAME, ERROR, what, WHY_BAD, f"kubectl edit {place.for_kubectl}")
    named = Counter(pod.spec.scheduler_name or "default-scheduler" for pod in seen.snapshot.cache.pods.objects())
    for scheduler, pods in sorted(named.items()):
        provider = seen.configuration.provider(scheduler)
        if provider is not None and provider.kinds and provider.name not in seen.served:
            kinds = ", ".join(kind.title for kind in provider.kinds)
            what = f'scheduler "{scheduler}" of {pods} LWS pods: must have its groups served as {kinds}, got neither'
            yield Finding(NAME, ERROR, what, WHY_ABSENT, f"install {provider.title}, or serve its API")
