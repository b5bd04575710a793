"""The API server trusts what the webhooks serve: each entry's bundle verifies the certificate."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from lockstep.doctoring.findings import ERROR, Finding
from lockstep.doctoring.places import LEAF_SECRET, SECRET
from lockstep.doctoring.probing import Handshake
from lockstep.doctoring.seeing import Seen, secret_data

NAME: Final = "bundle"
WHY: Final = "the API server refuses to talk to the webhook, and LWS pods are admitted without a group"


def find(seen: Seen) -> Iterator[Finding]:
    """Check each entry."""
    chain = secret_data(seen.get(SECRET, LEAF_SECRET), "tls.crt")
    for hand in seen.handshakes:
        title = f'{hand.place} entry "{hand.entry}" clientConfig.caBundle'
        if not hand.bundle:
            what = f"{title}: must hold certificates, got nothing"
        elif hand.distrust:
            what = f'{title}: must verify what "{hand.name}" serves, got "{hand.distrust}"'
        elif not hand.tried and chain and (trouble := distrust(chain, hand, seen.now)):
            what = f'{title}: must verify the certificate in Secret "{LEAF_SECRET}", got "{trouble}"'
        else:
            continue
        yield Finding(NAME, ERROR, what, WHY, f"lockstep certs status --namespace {seen.namespace}")


def distrust(chain: bytes, hand: Handshake, now: dt.datetime) -> str:
    """Say why a caller that trusts an entry's bundle would not trust a chain; empty when it would."""
    try:
        leaf, *more = x509.load_pem_x509_certificates(chain)
        roots = Store(x509.load_pem_x509_certificates(hand.bundle))
        verifier = PolicyBuilder().store(roots).time(now).build_server_verifier(x509.DNSName(hand.name))
        verifier.verify(leaf, more)
    except (ValueError, VerificationError) as error:
        return " ".join(str(error).split())
    return ""
