"""`lockstep policy` as a real process on loopback."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tests.webhook.serving import Served, running

COMMAND: Final = ("-m", "lockstep", "policy")


def running_service(folder: Path, *options: str) -> AbstractContextManager[Served]:
    """Run the service with the certificate in `folder`."""
    return running(folder, "--drain-seconds", "0", *options, command=COMMAND)
