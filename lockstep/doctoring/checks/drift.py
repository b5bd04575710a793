"""The objects in the cluster are as they were shipped."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lockstep.doctoring.comparing import Difference, differences
from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.opening import OPENED
from lockstep.doctoring.places import (
    BINDING,
    DEPLOYMENT,
    MUTATING,
    NAMESPACE,
    POLICY,
    SERVICE,
    VALIDATING,
    Json,
    Place,
    place_of,
)
from lockstep.doctoring.seeing import Seen

NAME: Final = "drift"
MEND: Final = "kubectl apply -f install.yaml; or, if you meant it, lockstep doctor --manifests YOUR-RENDERING.yaml"

WHY: Final[Mapping[str, str]] = {
    MUTATING: "other pods than shipped are stamped, or fewer, or the cluster depends on us more than it should",
    VALIDATING: "other pods than shipped are judged, or the cluster depends on us more than it should",
    POLICY: "a rule guards less than its reviewers think, or refuses more",
    BINDING: "a rule guards less than its reviewers think, or refuses more",
    DEPLOYMENT: "a process has other rights on its node, or other options, than were reviewed",
    NAMESPACE: "Pod Security no longer holds in Lockstep's own namespace",
    SERVICE: "the API server reaches something else than the webhook",
}
"""What is compared, but for roles, with what it means."""

EXACT: Final = frozenset({MUTATING, VALIDATING, POLICY, BINDING})
SEVERE: Final = frozenset({MUTATING, SERVICE})


def find(seen: Seen) -> Iterator[Finding]:
    """Compare each object of the kinds that decide something."""
    for content in seen.shipped:
        place = place_of(content)
        live = seen.live.get(place)
        if live is None or place.kind not in WHY or OPENED in (live["metadata"].get("annotations") or {}):
            continue
        for found in _differences(place, content, live):
            severity = ERROR if place.kind in SEVERE else WARNING
            yield Finding(NAME, severity, f"{place} {found}", WHY[place.kind], MEND)


def _differences(place: Place, shipped: Json, live: Json) -> Iterator[Difference]:
    if place.kind in (MUTATING, VALIDATING):
        yield from differences(_without_bundles(shipped["webhooks"]), _without_bundles(live["webhooks"]), "webhooks")
    elif place.kind == NAMESPACE:
        labels = "metadata.labels"
        yield from differences(shipped["metadata"]["labels"], live["metadata"].get("labels") or {}, labels, exact=False)
    elif place.kind == DEPLOYMENT:
        yield from differences(_guarded(shipped), _guarded(live), "spec.template.spec", exact=False)
    else:
        yield from differences(shipped["spec"], live["spec"], "spec", exact=place.kind in EXACT)


def _without_bundles(webhooks: list[Json]) -> list[Any]:
    entries: list[Any] = copy.deepcopy(list(webhooks))
    for entry in entries:
        entry.get("clientConfig", {}).pop("caBundle", None)
    return entries


def _guarded(deployment: Json) -> Any:  # noqa: ANN401
    """Give what of a pod template decides about rights and behaviour; image, replicas and resources are the user's."""
    spec = copy.deepcopy(deployment["spec"]["template"]["spec"])
    for container in spec["containers"]:
        for name in ("image", "resources", "imagePullPolicy"):
            container.pop(name, None)
    wanted = ("containers", "securityContext", "serviceAccountName", "automountServiceAccountToken", "hostNetwork")
    return {name: spec[name] for name in wanted if name in spec}
