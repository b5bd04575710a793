"""Whole policies against recorded decisions."""

import pytest

from policies.admission.decisions import Decision
from tests.policies.admission.scenarios import Scenario, drafts, scenarios

POLICIES = drafts()
SCENARIOS = scenarios()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_scenario_is_decided_as_recorded(scenario: Scenario) -> None:
    """Match, decisions, messages, reasons and audit annotations equal those of the API server's own code."""
    judged = POLICIES[scenario.id[:2]].judge(scenario.admission, scenario.params)

    assert judged.matched == scenario.matched
    assert [_told(decision) for decision in judged.decisions] == scenario.decisions
    assert judged.audit_annotations == scenario.audit_annotations


def test_all_scenarios_are_there() -> None:
    """46 of them."""
    assert len(SCENARIOS) == 46


def _told(decision: Decision) -> dict[str, str]:
    """Give what was recorded of a decision; of an error neither words nor reason were."""
    told: dict[str, str] = {"action": decision.action, "eval": decision.evaluation}
    if decision.evaluation == "deny":
        told |= {"message": decision.message, "reason": decision.reason}
    return told
