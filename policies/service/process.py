"""The policy service as something to be served: `serving.server.Server` runs it."""

import os
import signal
from collections.abc import Callable
from typing import Final

from policies.cel.foreign import calls
from policies.service.application import create_app, create_state_app
from policies.service.desk import Desk
from policies.service.front import REVIEW_SECONDS, Front
from policies.service.telemetry import Telemetry
from serving.bridge import WsgiBridge
from serving.health import Health
from serving.logs import LineHandler, LineWriter

MOST_FOREIGN_CALLS: Final = 250_000
"""Each call of a function of ours from the CEL engine loses up to 200 bytes for good: 50 MB, then a fresh process."""


class PolicyService:
    """A `serving.server.Service` around a desk.

    Attributes:
        health: whether it should get requests.
        telemetry: metrics and log.
    """

    name = "lockstep policy"
    most_seconds = REVIEW_SECONDS

    def __init__(self, make_desk: Callable[["PolicyService"], Desk]) -> None:
        """Serve what `make_desk` makes; it is called once in each worker, and may start threads there."""
        self.health = Health()
        self.telemetry = Telemetry(LineWriter())
        self._make_desk = make_desk

    def make_application(self) -> Front:
        """Load the rules and make the application for TLS."""
        self.telemetry.watch("lockstep_policy_foreign_calls", "Calls that cost memory for good.", calls)
        desk = self._make_desk(self)
        app = create_app(desk, self.health, self.telemetry.render, self.telemetry.count)
        app.logger.handlers[:] = [LineHandler(self.telemetry.writer)]
        app.logger.propagate = False
        return Front(WsgiBridge(app), self.telemetry, self._retire)

    def make_state_application(self) -> WsgiBridge:
        """Make health and metrics for plain HTTP."""
        return WsgiBridge(create_state_app(self.health, self.telemetry.render))

    def _retire(self) -> None:
        """End this worker in order where the engine has lost too much memory; the arbiter starts another."""
        if calls() > MOST_FOREIGN_CALLS and not self.health.draining:
            os.kill(os.getpid(), signal.SIGTERM)
