"""Targets as people write them."""

import pytest

from policies.targets import ALPHA_138, BadTarget, Target, parse_target


@pytest.mark.parametrize(
    ("version", "gates", "expected"),
    [
        pytest.param("1.37", "", Target("1.37", frozenset()), id="a version alone"),
        pytest.param("v1.37.2", "", Target("1.37", frozenset()), id="as the server prints it"),
        pytest.param(
            "1.36",
            "GenericWorkload, -GangScheduling,",
            Target("1.36", frozenset({"GenericWorkload", "-GangScheduling"})),
            id="gates",
        ),
        pytest.param("1.38-alpha", "", Target(ALPHA_138, frozenset()), id="the pre-release"),
    ],
)
def test_a_target_is_read(version: str, gates: str, expected: Target) -> None:
    """Version and gates, with a little freedom in how they are written."""
    assert parse_target(version, gates) == expected


@pytest.mark.parametrize(
    ("version", "gates", "message"),
    [
        pytest.param("1.34", "", 'target: must be one of 1.35, 1.36, 1.37, 1.38-alpha, got "1.34"', id="too old"),
        pytest.param("", "", 'target: must be one of 1.35, 1.36, 1.37, 1.38-alpha, got ""', id="nothing"),
        pytest.param(
            "1.35",
            "TopologyAwareWorkloadScheduling",
            "gates: must be gates of Kubernetes 1.35 (GangScheduling, GenericWorkload), "
            'got "TopologyAwareWorkloadScheduling"',
            id="a gate that is not there yet",
        ),
    ],
)
def test_an_unknown_word_is_refused(version: str, gates: str, message: str) -> None:
    """A misspelt gate would silently be off."""
    with pytest.raises(BadTarget) as refusal:
        parse_target(version, gates)
    assert str(refusal.value) == message


def test_a_gate_is_on_where_it_is_named_and_not_said_to_be_off() -> None:
    """Off wins."""
    target = parse_target("1.37", "GenericWorkload,CompositePodGroup,-CompositePodGroup")
    assert target.enabled("GenericWorkload")
    assert not target.enabled("CompositePodGroup")
    assert not target.enabled("WorkloadWithJob")


def test_the_default_is_the_newest_version_with_groups() -> None:
    """Nobody reviews groups for a server that has none."""
    assert Target() == parse_target("1.37")
    assert Target().enabled("GenericWorkload")
