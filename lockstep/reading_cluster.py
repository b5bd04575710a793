"""Connects to a cluster and reads what rules look at; what goes wrong becomes an exit code and one line."""

from collections.abc import Sequence
from pathlib import Path

from lockstep.collecting import Collected, collect
from lockstep.failures import FAILURES, end_by
from reconciler.api import HttpApi, load_api


def read_cluster(kubeconfig: Path | None, namespaces: Sequence[str]) -> Collected | int:
    """Read a cluster once; give the exit code where that fails."""
    api = connect(kubeconfig)
    return api if isinstance(api, int) else collected_from(api, namespaces)


def connect(kubeconfig: Path | None) -> HttpApi | int:
    """Make the connection."""
    try:
        return load_api(kubeconfig)
    except FAILURES as error:
        return end_by(error)


def collected_from(api: HttpApi, namespaces: Sequence[str]) -> Collected | int:
    """Read through a connection."""
    try:
        return collect(api, namespaces)
    except FAILURES as error:
        return end_by(error)
