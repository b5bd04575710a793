"""A process that stands for election until it is ended; prints `gained` and `lost`. Ends cleanly with its input."""

import sys
from pathlib import Path

from reconciler.api import load_api
from reconciler.leases import Durations, Elector, LeaseName


def main(kubeconfig: str, lease: str, identity: str) -> None:
    """Stand for election until the input is closed."""
    elector = Elector(
        load_api(Path(kubeconfig)),
        LeaseName("default", lease),
        identity,
        durations=Durations(3.0, 2.0, 0.3),
        on_gained=lambda: print("gained", flush=True),  # noqa: T201 - read by the test
        on_lost=lambda: print("lost", flush=True),  # noqa: T201
    )
    elector.start()
    sys.stdin.read()
    elector.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
