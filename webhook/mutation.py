"""The decision: a review's body in, the answer out. Pure but for the drawing of a random key, which is passed in."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gangs import keys, names
from gangs.members import Malformed, Member, read_member
from schedulers.abilities import SharesClaims
from schedulers.claims import other_claim
from schedulers.configuration import Configuration
from schedulers.contract import Provider, Stamp
from webhook.claiming import claiming, unclaiming
from webhook.reviews import (
    JSON,
    TEXT,
    BadReview,
    Decision,
    Operation,
    Pod,
    PodMetadata,
    PodSpec,
    Request,
    allow,
    pointer,
    read_review,
)

LABELS: Final = "/metadata/labels"
ANNOTATIONS: Final = "/metadata/annotations"
SCHEDULING_GROUP: Final = "/spec/schedulingGroup"
WORKLOAD_REF: Final = "/spec/workloadRef"
GATES: Final = "/spec/schedulingGates"

UNCHANGED: Final = "unchanged"
STAMPED: Final = "stamped"
WARNED: Final = "warned"
WITHDRAWN: Final = "withdrawn"
REFUSED: Final = "refused"

NO_CLAIM: Final = "lockstep gives this pod no ResourceClaim"
LEFT_OUT: Final = "lockstep leaves this pod out of its gang"


class View(msgspec.Struct, frozen=True, gc=False):
    """A pod as providers see it (`schedulers.contract.PodFacts`), and what the webhook looks at beside that.

    Attributes:
        labels: `metadata.labels`.
        annotations: `metadata.annotations`.
        scheduling_group: `spec.schedulingGroup.podGroupName`.
        gates: names of its scheduling gates.
        placed: whether it names its node itself; the API server lets no such pod have a gate.
        workload_ref: `spec.workloadRef.name`.
        spec: the spec as it was decoded.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduling_group: str | None
    gates: tuple[str, ...] = ()
    placed: bool = False
    workload_ref: str | None = None
    spec: PodSpec = PodSpec()


class Decider:
    """Decides what is patched onto a pod.

    The same review always gives the same bytes, but for the key drawn on a leader that has none. What was stamped once
    gives no patch when it is reviewed again.
    """

    def __init__(self, configuration: Configuration, draw_key: Callable[[], str]) -> None:
        """Take the configuration and a source of random group-keys (40 hex digits, like LWS's own)."""
        self._configuration = configuration
        self._draw_key = draw_key

    def __call__(self, body: bytes) -> Decision:
        """Answer a review; a body that is not one is answered with 400."""
        try:
            request = read_review(body)
        except BadReview as error:
            return Decision(400, str(error).encode(), TEXT, REFUSED)
        if not request.creates_pod:
            return _admit(request, UNCHANGED)
        return self._review(request, request.object or Pod())

    def _review(self, request: Request, pod: Pod) -> Decision:
        metadata = pod.metadata or PodMetadata()
        spec = pod.spec or PodSpec()
        labels = metadata.labels or {}
        provider = self._configuration.provider(spec.scheduler_name or "")
        if provider is None or labels.get(keys.LOCKSTEP_GANG) == keys.OPTED_OUT:
            return _admit(request, UNCHANGED)
        group, workload = spec.scheduling_group, spec.workload_ref
        # A scheduling group without a name is still someone's: "" is no name of ours, so it counts as another's claim.
        view = View(
            labels,
            metadata.annotations or {},
            None if group is None else group.pod_group_name or "",
            gates=tuple([gate.name or "" for gate in spec.scheduling_gates or ()]),
            placed=bool(spec.node_name),
            workload_ref=None if workload is None else workload.name or "",
            spec=spec,
        )
        try:
            member = read_member(request.namespace, metadata.name or "", labels, view.annotations)
        except Malformed as error:
            return _admit(request, WARNED, warning=f"{LEFT_OUT}: {error}")
        if member is None:
            return _admit(request, UNCHANGED)
        return self._stamp(request, view, member, provider)

    def _stamp(self, request: Request, pod: View, member: Member, provider: Provider) -> Decision:
        key = member.key or self._draw_key()
        group = names.group_name(member.namespace, member.lws, member.index, member.revision, key)
        stamp = provider.stamp(group, leader=member.leader)
        mark = pod.labels.get(keys.LOCKSTEP_GROUP)
        if other_claim(pod, member, provider, group) is not None:
            if mark != group:
                return _admit(request, UNCHANGED)
            return _admit(request, WITHDRAWN, withdrawal(pod, member, stamp))
        if mark not in (None, group):
            error = Malformed(f"metadata.labels[{keys.LOCKSTEP_GROUP}]", "be unset in a pod template", mark)
            return _admit(request, WARNED, warning=f"{LEFT_OUT}: {error}")
        operations = [] if member.key else [_add(LABELS, keys.GROUP_KEY, key)]
        operations += stamping(pod, group, stamp)
        claims, warning = _claim(pod, group, provider)
        operations += claims
        if not operations:
            return _admit(request, UNCHANGED, warning=warning)
        return _admit(request, STAMPED, operations, warning=warning, provider=provider.name)


def _claim(pod: View, group: str, provider: Provider) -> tuple[list[Operation], str]:
    """Put the replica's claim into a pod that asks for one; gives the warning where that can't be done."""
    template = pod.annotations.get(keys.CLAIM_TEMPLATE)
    if template is None:
        return [], ""
    if not isinstance(provider, SharesClaims):
        return [], f"{NO_CLAIM}: {provider.title} does not place pods together that share one"
    try:
        return claiming(template, group, pod.spec), ""
    except Malformed as problem:
        return [], f"{NO_CLAIM}: {problem}"


def stamping(pod: View, group: str, stamp: Stamp) -> list[Operation]:
    """Compute the operations that add what is missing of a stamp and of our label; nothing is ever overwritten."""
    operations = [] if keys.LOCKSTEP_GROUP in pod.labels else [_add(LABELS, keys.LOCKSTEP_GROUP, group)]
    for key, value in stamp.labels.items():
        if key not in pod.labels:
            operations.append(_add(LABELS, key, value))
    for key, value in stamp.annotations.items():
        if key not in pod.annotations:
            operations.append(_add(ANNOTATIONS, key, value))
    if pod.scheduling_group is None and pod.workload_ref is None:
        operations += references(stamp)
    if stamp.gated and keys.GATE not in pod.gates and not pod.placed:
        gate = {"name": keys.GATE}
        operations.append(Operation("add", f"{GATES}/-", gate) if pod.gates else Operation("add", GATES, [gate]))
    return operations


def references(stamp: Stamp) -> list[Operation]:
    """Compute the operations that name the group in the pod's spec.

    A stamp in the words of two versions loses one of them at once: an API server drops what it does not know. So a pod
    that has either is not patched again.
    """
    operations = []
    if stamp.scheduling_group is not None:
        operations.append(Operation("add", SCHEDULING_GROUP, {"podGroupName": stamp.scheduling_group}))
    if (ref := stamp.workload_ref) is not None:
        value = {"name": ref.name, "podGroup": ref.pod_group, "podGroupReplicaKey": ref.replica_key}
        operations.append(Operation("add", WORKLOAD_REF, value))
    return operations


def withdrawal(pod: View, member: Member, stamp: Stamp) -> list[Operation]:
    """Compute the operations that take our stamp off a pod which someone else claimed after our first pass.

    The key is set back to LWS's own, unless LWS has already written it into affinity terms.
    """
    operations = [_remove(LABELS, keys.LOCKSTEP_GROUP)]
    operations += [_remove(LABELS, key) for key, value in stamp.labels.items() if pod.labels.get(key) == value]
    operations += [
        _remove(ANNOTATIONS, key) for key, value in stamp.annotations.items() if pod.annotations.get(key) == value
    ]
    if stamp.scheduling_group is not None and pod.scheduling_group == stamp.scheduling_group:
        operations.append(Operation("remove", SCHEDULING_GROUP))
    if stamp.workload_ref is not None and pod.workload_ref == stamp.workload_ref.name:
        operations.append(Operation("remove", WORKLOAD_REF))
    with contextlib.suppress(Malformed):
        operations += unclaiming(pod.annotations.get(keys.CLAIM_TEMPLATE), pod.labels[keys.LOCKSTEP_GROUP], pod.spec)
    if stamp.gated and keys.GATE in pod.gates:
        only = len(pod.gates) == 1
        operations.append(Operation("remove", GATES if only else f"{GATES}/{pod.gates.index(keys.GATE)}"))
    own = names.key_of_lws(member.namespace, member.leader_name)
    if member.leader and member.key != own and keys.EXCLUSIVE_TOPOLOGY not in pod.annotations:
        operations.append(Operation("replace", pointer(LABELS, keys.GROUP_KEY), own))
    return operations


def _admit(
    request: Request, outcome: str, operations: list[Operation] | None = None, *, warning: str = "", provider: str = ""
) -> Decision:
    body = allow(request.uid, operations or (), (warning,) if warning else ())
    return Decision(200, body, JSON, outcome, provider, request.uid)


def _add(where: str, key: str, value: str) -> Operation:
    return Operation("add", pointer(where, key), value)


def _remove(where: str, key: str) -> Operation:
    return Operation("remove", pointer(where, key))
