"""One admission request from its form to its answer, counted and logged; no HTTP framework takes part."""

from collections.abc import Callable
from dataclasses import dataclass

from webhook.telemetry import Handled, Telemetry
from webhook.transport import Decide, Refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    content_type: str
    body: bytes


class Admission:
    """The decision with its telemetry around it; the hot route and the Flask view share one."""

    def __init__(self, decide: Decide, telemetry: Telemetry, clock: Callable[[], float]) -> None:
        """Decide with `decide`; `clock` gives seconds that never go back."""
        self.telemetry = telemetry
        self.clock = clock
        self._decide = decide

    def answer(self, body: bytes, started: float) -> Answer:
        """Decide on a whole body that began to arrive at `started` on the clock."""
        decision = self._decide(body)
        seconds = self.clock() - started
        self.telemetry.record(Handled(decision.status, decision.outcome, decision.provider, decision.uid, seconds))
        return Answer(decision.status, decision.content_type, decision.body)

    def refuse(self, refusal: Refusal, started: float) -> Answer:
        """Answer a request that is refused for its form."""
        self.telemetry.record(Handled(refusal.status, refusal.outcome, "", "", self.clock() - started))
        return Answer(refusal.status, "text/plain; charset=utf-8", refusal.body)
