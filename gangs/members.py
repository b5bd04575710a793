"""What a pod says about its replica, from its own labels and annotations alone."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gangs import keys, names

MOST_PODS: Final = 2**31 - 1
"""LWS declares size and index as int32."""

MOST_DIGITS: Final = len(str(MOST_PODS))

MOST_SHOWN: Final = 63
"""Characters of a culprit that are repeated to the user; a label value has no more."""

NAME_PATH: Final = f"metadata.labels[{keys.LWS_NAME}]"
INDEX_PATH: Final = f"metadata.labels[{keys.GROUP_INDEX}]"
SIZE_PATH: Final = f"metadata.annotations[{keys.SIZE}]"


class Malformed(ValueError):  # noqa: N818 - reads as what the pod is
    """An LWS pod whose labels or annotations are not what LWS writes.

    Attributes:
        path: field path of the culprit.
        rule: what it must be.
        got: what it is, `None` for nothing.
    """

    def __init__(self, path: str, rule: str, got: str | None) -> None:
        """Keep the parts and render `<path>: must <rule>, got <value>`."""
        self.path, self.rule, self.got = path, rule, got
        super().__init__(f"{path}: must {rule}, got {'nothing' if got is None else shown(got)}")


def shown(text: str) -> str:
    """Quote a culprit for a message: short, and in the ASCII that an HTTP warning header can carry."""
    plain = text[:MOST_SHOWN].encode("unicode_escape").decode("ascii")
    return f'"{plain}"' if len(text) <= MOST_SHOWN else f'"{plain}..."'


class Member(msgspec.Struct, frozen=True, gc=False):
    """One pod's view of its replica.

    Attributes:
        namespace: namespace of the pod.
        lws: name of its LeaderWorkerSet.
        index: index of the replica.
        leader: whether the pod is the replica's leader.
        leader_name: pod name of the leader; the pod's own for a leader.
        revision: template revision hash.
        size: pods of the replica as annotated; a guess on a leader (LWS 0.8 builds old revisions with the live size).
        key: the group-key, `None` on a leader that has none yet.
    """

    namespace: str
    lws: str
    index: int
    leader: bool
    leader_name: str
    revision: str
    size: int
    key: str | None

    @property
    def group(self) -> str | None:
        """Name of the group, `None` while there is no key."""
        if self.key is None:
            return None
        return names.group_name(self.namespace, self.lws, self.index, self.revision, self.key)


def read_member(namespace: str, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Member | None:
    """Read a pod's place in its replica.

    On its first admission pass a leader has neither `group-index` nor `group-key`: its index is its name's ordinal.

    Args:
        namespace: where the pod is (for a review: of the request).
        name: `metadata.name`.
        labels: `metadata.labels`.
        annotations: `metadata.annotations`.

    Returns:
        The member, or `None` for a pod that is not of an LWS.

    Raises:
        Malformed: when the pod carries the LWS label and something that LWS never writes.
    """
    lws = labels.get(keys.LWS_NAME)
    if lws is None:
        return None
    if not names.DNS_LABEL.fullmatch(lws):
        raise Malformed(NAME_PATH, "be a DNS label", lws)
    leader_name = annotations.get(keys.LEADER_NAME)
    leader = leader_name is None
    if leader and labels.get(keys.WORKER_INDEX) != "0":
        raise Malformed(f"metadata.labels[{keys.WORKER_INDEX}]", 'be "0" on a leader', labels.get(keys.WORKER_INDEX))
    revision = labels.get(keys.REVISION)
    if not revision:
        raise Malformed(f"metadata.labels[{keys.REVISION}]", "be set", revision)
    key = labels.get(keys.GROUP_KEY)
    if key == "" or (key is None and not leader):
        raise Malformed(f"metadata.labels[{keys.GROUP_KEY}]", "be set on a worker" if key is None else "be a key", key)
    return Member(
        namespace=namespace,
        lws=lws,
        index=_index(name, labels, leader=leader),
        leader=leader,
        leader_name=name if leader_name is None else leader_name,
        revision=revision,
        size=_size(annotations),
        key=key,
    )


def looks_nested(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Tell whether a worker bears the leader's worker-index, as API servers without StatefulSet start ordinals make it.

    Such a pod is a worker: a leader has no `leader-name` annotation (kubernetes-sigs/lws#391).
    """
    return labels.get(keys.WORKER_INDEX) == "0" and keys.LEADER_NAME in annotations


def _index(name: str, labels: Mapping[str, str], *, leader: bool) -> int:
    text = labels.get(keys.GROUP_INDEX)
    if text is not None:
        return _whole(INDEX_PATH, text, least=0)
    if not leader:
        raise Malformed(INDEX_PATH, "be set on a worker", None)
    ordinal = _number(name.rpartition("-")[2])
    if ordinal is None:
        raise Malformed("metadata.name", "end in the leader's ordinal", name)
    return ordinal


def _size(annotations: Mapping[str, str]) -> int:
    text = annotations.get(keys.SIZE)
    if text is None:
        raise Malformed(SIZE_PATH, "be a whole number of at least 1", None)
    return _whole(SIZE_PATH, text, least=1)


def _whole(path: str, text: str, *, least: int) -> int:
    number = _number(text)
    if number is None or number < least:
        raise Malformed(path, f"be a whole number of at least {least}", text)
    return number


def _number(text: str) -> int | None:
    if len(text) > MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return number if number <= MOST_PODS else None
