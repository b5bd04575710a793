"""`python -m tests.cluster.build`: build what is missing, print the folder of the binaries as the last line."""

from __future__ import annotations

import sys

from tests.cluster import binaries, toolchain


def main() -> int:
    """Return 0, or 3 after a message on stderr when a component can't be built."""
    try:
        folder = binaries.ensure()
    except toolchain.BuildError as error:
        toolchain.say(str(error))
        return 3
    print(folder)  # noqa: T201 - the command's answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
