"""The webhook as something to be served: one decision, its health and its metrics."""

import time

from serving.bridge import WsgiBridge
from serving.health import Health
from serving.logs import LineWriter
from webhook.admission import Admission
from webhook.asgi import Front
from webhook.service import create_app, create_state_app
from webhook.telemetry import Telemetry
from webhook.transport import Decide

MOST_SECONDS = 10.0
"""A request's own deadline: the API server's default for a webhook's timeoutSeconds."""


class Webhook:
    """A `serving.server.Service` around one decision."""

    name = "lockstep serve"
    most_seconds = MOST_SECONDS

    def __init__(self, decide: Decide) -> None:
        """Serve `decide`."""
        self.health = Health()
        self.telemetry = Telemetry(LineWriter())
        self._decide = decide

    def make_application(self) -> Front:
        """Make the hot route and Flask behind it."""
        admission = Admission(self._decide, self.telemetry, time.perf_counter)
        return Front(admission, WsgiBridge(create_app(admission, self.health)), MOST_SECONDS)

    def make_state_application(self) -> WsgiBridge:
        """Make health and metrics for plain HTTP."""
        return WsgiBridge(create_state_app(self.telemetry, self.health))
