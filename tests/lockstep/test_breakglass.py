"""The patches of `lockstep breakglass`: what they open, and that closing puts back what was there."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.doctoring.opening import OPENED, read_opening
from lockstep.doctoring.opening_patches import closing_patch, opening_patch
from lockstep.main import main

WHEN = "2026-11-30T12:00:00Z"

conditions = st.lists(
    st.fixed_dictionaries({"name": st.just("c"), "expression": st.just("true")}), min_size=1, max_size=2
)
entries = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("pods"), "failurePolicy": st.sampled_from(["Fail", "Ignore"])},
        optional={"matchConditions": conditions},
    ),
    max_size=3,
)
annotations = st.one_of(st.none(), st.dictionaries(st.sampled_from(["a/b", "c~d"]), st.text(max_size=3), max_size=2))


def configuration(webhooks: list[Any], notes: dict[str, str] | None) -> dict[str, Any]:
    """A webhook configuration."""
    meta = {"name": "lockstep-mutating", "resourceVersion": "7"} | ({} if notes is None else {"annotations": notes})
    return {"kind": "MutatingWebhookConfiguration", "metadata": meta, "webhooks": webhooks}


def binding(actions: list[str]) -> dict[str, Any]:
    """A binding of a policy."""
    meta = {"name": "lockstep-final-check", "resourceVersion": "7"}
    return {"kind": "ValidatingAdmissionPolicyBinding", "metadata": meta, "spec": {"validationActions": actions}}


def applied(content: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """What a patch makes of an object."""
    changed: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(content), operations)
    return changed


@given(entries, annotations, st.booleans())
def test_closing_puts_back_what_was_there(webhooks: list[Any], notes: dict[str, str] | None, uncalled: bool) -> None:  # noqa: FBT001
    """Whatever the entries say, open and closed again they say the same, and no annotation is lost."""
    whole = configuration(webhooks, notes)
    opened = applied(whole, opening_patch(whole, "why", "who", WHEN, uncalled=uncalled))
    assert {entry["failurePolicy"] for entry in opened["webhooks"]} <= {"Ignore"}
    closed = applied(opened, closing_patch(opened))
    assert closed["webhooks"] == whole["webhooks"]
    assert (closed["metadata"].get("annotations") or {}) == (notes or {})


@pytest.mark.parametrize("actions", [["Deny", "Audit"], ["Deny"], ["Warn", "Audit"]], ids="/".join)
def test_a_binding_warns_while_it_is_open(actions: list[str]) -> None:
    """And does what it did afterwards."""
    whole = binding(actions)
    opened = applied(whole, opening_patch(whole, "why", "who", WHEN))
    assert opened["spec"]["validationActions"] == ["Warn", "Audit"]
    assert applied(opened, closing_patch(opened))["spec"] == whole["spec"]


def test_the_mark_says_who_when_and_why() -> None:
    """For whoever finds it."""
    whole = configuration([{"name": "pods", "failurePolicy": "Fail"}], None)
    opening = read_opening(applied(whole, opening_patch(whole, "why", "who", WHEN))["metadata"]["annotations"])
    assert opening is not None
    assert (opening.reason, opening.who, opening.since) == ("why", "who", WHEN)
    assert opening.before == {"/webhooks/0/failurePolicy": "Fail"}


def test_what_is_open_stays_as_it_is() -> None:
    """A second opening would take the first one's values for those to put back."""
    whole = configuration([{"name": "pods", "failurePolicy": "Fail"}], None)
    opened = applied(whole, opening_patch(whole, "why", "who", WHEN))
    assert opening_patch(opened, "again", "who", WHEN) == []
    assert closing_patch(whole) == []


def test_an_object_that_was_written_in_between_is_not_patched() -> None:
    """Entries are named by number: the patch holds for the version that was read only."""
    whole = configuration([{"name": "pods", "failurePolicy": "Fail"}], None)
    operations = opening_patch(whole, "why", "who", WHEN)
    newer = whole | {"metadata": whole["metadata"] | {"resourceVersion": "8"}}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        applied(newer, operations)


def test_a_mark_that_is_none_is_told() -> None:
    """It is not put right by guessing."""
    whole = configuration([], {OPENED: "yes"})
    with pytest.raises(ValueError, match="must be a mark of lockstep breakglass"):
        closing_patch(whole)


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501], ids=["nothing", "blanks", "a novel"])
def test_a_reason_is_needed(reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody will ask."""
    assert main(["breakglass", "on", "--reason", reason]) == 2
    length = len(reason.strip())
    assert capsys.readouterr().err == f"--reason: must have 1 to 500 characters, got {length}\n"
