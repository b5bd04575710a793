"""Keeps the group object of a replica what it should be."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gangs import keys
from gangs.resources import ResourceError
from reconciler.actions import Action, CreateGroup, LookAgain, PatchGroup, Say
from reconciler.mending import fits_later
from reconciler.objects import GroupObject
from reconciler.replicas import NotYet, Sight, read_replica, read_words
from reconciler.roles import read_roles
from reconciler.roll_calls import call_out
from reconciler.rolls import Roll
from reconciler.sharing import keep_shared
from reconciler.wanted import difference, group_object, keep_served, owner_reference, refer, value_at
from schedulers.abilities import HoldsDeleted, RefusesWords
from schedulers.configuration import Configuration
from schedulers.contract import GatedField, GroupKind, Provider, Replica, Spec

WHY_MISSING: Final = (
    "so this version has no such field, or its feature gate is off, or the group is older than the word"
)

FIELDS_UNKNOWN: Final = 0.5
"""Seconds until a group is thought of again that waits for the answer to which fields are kept."""

STALE_GROUP: Final = 1.0
"""Seconds until a group in the way is looked at again, should its deletion not be seen."""


def keep_group(
    sight: Sight, provider: Provider, configuration: Configuration, roll: Roll, kind: GroupKind
) -> Iterator[Action]:
    """Bring the group object to what it should be, for a replica that has members."""
    lost = () if fits_later(provider) else roll.unstamped
    strangers = len(roll.dropped) + len(roll.strangers) + len(lost)
    try:
        replica = read_replica(sight, provider, configuration.defaults, strangers=strangers)
    except ResourceError as error:
        yield Say("BadTemplate", f"no group is made: {error}", str(error))
        return
    if sight.kept is None:
        replica = NotYet("which fields the API server keeps is not known yet", FIELDS_UNKNOWN)
    if isinstance(replica, NotYet):
        yield LookAgain(replica.seconds, replica.reason)
        return
    replica = msgspec.structs.replace(replica, roles=read_roles(sight))
    yield from write_group(sight, provider, replica, kind)
    yield from call_out(sight, provider, roll, kind)
    yield from say_words(sight, provider, configuration, replica, kind)


def write_group(sight: Sight, provider: Provider, replica: Replica, kind: GroupKind) -> Iterator[Action]:
    """Create the group object, repair it, or wait for the one in the way to go."""
    shared = keep_shared(sight, provider, replica, kind)
    yield from shared.actions
    if not shared.ready:
        return
    spec = refer(keep_served(provider.spec(replica, kind), sight.kept), shared.reference)
    live = sight.group
    if live is None:
        body = group_object(replica, kind, spec, sight.leader)
        yield CreateGroup(kind, replica.namespace, replica.group, body)
    elif not ours(live, sight):
        message = f"{kind.title} {replica.group}: is not ours, and is left as it is"
        yield Say("GroupOwnedByOther", message, replica.group)
    elif live.metadata.deletion_timestamp is not None:
        yield from release(live, provider, kind)
    elif not live.metadata.owner_references:
        metadata = {"uid": live.metadata.uid, "ownerReferences": [owner_reference(sight.leader)]}
        yield PatchGroup(kind, replica.namespace, replica.group, {"metadata": metadata})
    elif not owned_by_leader(live, sight):
        yield LookAgain(STALE_GROUP, "the group of a dead leader is still there")
    elif (patch := difference(replica, spec, live)) is not None:
        yield PatchGroup(kind, replica.namespace, replica.group, patch)


def ours(live: GroupObject, sight: Sight) -> bool:
    """Tell whether a group object is Lockstep's: by its label, or by its owner when someone took the label off."""
    return keys.LOCKSTEP_GROUP in (live.metadata.labels or {}) or owned_by_leader(live, sight)


def owned_by_leader(live: GroupObject, sight: Sight) -> bool:
    """Tell whether this very leader controls a group object; the name alone doesn't say so."""
    return live.metadata.is_controlled_by(sight.leader.metadata.uid)


def release(live: GroupObject, provider: Provider, kind: GroupKind) -> Iterator[Action]:
    """Let a deleted object go that is still needed, so that it can be made anew: a deletion can't be undone.

    Finalizers are one list that others write too, so the patch holds for the version it was made from alone.
    """
    finalizers = live.metadata.finalizers or []
    if isinstance(provider, HoldsDeleted) and provider.finalizer in finalizers:
        rest = [name for name in finalizers if name != provider.finalizer]
        version = live.metadata.resource_version
        body = {"metadata": {"uid": live.metadata.uid, "resourceVersion": version, "finalizers": rest or None}}
        yield PatchGroup(kind, live.metadata.namespace, live.metadata.name, body)
    yield LookAgain(STALE_GROUP, "a deleted group is still there")


def say_words(
    sight: Sight, provider: Provider, configuration: Configuration, replica: Replica, kind: GroupKind | None = None
) -> Iterator[Action]:
    """Say which intent words are broken, and which are not honoured, with the nearest thing that there is."""
    for problem in read_words(sight, provider, configuration.defaults)[1]:
        yield Say("BadWord", problem, problem)
    for word in replica.intent.words():
        key, path = keys.WORD_PREFIX + word, provider.words.get(word)
        if path is None:
            message = f"{key}: {provider.title} has nothing of the kind; the nearest is {provider.nearest[word]}"
            yield Say("WordNotHonoured", message, word)
        elif kind is not None and (why := refusal(provider, word, replica, kind)) is not None:
            yield Say("WordNotHonoured", f"{key}: {provider.title} {why}", word)
        elif kind is not None and path and (gate := closed_gate(sight, provider.spec(replica, kind), path)) is not None:
            why = f"the API server drops spec.{gate.field} (gate {gate.gate} is off)"
            yield Say("WordNotHonoured", f"{key}: {why}; the nearest is {gate.nearest}", word)
        elif path and sight.group is not None and value_at(sight.group.spec, path) is None:
            message = f"{key}: {provider.title} has not taken it: its group has no spec.{path}, {WHY_MISSING}"
            yield Say("WordNotHonoured", message, word)


def closed_gate(sight: Sight, spec: Spec, path: str) -> GatedField | None:
    """Find the gate without which the field that says a word is dropped."""
    for one in spec.gated:
        shown = one.shown_by or one.field
        if path.partition(".")[0] == one.field and sight.kept is not None and shown not in sight.kept:
            return one
    return None


def refusal(provider: Provider, word: str, replica: Replica, kind: GroupKind) -> str | None:
    """Ask whether a scheduler refuses a word for this replica, and why."""
    return provider.refusal(word, replica, kind) if isinstance(provider, RefusesWords) else None
