"""Connects to a cluster and reads what rules look at; what goes wrong becomes an exit code and one line."""

import sys
from collections.abc import Sequence
from pathlib import Path

from lockstep.collecting import Collected, collect
from lockstep.exit_codes import BAD_CONFIGURATION, NOT_REACHABLE
from reconciler.api import HttpApi, Misconfigured, load_api
from reconciler.contract import CallFailed, Forbidden, Unauthorized


def read_cluster(kubeconfig: Path | None, namespaces: Sequence[str]) -> Collected | int:
    """Read a cluster once; give the exit code where that fails."""
    api = connect(kubeconfig)
    return api if isinstance(api, int) else collected_from(api, namespaces)


def connect(kubeconfig: Path | None) -> HttpApi | int:
    """Make the connection."""
    try:
        return load_api(kubeconfig)
    except Misconfigured as error:
        return _fail(str(error), BAD_CONFIGURATION)


def collected_from(api: HttpApi, namespaces: Sequence[str]) -> Collected | int:
    """Read through a connection."""
    try:
        return collect(api, namespaces)
    except (Forbidden, Unauthorized) as error:
        return _fail(f"api server: must let us get and list, got {error}", BAD_CONFIGURATION)
    except CallFailed as error:
        return _fail(f"api server: must be reachable, got {error}", NOT_REACHABLE)


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)  # noqa: T201
    return code
