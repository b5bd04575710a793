"""The decision alone against `json.loads` of the same bodies, in this process and in turn."""

import json
import time
from collections.abc import Callable

from schedulers.configuration import load_configuration
from tests.bench.payloads import make_bodies
from webhook.mutation import Decider

_ROUNDS = 15
_REPEATS = 10


def decision_share() -> tuple[float, float]:
    """Measure one decision and one `json.loads` in CPU µs: the least of many rounds in turn.

    Raises:
        RuntimeError: a body was not stamped; then the measured work was not the work.
    """
    bodies = make_bodies()
    decide = Decider(load_configuration(None), lambda: "0" * 40)
    if {decide(body).outcome for body in bodies} != {"stamped"}:
        raise RuntimeError("the decision must stamp every body")
    rounds = [(_cost(decide, bodies), _cost(json.loads, bodies)) for _ in range(_ROUNDS)]
    return min(ours for ours, _ in rounds), min(theirs for _, theirs in rounds)


def _cost(work: Callable[[bytes], object], bodies: list[bytes]) -> float:
    begun = time.thread_time()
    for _ in range(_REPEATS):
        for body in bodies:
            work(body)
    return (time.thread_time() - begun) / (_REPEATS * len(bodies)) * 1e6
