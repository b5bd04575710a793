"""Admission changes nothing outside of the review that it answers."""

import re
from pathlib import Path

import pytest

from manifests.shipped import install_objects
from tests.builders import leader_pod, review
from tests.webhook.serving import Served

ENTRIES = [entry for content in install_objects() for entry in content.get("webhooks", ())]
ESTABLISHED = "01"
"""A connection's state in the kernel's tables (include/net/tcp_states.h)."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_c58_every_entry_declares_that_there_is_none(entry: dict[str, object]) -> None:
    """C58: so that the API server calls it for dry runs too."""
    assert entry["sideEffects"] == "None"


def peers(process: int) -> set[int]:
    """Local ports of a process's TCP connections."""
    inodes = {match[1] for fd in Path(f"/proc/{process}/fd").iterdir() if (match := _socket(fd))}
    tables = [Path(f"/proc/{process}/net/{table}").read_text() for table in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[9] in inodes and line[3] == ESTABLISHED}


def _socket(descriptor: Path) -> re.Match[str] | None:
    try:
        return re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
    except FileNotFoundError:
        return None  # the descriptor that lists the folder


def test_c58_the_webhook_talks_to_nobody(server: Served) -> None:
    """C58: while and after it answers, its connections are those of its callers alone, and has no other file open."""
    client = server.client()
    before = opened(server.worker())
    for _ in range(3):
        client.request("POST", "/mutate?timeout=10s", review(leader_pod()), {"Content-Type": "application/json"})
        assert client.getresponse().read()
        assert peers(server.worker()) == {server.port}
    assert opened(server.worker()) == before
    client.close()


def opened(process: int) -> list[str]:
    """The files that a process has open."""
    links = [fd.readlink() for fd in Path(f"/proc/{process}/fd").iterdir() if fd.is_symlink()]
    return sorted(str(link) for link in links if str(link).startswith("/") and "/proc/" not in str(link))
