"""One admission request from its form to its answer, counted and logged; no HTTP framework takes part."""

from collections.abc import Callable

from webhook.reviews import Decision
from webhook.telemetry import Telemetry
from webhook.transport import Decide


class Admission:
    """The decision with its telemetry around it; the hot route and the Flask view share one."""

    def __init__(self, decide: Decide, telemetry: Telemetry, clock: Callable[[], float]) -> None:
        """Decide with `decide`; `clock` gives seconds that never go back."""
        self.telemetry = telemetry
        self.clock = clock
        self._decide = decide

    def answer(self, body: bytes, started: float) -> Decision:
        """Decide on a whole body that began to arrive at `started` on the clock."""
        decision = self._decide(body)
        self.telemetry.record(decision, self.clock() - started)
        return decision

    def refuse(self, refusal: Decision, started: float) -> Decision:
        """Count a request that is refused for its form, and give the refusal."""
        self.telemetry.record(refusal, self.clock() - started)
        return refusal
