"""Late workers, and the minimum that follows from them."""

import pytest

from gangs import keys
from gangs.late import minimum, why_late

TOPOLOGY = f"metadata.annotations[{keys.EXCLUSIVE_TOPOLOGY}]"
EXCLUSIVE = {keys.EXCLUSIVE_TOPOLOGY: "topology.kubernetes.io/zone"}
SUBGROUP = {keys.SUBGROUP_EXCLUSIVE_TOPOLOGY: "topology.kubernetes.io/zone"}


@pytest.mark.parametrize(
    ("policy", "annotations", "size", "reason"),
    [
        pytest.param("", {}, 4, None, id="the default policy"),
        pytest.param("LeaderCreated", {}, 4, None, id="the default policy spelt out"),
        pytest.param("LeaderReady", {}, 4, "spec.startupPolicy", id="workers wait for a ready leader"),
        pytest.param("LeaderCreated", EXCLUSIVE, 4, TOPOLOGY, id="C13: workers wait for the leader's node"),
        pytest.param("LeaderCreated", SUBGROUP, 4, None, id="C13: exclusive subgroups defer nobody"),
        pytest.param("LeaderReady", EXCLUSIVE, 4, "spec.startupPolicy", id="both: the policy is named"),
        pytest.param("LeaderReady", EXCLUSIVE, 1, None, id="a leader alone has no workers to wait for"),
    ],
)
def test_the_field_that_makes_workers_late_is_named(
    policy: str, annotations: dict[str, str], size: int, reason: str | None
) -> None:
    """A replica is late for one reason that a user can look up, or not at all."""
    assert why_late(policy, annotations, size) == reason


@pytest.mark.parametrize(
    ("late", "workers", "arrived", "live", "least"),
    [
        pytest.param(False, 0, False, None, 4, id="workers that come with the leader: the size at once"),
        pytest.param(False, 3, True, 4, 4, id="and for good"),
        pytest.param(True, 0, False, None, 1, id="late and no object yet: the leader alone"),
        pytest.param(True, 2, False, 1, 1, id="some workers are there: still the leader alone"),
        pytest.param(True, 3, True, 1, 4, id="all have arrived: raised"),
        pytest.param(True, 2, False, 4, 4, id="raised and one worker is replaced: stays raised"),
        pytest.param(True, 0, False, 4, 1, id="raised and no worker is left: lowered"),
        pytest.param(True, 2, False, 3, 1, id="a minimum that somebody else wrote does not count as raised"),
    ],
)
def test_the_minimum_never_asks_for_pods_that_cannot_come(
    *, late: bool, workers: int, arrived: bool, live: int | None, least: int
) -> None:
    """A replica of four starts whole, and a late one is raised once and not to and fro."""
    assert minimum(4, late=late, workers=workers, arrived=arrived, live=live) == least
