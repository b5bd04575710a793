"""Run a command that dies with whoever started it.

    python lifeline.py PARENT COMMAND...

A test process that is killed can't clean up; the kernel does it: the command gets SIGKILL when its parent ends. This is
a script of its own, not a `preexec_fn`, because that is not safe in a process that has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Tie this process to `parent` and become `command`."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have ended before prctl took hold.
    if os.getppid() != parent:
        sys.exit(f"parent {parent} is gone")
    os.execv(command[0], command)  # noqa: S606 - the command of our own caller


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
