"""Names of groups: one per incarnation of a replica, computable from any member alone."""

import hashlib
import re
from typing import Final

MOST: Final = 63
"""Longest group name: it has to fit a label value."""

DIGITS: Final = 10

DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123 label, at most 63 characters."""


_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_subdomain(text: str) -> bool:
    """Tell whether a text is a DNS subdomain (RFC 1123), at most 253 characters."""
    return _SUBDOMAIN.fullmatch(text) is not None


def group_name(namespace: str, lws: str, index: int, revision: str, key: str) -> str:
    """Name the group of one incarnation.

    Args:
        namespace: namespace of the pods.
        lws: name of the LeaderWorkerSet.
        index: index of the replica, from 0.
        revision: template revision hash that the replica is built from.
        key: the replica's group-key; a new leader has a new one.

    Returns:
        A DNS-1123 label of at most 63 characters: `<lws, shortened>-<index>-<10 hex digits>`.
    """
    digest = hashlib.sha256(f"{namespace}/{lws}/{index}/{revision}/{key}".encode()).hexdigest()[:DIGITS]
    tail = f"-{index}-{digest}"
    return lws[: MOST - len(tail)].rstrip("-") + tail


def shared_name(namespace: str, owner: str, *rest: str) -> str:
    """Name an object that groups of several replicas share.

    Args:
        namespace: namespace of the replicas.
        owner: name of the LeaderWorkerSet or DisaggregatedSet.
        rest: what tells the object from others of the same owner.

    Returns:
        A DNS-1123 label of at most 63 characters: `<owner, shortened>-<10 hex digits>`.
    """
    digest = hashlib.sha256("/".join((namespace, owner, *rest)).encode()).hexdigest()[:DIGITS]
    return f"{owner[: MOST - DIGITS - 1].rstrip('-.')}-{digest}"


def index_in(group: str) -> str:
    """Read the replica's index out of a name of `group_name`; of any other name, some part of it."""
    return group.rpartition("-")[0].rpartition("-")[2] or group


def key_of_lws(namespace: str, leader: str) -> str:
    """Give the group-key that LWS itself writes on a leader which has none.

    It is the same text for every incarnation (kubernetes-sigs/lws `pkg/webhooks/pod_webhook.go` `genGroupUniqueKey`).
    """
    return hashlib.sha1(f"{namespace}/{leader}".encode(), usedforsecurity=False).hexdigest()


def lws_volcano_group_name(lws: str, index: int, revision: str) -> str:
    """Give the PodGroup name of LWS's own Volcano provider (kubernetes-sigs/lws `pkg/schedulerprovider`)."""
    return f"{lws}-{index}-{revision}"
