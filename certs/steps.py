"""What a step writes into a Secret. Keys and serial numbers are drawn by whoever calls."""

from collections.abc import Callable
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric import ec

from certs.authority import make_authority
from certs.leaf import make_leaf
from certs.lives import Lives
from certs.pair import Pair
from certs.sight import Kind, Sight, Step
from certs.store import BUNDLE, Change, write_current, write_leaf, write_next, write_published, write_retired

Draw = Callable[[], tuple[ec.EllipticCurvePrivateKey, int]]
"""Gives a new key and a random serial number."""

OF_LEAF_SECRET = frozenset({Kind.LEAF_RENEWED, Kind.BUNDLE_WRITTEN})
"""The steps that write the leaf's Secret; BUNDLE_PUBLISHED writes configurations, all others the other Secret."""


def change_of(step: Step, sight: Sight, now: datetime, lives: Lives, draw: Draw) -> Change:
    """Give the keys of the Secret that a step sets or removes; none for BUNDLE_PUBLISHED, which writes no Secret."""
    stored = sight.stored
    match step.kind:
        case Kind.AUTHORITY_MADE:
            change = write_current(_authority(now, lives, draw)) | write_next(_authority(now, lives, draw))
            change |= write_retired(step.retired)
        case Kind.AUTHORITY_PROMOTED:
            change = write_current(stored.next.held) | write_next(_authority(now, lives, draw))
            change |= write_retired(step.retired)
        case Kind.NEXT_AUTHORITY_MADE:
            change = write_next(_authority(now, lives, draw)) | write_retired(step.retired)
        case Kind.NEXT_AUTHORITY_PUBLISHED:
            change = write_published(stored.next.held.certificate.serial_number, now)
        case Kind.PREVIOUS_AUTHORITY_DROPPED:
            change = write_retired(step.retired)
        case Kind.LEAF_RENEWED:
            key, serial = draw()
            change = write_leaf(make_leaf(stored.current.held, sight.hosts, now, key, serial, lives.leaf), step.bundle)
        case Kind.BUNDLE_WRITTEN:
            change = {BUNDLE: step.bundle}
        case Kind.BUNDLE_PUBLISHED:
            change = {}
    return change


def _authority(now: datetime, lives: Lives, draw: Draw) -> Pair:
    key, serial = draw()
    return make_authority(now, key, serial, lives.authority)
