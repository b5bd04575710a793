"""The rights of our accounts are those that were shipped, no more and no fewer."""

from collections.abc import Iterator, Mapping
from typing import Final

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Json, Place, place_of
from lockstep.doctoring.seeing import Seen

NAME: Final = "rights"
WHY_FEWER: Final = "a process is refused what it needs: groups are not kept, or certificates not renewed"
WHY_MORE: Final = "whoever takes the process over may do more than was reviewed"
MEND: Final = "kubectl apply -f install.yaml"

One = tuple[str, str, str, str]
"""API group, resource, object name, verb."""


def find(seen: Seen) -> Iterator[Finding]:
    """Compare roles right by right, and look for bindings that nobody shipped."""
    for content in seen.shipped:
        place = place_of(content)
        live = seen.live.get(place)
        if live is None:
            continue
        if place.kind in (CLUSTER_ROLE, ROLE):
            yield from _of_role(place, rights_of(content), rights_of(live))
        if place.kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING) and _bound(content) != _bound(live):
            what = f"{place}: must bind {_bound(content)}, got {_bound(live)}"
            yield Finding(NAME, ERROR, what, WHY_FEWER, MEND)
    yield from _of_others(seen)


def rights_of(role: Json) -> set[One]:
    """Take a role's rules apart into single rights."""
    return {
        (group, resource, name, verb)
        for rule in role.get("rules") or ()
        for group in rule.get("apiGroups") or ("",)
        for resource in rule.get("resources") or rule.get("nonResourceURLs") or ()
        for name in rule.get("resourceNames") or ("",)
        for verb in rule["verbs"]
    }


def _of_role(place: Place, shipped: set[One], live: set[One]) -> Iterator[Finding]:
    for right in sorted(shipped - live):
        yield Finding(NAME, ERROR, f"{place}: must allow {_words(right)}, got no such rule", WHY_FEWER, MEND)
    for right in sorted(live - shipped):
        yield Finding(NAME, ERROR, f"{place}: must not allow {_words(right)}", WHY_MORE, MEND)


def _words(right: One) -> str:
    group, resource, name, verb = right
    where = f"{resource}.{group}" if group else resource
    return f'"{verb}" on "{where}"' + (f' named "{name}"' if name else "")


def _of_others(seen: Seen) -> Iterator[Finding]:
    shipped = {place_of(content) for content in seen.shipped}
    accounts = {place.name for place in shipped if place.kind == "ServiceAccount"}
    for binding in seen.bindings:
        kind = ROLE_BINDING if binding["metadata"].get("namespace") else CLUSTER_ROLE_BINDING
        place = Place(kind, binding["metadata"].get("namespace", ""), binding["metadata"]["name"])
        ours = [each["name"] for each in binding.get("subjects") or () if _is_ours(each, accounts, seen.namespace)]
        if ours and place not in shipped:
            what = f'{place}: must not bind "{ours[0]}" to {_role(binding)}'
            yield Finding(NAME, ERROR, what, WHY_MORE, f"kubectl delete {place.for_kubectl}")


def _is_ours(subject: Mapping[str, str], accounts: set[str], namespace: str) -> bool:
    place = (subject["kind"], subject.get("namespace"))
    return place == ("ServiceAccount", namespace) and subject["name"] in accounts


def _role(binding: Json) -> str:
    return f'{binding["roleRef"]["kind"]} "{binding["roleRef"]["name"]}"'


def _bound(binding: Json) -> str:
    subjects = sorted(f"{each.get('namespace', '')}/{each['name']}" for each in binding.get("subjects") or ())
    return f"{', '.join(subjects) or 'nobody'} to {_role(binding)}"
