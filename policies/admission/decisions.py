"""What a policy says about a request."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from policies.admission.documents import Action

Verb: TypeAlias = Literal["admit", "deny"]
Evaluation: TypeAlias = Literal["admit", "deny", "error"]

WHOLE_POLICY: Final = -1
"""The index of a decision that no single validation took: match conditions, params, versions, the budget."""


class Decision(msgspec.Struct, frozen=True):
    """What one validation, or the policy as a whole, says.

    Attributes:
        policy: its name.
        binding: the binding's name, empty when the policy was judged without one.
        index: of the validation, or `WHOLE_POLICY`.
        action: what follows from it: an error under failurePolicy Ignore admits.
        evaluation: how it came about: an error is reported whatever follows.
        message: why, empty when admitted without an error.
        reason: of the API, empty when admitted.
        actions: what the binding makes of a denial.
    """

    policy: str
    binding: str
    index: int
    action: Verb
    evaluation: Evaluation
    message: str = ""
    reason: str = ""
    actions: tuple[Action, ...] = ()


class PolicyDecision(msgspec.Struct, frozen=True):
    """All that one policy says about a request.

    Attributes:
        matched: whether the request is one that the policy is about, its match conditions included.
        decisions: of every validation, for every binding and parameter.
        audit_annotations: by key, without the policy's name.
    """

    matched: bool
    decisions: tuple[Decision, ...] = ()
    audit_annotations: Mapping[str, str] = {}

    @property
    def broken(self) -> tuple[Decision, ...]:
        """Denials, and errors that were let pass."""
        return tuple(decision for decision in self.decisions if decision.evaluation != "admit")

    @property
    def denied(self) -> tuple[Decision, ...]:
        """What refuses the request."""
        return self._with("Deny")

    @property
    def warned(self) -> tuple[Decision, ...]:
        """What the user is told."""
        return self._with("Warn")

    @property
    def audited(self) -> tuple[Decision, ...]:
        """What goes to the audit log."""
        return self._with("Audit")

    def _with(self, action: Action) -> tuple[Decision, ...]:
        return tuple(item for item in self.decisions if item.action == "deny" and action in item.actions)
