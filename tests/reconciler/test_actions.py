"""Actions read well in logs."""

import pytest

from reconciler.actions import (
    Action,
    CreateGroup,
    DeletePod,
    LookAgain,
    OpenGate,
    PatchGroup,
    PatchPod,
    Say,
    describe,
)
from schedulers.native_objects import V1BETA1


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (CreateGroup(V1BETA1, "team", "a-0", {}), "creates podgroups.scheduling.k8s.io/v1beta1 a-0"),
        (PatchGroup(V1BETA1, "team", "a-0", {"x": 1}), "changes podgroups.scheduling.k8s.io/v1beta1 a-0: {'x': 1}"),
        (PatchPod("team", "a-0", {}), "writes on pod a-0"),
        (OpenGate("team", "a-0", {}), "opens the gate of pod a-0"),
        (DeletePod("team", "a-0", "uid"), "deletes pod a-0 (uid)"),
        (Say("Reason", "words", "subject"), "says Reason: words"),
        (LookAgain(1.25, "why"), "looks again in 1.2 s: why"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_an_action_is_described_in_a_few_words(action: Action, words: str) -> None:
    """What is logged names the object and what happens to it."""
    assert describe(action) == words
