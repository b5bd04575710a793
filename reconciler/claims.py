"""The ResourceClaim that the pods of a replica share: one an incarnation, made of the template that they name.

Source: kubernetes/api `resource/v1/types.go`; KEP-407 of LeaderWorkerSet (BaseResourceProvider).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gangs import keys
from reconciler.actions import Action, CreateGroup, LookAgain, Say
from reconciler.objects import GroupObject
from reconciler.replicas import Sight, claims_of
from reconciler.wanted import Json, owner_reference
from schedulers.contract import GroupKind

GROUP: Final = "resource.k8s.io"
VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
CLAIMS: Final = tuple(GroupKind(GROUP, version, "ResourceClaim", "resourceclaims") for version in VERSIONS)
TEMPLATES: Final = tuple(
    GroupKind(GROUP, version, "ResourceClaimTemplate", "resourceclaimtemplates") for version in VERSIONS
)
NO_TEMPLATE: Final = 2.0
"""Seconds until a template that is missing is looked for again."""

Served = Callable[[Sequence[GroupKind]], GroupKind | None]
"""Gives the first of some kinds that the cluster serves."""


def kinds_to_watch(served: Served) -> set[GroupKind]:
    """Give the two kinds in the newest version that the cluster serves."""
    found = (served(CLAIMS), served(TEMPLATES))
    return {kind for kind in found if kind is not None}


def keep_claim(sight: Sight, served: Served) -> Iterator[Action]:
    """Make the claim that the leader refers to; it is its leader's, and goes with it."""
    template, name = sight.leader.annotations.get(keys.CLAIM_TEMPLATE), sight.member.group
    if template is None or name is None or name not in claims_of(sight).values():
        return
    kind, of_templates = served(CLAIMS), served(TEMPLATES)
    if kind is None or of_templates is None:
        yield Say("ClaimKindNotServed", f"the cluster serves no {GROUP}: no ResourceClaim is made", template)
        return
    live = sight.find(kind, name)
    if live is not None:
        yield from _check(sight, live, name)
        return
    source = sight.find(of_templates, template)
    if source is None:
        message = f'resourceclaimtemplate "{template}": must exist, got none: the replica waits for its ResourceClaim'
        yield Say("ClaimTemplateMissing", message, template)
        yield LookAgain(NO_TEMPLATE, "waits for its ResourceClaimTemplate")
        return
    yield CreateGroup(kind, sight.member.namespace, name, claim_object(sight, kind, name, source))


def claim_object(sight: Sight, kind: GroupKind, name: str, template: GroupObject) -> Json:
    """Build the claim: what the template says, in our name, owned by the leader."""
    given = template.spec.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": sight.member.namespace,
            "labels": {**(metadata.get("labels") or {}), keys.LOCKSTEP_GROUP: name, keys.LWS_NAME: sight.member.lws},
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner_reference(sight.leader)],
        },
        "spec": template.spec.get("spec") or {},
    }


def _check(sight: Sight, live: GroupObject, name: str) -> Iterator[Action]:
    if not live.metadata.is_controlled_by(sight.leader.metadata.uid):
        yield Say("ClaimOwnedByOther", f'resourceclaim "{name}": is not ours, and is left as it is', name)
