"""`python -m tests.bench.policies`: what policies cost; exit 1 when a bar is missed.

A review of 1,000 manifests by the command, in a process of its own: seconds and resident memory. One request to
`/validate` with a PodGroup and all rules, through the application as the server calls it: CPU milliseconds.
"""

import datetime as dt
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from werkzeug.test import EnvironBuilder, run_wsgi_app

from policies.exceptions import NO_EXCEPTIONS
from policies.fixtures import read_fixture
from policies.registry import all_rules
from policies.service.application import create_app
from policies.service.desk import Desk
from policies.targets import Target

MANIFESTS: Final = 1000
MOST_SECONDS: Final = 10.0
MOST_MIB: Final = 200.0
MOST_MILLISECONDS: Final = 2.0

_ROUNDS: Final = 15
_REPEATS: Final = 40
_FIXTURES: Final = Path(__file__).parents[1] / "policies"


def main() -> int:
    """Measure, print, judge."""
    seconds, mebibytes = review_cost()
    milliseconds = validation_cost()
    bars = (
        (f"review of {MANIFESTS} manifests, s", MOST_SECONDS, seconds),
        (f"review of {MANIFESTS} manifests, MiB", MOST_MIB, mebibytes),
        ("/validate of a PodGroup, all rules, CPU ms", MOST_MILLISECONDS, milliseconds),
    )
    for what, limit, measured in bars:
        sys.stdout.write(f"{what:52} {measured:8.2f} {limit:8.2f}  {'ok' if measured <= limit else 'MISSED'}\n")
    return int(any(measured > limit for _, limit, measured in bars))


def review_cost() -> tuple[float, float]:
    """Run the command on manifests of all kinds; give its seconds and its largest resident MiB."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "manifests.yaml"
        file.write_text(yaml.safe_dump_all(_manifests()))
        begun = time.perf_counter()
        command = [sys.executable, "-m", "lockstep", "review", "--output", "json", str(file)]
        with Path(os.devnull).open("wb") as nowhere:
            child = os.posix_spawn(
                sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
            )
            _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise RuntimeError("the review must end with a verdict")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def validation_cost() -> float:
    """Give the CPU milliseconds of one request, the least of many rounds."""
    desk = Desk(all_rules(), target=Target(), exceptions=NO_EXCEPTIONS, today=lambda: dt.date(2026, 12, 1))
    app = create_app(desk, _Ready(), lambda: b"", lambda _: None)
    environ = EnvironBuilder(path="/validate", method="POST", json=_review()).get_environ()
    body = environ["wsgi.input"].read()

    def ask() -> bytes:
        environ["wsgi.input"] = _input(body)
        chunks, status, _ = run_wsgi_app(app, environ)
        if not status.startswith("200"):
            raise RuntimeError(f"/validate must answer, got {status}")
        return b"".join(chunks)

    if not json.loads(ask())["response"]["allowed"]:
        raise RuntimeError("the PodGroup must be a good one: all validations are looked at then")
    return min(_thread_seconds(ask) for _ in range(_ROUNDS)) * 1000


def _thread_seconds(work: Any) -> float:
    begun = time.thread_time()
    for _ in range(_REPEATS):
        work()
    return (time.thread_time() - begun) / _REPEATS


def _manifests() -> Iterator[dict[str, Any]]:
    """Give objects of the rules' own fixtures, each under a name of its own."""
    files = sorted(_FIXTURES.glob("*/allowed*.yaml"))
    subjects = [item for file in files for item in read_fixture(file.read_text(), file.name).subjects]
    for number in range(MANIFESTS):
        content = subjects[number % len(subjects)].content
        metadata = content.get("metadata") or {}
        yield {**content, "metadata": {**metadata, "namespace": f"team-{number // len(subjects)}"}}


def _review() -> dict[str, Any]:
    file = _FIXTURES / "podgroup_controlled_by_leader" / "allowed.yaml"
    groups = [item.content for item in read_fixture(file.read_text(), file.name).subjects]
    group = next(item for item in groups if item["kind"] == "PodGroup")
    name, _, version = group["apiVersion"].partition("/")
    request = {
        "uid": "1",
        "kind": {"group": name, "version": version, "kind": "PodGroup"},
        "resource": {"group": name, "version": version, "resource": "podgroups"},
        "operation": "CREATE",
        "namespace": group["metadata"]["namespace"],
        "userInfo": {"username": "system:serviceaccount:lockstep-system:lockstep"},
        "object": group,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class _Ready:
    def reason_not_ready(self) -> str:
        return ""


def _input(body: bytes) -> Any:
    import io  # noqa: PLC0415 - one line of a bench

    return io.BytesIO(body)


if __name__ == "__main__":
    sys.exit(main())
