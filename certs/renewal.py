"""What is to be done with the certificates next, and why: a function of what is stored, what is published, and when.

One step is one write. Nothing is remembered between steps: each is decided from what is there, so whoever dies half-way
is followed by someone who goes on from what he finds. The order keeps callers and servers in agreement at every moment:

1. An authority is stored before it is published, and the next one is published long before it signs.
2. Every webhook configuration has the bundle before the Secret that servers mount has it.
3. A leaf is signed only by an authority that every configuration believes already.
4. An authority that has signed stays in the bundle until no leaf of it can be served any more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from cryptography import x509

from certs.authority import HEAD_START
from certs.flaws import find_authority_flaw, find_leaf_flaw, signed_by
from certs.lives import Lives, due_at, made_at
from certs.pair import Pair
from certs.sight import Kind, Rest, Sight, Step
from certs.store import MOST_RETIRED, Retired, Slot, Stored, certificates_in, pem_of

REVOKED = "is revoked"


def decide(sight: Sight, now: datetime, lives: Lives, *, unpublishable: bool = False) -> Step | Rest:
    """Find the next step.

    Args:
        sight: what is there.
        now: the present, with its time zone.
        lives: the durations to go by.
        unpublishable: the configurations could not be written just now; what doesn't need it goes on.
    """
    stored = sight.stored
    step = _of_authorities(sight, now, lives) or _of_retired(sight, now, lives)
    if step is not None:
        return step
    current, following = stored.current.held, stored.next.held
    bundle = bundle_of(current, following, stored.retired)
    in_step = all(entry == bundle for entry in sight.published)
    if not in_step and not unpublishable:
        return Step(Kind.BUNDLE_PUBLISHED, _why_publish(sight, bundle), bundle=bundle)
    return (
        _of_publication(sight, following, now)
        or _of_leaf(sight, current, now, bundle)
        or _of_bundle(sight, bundle, in_step=in_step)
        or _rest(sight, now, lives, in_step=in_step)
    )


def bundle_of(current: Pair, following: Pair, retired: Sequence[Retired]) -> bytes:
    """Render the authorities that callers are to believe: the current, the next, those that signed before."""
    certificates = [current.certificate, following.certificate, *(one.certificate for one in retired)]
    return b"".join(map(pem_of, dict.fromkeys(certificates)))


def _of_authorities(sight: Sight, now: datetime, lives: Lives) -> Step | None:
    """See that there are two authorities that can sign, and that the right one does."""
    stored = sight.stored
    bad = _authority_problem(stored.current, sight.revoked, now)
    bad_next = _authority_problem(stored.next, sight.revoked, now)
    if bad and bad_next:
        first = stored.current.empty and stored.next.empty and not stored.bundle
        return Step(Kind.AUTHORITY_MADE, f"current {bad}, next {bad_next}", not first, _retire(sight, now, lives))
    if bad:
        kept = _retire(sight, now, lives, stored.next)
        return Step(Kind.AUTHORITY_PROMOTED, f"current {bad}", amiss=True, retired=kept)
    if bad_next:
        kept = _retire(sight, now, lives, stored.current)
        return Step(Kind.NEXT_AUTHORITY_MADE, f"next {bad_next}", amiss=True, retired=kept)
    due, following = due_at(stored.current.held.certificate), stored.next.held.certificate
    if now >= due - lives.lead > made_at(following):
        reason = "the next authority is to be used soon and would not be young then"
        return Step(Kind.NEXT_AUTHORITY_MADE, reason, retired=_retire(sight, now, lives, stored.current))
    known = _known_since(stored, following)
    if now >= due and known is not None and known + lives.notice <= now:
        reason = "two thirds of the current authority's life are over"
        return Step(Kind.AUTHORITY_PROMOTED, reason, retired=_retire(sight, now, lives, stored.next))
    return None


def _authority_problem(slot: Slot, revoked: frozenset[int], now: datetime) -> str:
    if slot.certificate is not None and slot.certificate.serial_number in revoked:
        return REVOKED
    if slot.pair is None:
        return slot.damage or "is missing"
    return find_authority_flaw(slot.pair.certificate, now)


def _retire(sight: Sight, now: datetime, lives: Lives, staying: Slot | None = None) -> tuple[Retired, ...]:
    """Keep whoever signed what is served believed, until no such leaf can be served any more.

    The signer is looked for in the bundle too, because its slot may be damaged, but only one that every entry believes:
    nobody gets into the bundle by way of one Secret. Nothing is to be kept where the signer is the one that stays in
    its slot or takes the other.
    """
    stored = sight.stored
    known = [one.certificate for one in stored.retired]
    if staying is not None and staying.certificate is not None:
        known.append(staying.certificate)
    published = [one for one in certificates_in(stored.bundle) if sight.believed(one)]
    slots = [slot.certificate for slot in (stored.current, stored.next) if slot.certificate is not None]
    leaf = stored.leaf.certificate
    signer = next((one for one in [*slots, *published] if leaf is not None and signed_by(leaf, one)), None)
    if signer is None or signer in known or find_authority_flaw(signer, now):
        return stored.retired
    life = lives.mounted if signer.serial_number in sight.revoked else lives.leaf
    return (*stored.retired, Retired(signer, now + life))[-MOST_RETIRED:]


def _of_retired(sight: Sight, now: datetime, lives: Lives) -> Step | None:
    """Drop authorities whose time is over, sooner where they are revoked; never the one that signed the leaf in use."""
    stored = sight.stored
    leaf = stored.leaf.certificate
    kept = []
    for one in stored.retired:
        revoked = one.certificate.serial_number in sight.revoked
        shortened = replace(one, until=min(one.until, now + lives.mounted)) if revoked else one
        in_use = leaf is not None and signed_by(leaf, one.certificate) and not revoked
        over = now >= one.certificate.not_valid_after_utc or (now >= shortened.until and not in_use)
        kept += [] if over else [shortened]
    if tuple(kept) == stored.retired:
        return None
    reason = "no leaf of it can be in use any more" if len(kept) < len(stored.retired) else REVOKED
    return Step(Kind.PREVIOUS_AUTHORITY_DROPPED, f"a previous authority: {reason}", reason == REVOKED, tuple(kept))


def _why_publish(sight: Sight, bundle: bytes) -> str:
    differing = sum(entry != bundle for entry in sight.published)
    return f"{differing} of {len(sight.published)} webhook entries have another bundle"


def _known_since(stored: Stored, certificate: x509.Certificate) -> datetime | None:
    """Give when the next authority was published, `None` while it isn't known to be."""
    known = stored.published
    return known.at if known is not None and known.serial == certificate.serial_number else None


def _of_publication(sight: Sight, following: Pair, now: datetime) -> Step | None:
    """Note when every entry was first seen to believe the next authority; a note from the future is made anew."""
    known = _known_since(sight.stored, following.certificate)
    if not sight.published or not sight.believed(following.certificate):
        return None
    if known is not None and known <= now + HEAD_START:
        return None
    reason = "every webhook entry believes it" if known is None else "the clock was set back"
    return Step(Kind.NEXT_AUTHORITY_PUBLISHED, reason, amiss=known is not None)


def _of_leaf(sight: Sight, current: Pair, now: datetime, bundle: bytes) -> Step | None:
    problem, amiss = _leaf_problem(sight, current, now)
    if not problem or _leaf_hindrance(sight, current):
        return None
    return Step(Kind.LEAF_RENEWED, problem, amiss, bundle=bundle)


def _leaf_problem(sight: Sight, current: Pair, now: datetime) -> tuple[str, bool]:
    """Say why the leaf is to be replaced, and whether something was wrong with it; empty when it stays."""
    slot = sight.stored.leaf
    if slot.empty:
        return "leaf is missing", bool(sight.stored.bundle)
    if slot.pair is None:
        return f"leaf {slot.damage}", True
    certificate = slot.pair.certificate
    if certificate.serial_number in sight.revoked:
        return f"leaf {REVOKED}", True
    flaw = find_leaf_flaw(certificate, sight.hosts, now)
    if flaw:
        return f"leaf {flaw}", True
    if not signed_by(certificate, current.certificate):
        ours = any(signed_by(certificate, one.certificate) for one in sight.stored.retired)
        return "leaf must be signed by the current authority", not ours
    return ("two thirds of the leaf's life are over", False) if now >= due_at(certificate) else ("", False)


def _leaf_hindrance(sight: Sight, current: Pair) -> str:
    """Say why no leaf can be signed now."""
    if not sight.published and sight.stored.leaf.empty:
        return "there is no webhook configuration to publish its authority in"
    return "" if sight.believed(current.certificate) else "not every webhook entry believes the current authority yet"


def _of_bundle(sight: Sight, bundle: bytes, *, in_step: bool) -> Step | None:
    if not in_step or sight.stored.leaf.empty or sight.stored.bundle == bundle:
        return None
    return Step(Kind.BUNDLE_WRITTEN, "the bundle beside the leaf is not the published one", bundle=bundle)


def _rest(sight: Sight, now: datetime, lives: Lives, *, in_step: bool) -> Rest:
    """Say what comes next when nothing is to be written."""
    current, following = sight.stored.current.held, sight.stored.next.held
    problem, _ = _leaf_problem(sight, current, now)
    if problem:
        return Rest(now, Kind.LEAF_RENEWED, f"{problem}; {_leaf_hindrance(sight, current)}", amiss=True)
    if not in_step:
        return Rest(now, Kind.BUNDLE_PUBLISHED, "the webhook configurations could not be written", amiss=True)
    return min(_to_come(sight, current, following, lives), key=lambda rest: rest.until)


def _to_come(sight: Sight, current: Pair, following: Pair, lives: Lives) -> Iterable[Rest]:
    due = due_at(current.certificate)
    known = _known_since(sight.stored, following.certificate)
    if made_at(following.certificate) < due - lives.lead:
        yield Rest(due - lives.lead, Kind.NEXT_AUTHORITY_MADE, "the next authority is old enough only then")
    elif known is None:
        yield Rest(due, Kind.AUTHORITY_PROMOTED, "the next authority must be published first", amiss=True)
    else:
        yield Rest(max(due, known + lives.notice), Kind.AUTHORITY_PROMOTED, "the current authority is young enough")
    leaf = sight.stored.leaf.pair
    if leaf is not None:
        yield Rest(due_at(leaf.certificate), Kind.LEAF_RENEWED, "the leaf is young enough")
    for one in sight.stored.retired:
        end = min(one.until, one.certificate.not_valid_after_utc)
        yield Rest(end, Kind.PREVIOUS_AUTHORITY_DROPPED, "a leaf of a previous authority may be in use")
