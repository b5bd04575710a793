"""What keeps a command from its cluster, and the exit code for it."""

from typing import Final

from lockstep.exit_codes import BAD_CONFIGURATION, NOT_REACHABLE, fail
from reconciler.api import Misconfigured
from reconciler.contract import CallFailed, Forbidden, Unauthorized
from schedulers.configuration import Misconfigured as BadConfiguration

FAILURES: Final = (BadConfiguration, Misconfigured, CallFailed)


def end_by(error: Exception, needs: str = "get and list") -> int:
    """Say what one of `FAILURES` means and give the exit code.

    Args:
        error: what happened.
        needs: what the API server has to let us do.
    """
    if isinstance(error, Forbidden | Unauthorized):
        return fail(f"api server: must let us {needs}, got {error}", BAD_CONFIGURATION)
    if isinstance(error, CallFailed):
        return fail(f"api server: must be reachable, got {error}", NOT_REACHABLE)
    return fail(str(error), BAD_CONFIGURATION)
