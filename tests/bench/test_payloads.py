"""The bodies that the benchmark sends are reviews that the webhook stamps, each another one."""

import json

from schedulers.configuration import load_configuration
from tests.bench.payloads import COUNT, make_bodies
from webhook.mutation import Decider


def test_the_same_bytes_each_time() -> None:
    """A figure of today is a figure for the same bodies as yesterday's."""
    assert make_bodies() == make_bodies()


def test_every_body_is_another_one() -> None:
    """Neither the uid nor the pod repeats, so nothing can be cached whole."""
    requests = [json.loads(body)["request"] for body in make_bodies()]
    assert len({request["uid"] for request in requests}) == COUNT
    assert len({json.dumps(request["object"]["metadata"]) for request in requests}) == COUNT


def test_their_size_is_a_real_pods() -> None:
    """About 7 kB, 2 kB of them managedFields, as measured at an API server."""
    for body in make_bodies():
        assert 6_500 < len(body) < 8_000
        managed = json.loads(body)["request"]["object"]["metadata"]["managedFields"]
        assert 1_500 < len(json.dumps(managed, separators=(",", ":"))) < 2_800


def test_every_body_is_stamped() -> None:
    """The measured work is the whole work."""
    decide = Decider(load_configuration(None), lambda: "0" * 40)
    assert {decide(body).outcome for body in make_bodies()} == {"stamped"}
