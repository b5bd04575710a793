"""Exit codes, the same for every command, and the way in which a command that fails ends."""

import sys
from typing import Final

FINE: Final = 0
FINDINGS: Final = 1
WRONG_USAGE: Final = 2
NOT_REACHABLE: Final = 3
BAD_CONFIGURATION: Final = 4
BUG: Final = 5
INTERRUPTED: Final = 130
"""As a shell reports the signal that Ctrl-C sends."""


def fail(message: str, code: int) -> int:
    """Say what is wrong and give the exit code."""
    print(message, file=sys.stderr)  # noqa: T201  # the command's own words
    return code
