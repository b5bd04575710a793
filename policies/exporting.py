"""Gives policies as documents for other uses: other actions, and manifests that an API server reads from its own disk.

There is no MutatingAdmissionPolicy that stamps. It would have to give every member of a replica the same new name
without a look-up, and it can't: expressions have no hash and no randomness; on a leader the group-key is not there yet,
since such policies run before webhooks; and what does not match in the first pass is not looked at again. A name made
of what is there (LWS, index, revision) is the same for every incarnation, and a PodGroup of the last one would be taken
for that of the next. Sites without the webhook are told so instead.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from policies.admission.documents import ACTIONS, Action, BindingDocument, PolicyDocument
from policies.admission.policies import Policy

STATIC: Final = ".static.k8s.io"
"""How names of policies end that an API server reads from files (KEP-5793)."""

DENY: Final = ("Deny",)

NO_MUTATION: Final = (
    "must be stamped by the webhook, got no MutatingAdmissionPolicy: it can neither hash nor draw a key, runs before"
    " LWS has set the index, and would give two incarnations of a replica one name"
)
"""Why no MutatingAdmissionPolicy is exported."""

_LONGEST_NAME: Final = 253


class ExportError(ValueError):
    """What can't be exported; the message is `<path>: must ..., got ...`."""


def check_actions(actions: Sequence[str]) -> tuple[Action, ...]:
    """Read validation actions as people write them.

    Raises:
        ExportError: one is unknown, there is none, or Deny stands with Warn.
    """
    found = tuple(action for action in ACTIONS if action.lower() in {item.strip().lower() for item in actions})
    if len(found) != len(actions) or not found or {"Deny", "Warn"} <= set(found):
        given = ", ".join(actions) or "none"
        raise ExportError(f"actions: must be Deny, or Warn, or Audit with one of them, got {given}")
    return found


def export_bindings(policies: Iterable[Policy], actions: Sequence[str] = DENY) -> list[dict[str, Any]]:
    """Give the bindings with other actions; the policies stay as they are.

    Raises:
        ExportError: see `check_actions`.
    """
    wanted = check_actions(actions)
    return [_plain(_with_actions(binding, wanted)) for policy in policies for binding in policy.bindings]


def export_mutating() -> list[dict[str, Any]]:
    """Give MutatingAdmissionPolicies that stamp: there are none, see above.

    Raises:
        ExportError: always.
    """
    raise ExportError(f"pods: {NO_MUTATION}")


def export_static(policies: Iterable[Policy], actions: Sequence[str] = DENY) -> list[dict[str, Any]]:
    """Give policies and bindings as manifest-based admission takes them: there from the start, deletable by nobody.

    Raises:
        ExportError: a policy has parameters, which there are none for before the API server is up; or `check_actions`.
    """
    wanted = check_actions(actions)
    documents: list[dict[str, Any]] = []
    for policy in policies:
        if policy.param_kind is not None:
            raise ExportError(
                f"spec.paramKind: must be unset in a static policy, got one in {policy.name!r}".replace("'", '"')
            )
        name = policy.name + STATIC
        if len(name) > _LONGEST_NAME:
            raise ExportError(f'metadata.name: must be at most {_LONGEST_NAME} characters with "{STATIC}", got more')
        documents.append(_plain(_renamed(policy.document, name)))
        documents += [_plain(_bound(binding, name, wanted)) for binding in policy.bindings]
    return documents


def _with_actions(binding: BindingDocument, actions: Sequence[Action]) -> BindingDocument:
    spec = msgspec.structs.replace(binding.spec, validation_actions=tuple(actions))
    return msgspec.structs.replace(binding, spec=spec)


def _renamed(document: PolicyDocument, name: str) -> PolicyDocument:
    return msgspec.structs.replace(document, metadata=msgspec.structs.replace(document.metadata, name=name), status={})


def _bound(binding: BindingDocument, policy: str, actions: Sequence[Action]) -> BindingDocument:
    changed = _with_actions(binding, actions)
    return msgspec.structs.replace(
        changed,
        metadata=msgspec.structs.replace(changed.metadata, name=changed.metadata.name + STATIC),
        spec=msgspec.structs.replace(changed.spec, policy_name=policy),
    )


def _plain(document: PolicyDocument | BindingDocument) -> dict[str, Any]:
    """Give a document without the fields that are at their defaults."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain
