"""Every check, and the facts above them."""

from collections.abc import Callable, Iterator
from typing import Final

from lockstep.doctoring.checks import (
    answering,
    bundle,
    certificates,
    drift,
    exceptions,
    gates,
    groups,
    installed,
    leaderworkersets,
    lease,
    opened,
    order,
    pods,
    replicas,
    rights,
    schedulers,
    versions,
)
from lockstep.doctoring.findings import Finding, Report, sort_findings
from lockstep.doctoring.places import Json
from lockstep.doctoring.seeing import Seen
from schedulers.registry import all_providers

Check = Callable[[Seen], Iterator[Finding]]

CHECKS: Final[dict[str, Check]] = {
    module.NAME: module.find
    for module in (
        *(installed, versions, answering, gates, bundle, certificates, order, drift, rights),
        *(leaderworkersets, schedulers, replicas, lease, opened, pods, groups, exceptions),
    )
}
"""In the order in which one would look: what comes first explains what comes later."""


def examine(seen: Seen) -> Report:
    """Make every check; where nothing is installed, say that alone."""
    missing = list(installed.find(seen))
    if len(missing) == 1 and missing[0].what.startswith("Namespace "):
        return Report(facts(seen), [installed.NAME], missing)
    found = [finding for find in CHECKS.values() for finding in find(seen)]
    return Report(facts(seen), list(CHECKS), sort_findings(found))


def facts(seen: Seen) -> dict[str, str]:
    """Say what is there, by title."""
    providers = all_providers()
    served = ", ".join(providers[name].title for name in sorted(seen.served)) or "none"
    told = {
        "command": f"Lockstep {seen.ours}",
        "cluster": f"Kubernetes {seen.cluster}",
        "LWS": ", ".join(_version(one) for one in seen.lws_deployments) or "no Deployment found",
        "groups served for": served,
        "replicas": f"{len(seen.entries)}, {sum(entry.fine for entry in seen.entries)} of them run or are placed",
        "leads": ((seen.lease or {}).get("spec") or {}).get("holderIdentity") or "nobody",
        "certificate": certificates.end_of(seen),
        "webhook addresses": str(seen.endpoints),
    }
    return told | ({"not looked at": ", ".join(seen.unseen)} if seen.unseen else {})


def _version(deployment: Json) -> str:
    version = leaderworkersets.version_of(deployment)
    return "of unknown version" if version is None else ".".join(map(str, version))
