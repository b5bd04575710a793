"""The ResourceClaim that all pods of a replica share: named for the group, so that every member computes it alone.

Source: kubernetes/api `core/v1/types.go` (PodResourceClaim); KEP-407 of LeaderWorkerSet (BaseResourceProvider).
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from gangs import keys
from gangs.members import Malformed
from gangs.names import is_subdomain
from webhook.reviews import Operation, PodSpec

CLAIMS: Final = "/spec/resourceClaims"
CONTAINERS: Final = "/spec/containers"
PATH: Final = f"metadata.annotations[{keys.CLAIM_TEMPLATE}]"


class PodClaim(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of `spec.resourceClaims` of a pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Resources(msgspec.Struct, frozen=True, gc=False):
    claims: list[msgspec.Raw] | None = None


class _Container(msgspec.Struct, frozen=True, gc=False):
    resources: _Resources | None = None


def claiming(template: str, group: str, spec: PodSpec) -> list[Operation]:
    """Compute the operations that put a replica's claim into a pod.

    An entry of the pod's own for that template is turned into the shared claim, and whichever containers name it have
    it; without one, all containers get it.

    Args:
        template: name of the ResourceClaimTemplate.
        group: name of the group, which is the claim's name too.
        spec: the pod's.

    Raises:
        gangs.members.Malformed: the name is none, or taken, or the spec is no pod's.
    """
    if not is_subdomain(template):
        raise Malformed(PATH, "be a DNS subdomain", template)
    given = _claims(spec)
    if any(claim.resource_claim_name == group for claim in given):
        return []
    for number, claim in enumerate(given):
        if claim.resource_claim_template_name == template:
            return [Operation("replace", f"{CLAIMS}/{number}", {"name": claim.name, "resourceClaimName": group})]
    if any(claim.name == keys.CLAIM for claim in given):
        raise Malformed("spec.resourceClaims", f'have no other claim of the name "{keys.CLAIM}"', keys.CLAIM)
    entry = {"name": keys.CLAIM, "resourceClaimName": group}
    first = Operation("add", f"{CLAIMS}/-", entry) if given else Operation("add", CLAIMS, [entry])
    return [first, *_in_containers(spec)]


def unclaiming(template: str | None, group: str, spec: PodSpec) -> list[Operation]:
    """Compute the operations that give a pod a claim of its own again, because its group is not ours after all.

    Raises:
        gangs.members.Malformed: the spec is no pod's.
    """
    if template is None or not is_subdomain(template):
        return []
    return [
        Operation("replace", f"{CLAIMS}/{number}", {"name": claim.name, "resourceClaimTemplateName": template})
        for number, claim in enumerate(_claims(spec))
        if claim.resource_claim_name == group
    ]


def _claims(spec: PodSpec) -> list[PodClaim]:
    try:
        return _decode_claims(spec.resource_claims) or []
    except msgspec.ValidationError as error:
        raise Malformed("spec.resourceClaims", "be a list of claims", str(error)) from error


def _in_containers(spec: PodSpec) -> Iterator[Operation]:
    try:
        containers = _decode_containers(spec.containers) or []
    except msgspec.ValidationError as error:
        raise Malformed("spec.containers", "be a list of containers", str(error)) from error
    use = {"name": keys.CLAIM}
    for number, container in enumerate(containers):
        where = f"{CONTAINERS}/{number}/resources"
        if container.resources is None:
            yield Operation("add", where, {"claims": [use]})
        elif container.resources.claims:
            yield Operation("add", f"{where}/claims/-", use)
        else:
            yield Operation("add", f"{where}/claims", [use])


_decode_claims: Final = msgspec.json.Decoder(list[PodClaim] | None).decode
_decode_containers: Final = msgspec.json.Decoder(list[_Container] | None).decode
