"""The served certificate is valid for long enough, and for the right names."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from cryptography import x509

from lockstep.doctoring.findings import ERROR, WARNING, Finding
from lockstep.doctoring.places import LEAF_SECRET, SECRET, Place
from lockstep.doctoring.seeing import Seen, secret_data

NAME: Final = "certificates"
LEFT: Final = 4
"""Renewal is due at a third of its life; at a quarter it has not happened."""

WHY_NONE: Final = "without a certificate no webhook is ready, and LWS pods are admitted without a group"
WHY_OLD: Final = "whoever renews it does not; once it ends, LWS pods are admitted without a group"
WHY_NAMES: Final = "the API server asks for this name and refuses any other"


def find(seen: Seen) -> Iterator[Finding]:
    """Look into the Secret."""
    place = Place(SECRET, seen.namespace, LEAF_SECRET)
    if str(place) in seen.unseen or seen.live.get(place) is None:
        return
    mend = f"lockstep certs status --namespace {seen.namespace}"
    try:
        leaf = x509.load_pem_x509_certificates(secret_data(seen.live[place], "tls.crt"))[0]
    except ValueError:
        yield Finding(NAME, ERROR, f"{place} tls.crt: must be a certificate, got none", WHY_NONE, mend)
        return
    yield from _of_age(leaf, place, seen.now, mend)
    yield from _of_names(leaf, place, seen, mend)


def end_of(seen: Seen) -> str:
    """Say when the served certificate ends, for people."""
    chain = secret_data(seen.get(SECRET, LEAF_SECRET), "tls.crt")
    try:
        return f"until {x509.load_pem_x509_certificates(chain)[0].not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return "none seen"


def _of_age(leaf: x509.Certificate, place: Place, now: dt.datetime, mend: str) -> Iterator[Finding]:
    start, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if now >= end:
        yield Finding(NAME, ERROR, f"{place} tls.crt: must be valid, ended {end:%Y-%m-%d %H:%M} UTC", WHY_OLD, mend)
    elif (end - now) < (end - start) / LEFT:
        what = f"{place} tls.crt: must have been renewed by now, got an end on {end:%Y-%m-%d %H:%M} UTC"
        yield Finding(NAME, WARNING, what, WHY_OLD, mend)


def _of_names(leaf: x509.Certificate, place: Place, seen: Seen, mend: str) -> Iterator[Finding]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([x509.DNSName("")])
    there = names.get_values_for_type(x509.DNSName)
    for service in ("lockstep-webhook", "lockstep-policy"):
        wanted = f"{service}.{seen.namespace}.svc"
        if wanted not in there:
            what = f'{place} tls.crt: must be for "{wanted}", got {", ".join(there) or "no name"}'
            yield Finding(NAME, ERROR, what, WHY_NAMES, mend)
