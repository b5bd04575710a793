"""Exit codes, the same for every command."""

from typing import Final

FINE: Final = 0
FINDINGS: Final = 1
WRONG_USAGE: Final = 2
NOT_REACHABLE: Final = 3
BAD_CONFIGURATION: Final = 4
BUG: Final = 5
INTERRUPTED: Final = 130
"""As a shell reports the signal that Ctrl-C sends."""
