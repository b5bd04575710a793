"""Choices of an administrator about one scheduler."""

import pytest

from schedulers.checking import check_document
from schedulers.configuration import Configuration, Misconfigured, configuration_of, default_configuration
from schedulers.native_objects import V1ALPHA1, V1ALPHA2, V1BETA1
from schedulers.options import HasOptions
from schedulers.registry import all_providers
from schedulers.sharing import SharesObjects

HEAD = "apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\n"
GROUP = "vllm-7-b2efc632cb"


def check(text: str) -> Configuration:
    """Check a document named `f.yaml`."""
    return configuration_of(check_document("f.yaml", HEAD + text))


def test_without_a_choice_the_provider_is_the_usual_one() -> None:
    """And an empty choice is none."""
    for configuration in (default_configuration(), check("native: {}\n")):
        assert configuration.provider("") is all_providers()["native"]


def test_a_choice_gives_one_provider_however_often_it_is_asked_for() -> None:
    """Whether two pods are of one scheduler is asked by identity."""
    configuration = check("native:\n  podReference: both\n")
    asked = [configuration.provider(name) for name in ("", "default-scheduler")]
    (provider,) = (one for one in configuration.providers() if one.name == "native")
    assert [one is provider for one in asked] == [True, True]
    assert id(provider) != id(all_providers()["native"])
    stamp = provider.stamp(GROUP, leader=True)
    assert stamp.scheduling_group == GROUP
    assert stamp.workload_ref is not None
    assert (stamp.workload_ref.name, stamp.workload_ref.replica_key) == (GROUP, "7")
    assert not stamp.fits_later


def test_choices_decide_what_is_followed() -> None:
    """Nothing beside PodGroups unless it is wanted, and only in the versions that have it."""
    expected = {
        "native: {groups: standalone}": {V1BETA1: 0, V1ALPHA2: 0, V1ALPHA1: 0},
        "native: {groups: workload}": {V1BETA1: 1, V1ALPHA2: 1, V1ALPHA1: 0},
        "native: {roles: together}": {V1BETA1: 3, V1ALPHA2: 0, V1ALPHA1: 0},
    }
    for text, numbers in expected.items():
        provider: object = check(text + "\n").provider("")
        assert isinstance(provider, SharesObjects)
        assert {kind: len(provider.shared_kinds(kind)) for kind in numbers} == numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "native:\n  groups: many\n",
            'f.yaml:4: native.groups: must be one of "standalone", "workload", got "many"',
            id="an unknown choice",
        ),
        pytest.param(
            "native:\n  group: workload\n",
            'f.yaml:4: native: must hold no other keys than groups, podReference, roles, got "group"',
            id="an unknown option",
        ),
        pytest.param("native: workload\n", 'f.yaml:3: native: must be a mapping, got "workload"', id="no mapping"),
        pytest.param(
            "volcano: {}\n",
            "f.yaml:3: document: must hold no other keys than apiVersion, defaults, kind, native, repair, schedulers, "
            'got "volcano"',
            id="a scheduler without options",
        ),
    ],
)
def test_a_bad_choice_is_refused_with_its_line(text: str, message: str) -> None:
    """As any other part of the file."""
    with pytest.raises(Misconfigured) as caught:
        check(text)
    assert str(caught.value) == message


def test_every_option_has_a_default_and_another_choice() -> None:
    """The first choice is what counts without a file."""
    for provider in all_providers().values():
        if isinstance(provider, HasOptions):
            for option in provider.options.values():
                assert len(set(option.choices)) == len(option.choices) >= 2
            first = {name: option.choices[0] for name, option in provider.options.items()}
            chosen = provider.with_options(first)
            assert chosen.stamp(GROUP, leader=True) == all_providers()[chosen.name].stamp(GROUP, leader=True)
