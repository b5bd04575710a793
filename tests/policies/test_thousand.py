"""A review of a thousand manifests in one process: what it costs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.builders import JsonObject
from tests.reconciler.sights import PROVIDERS, Plan, group, leader_worker_set, pods_of, worker_set

OBJECTS: Final = 5
"""Of one replica: LWS, StatefulSet, two pods and their group."""

MEASURED: Final = """\
import pathlib, re, sys, time
from lockstep.main import main
code = main(sys.argv[1:])
# Of this program alone; getrusage would count what the process that started it had in memory.
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) // 1024
print(f"{code} {time.process_time():.3f} {peak}", file=sys.stderr)
"""


def test_a_thousand_manifests(tmp_path: Path) -> None:
    """All rules over 1,000 manifests take under 10 s of CPU and 200 MiB, and find nothing in what is sound."""
    replicas = 1000 // OBJECTS
    for number in range(replicas):
        for place, obj in enumerate(_replica(f"set-{number}", number)):
            text = json.dumps(obj, indent=1)
            (tmp_path / f"{number}-{place}.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", MEASURED, "review", str(tmp_path), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, seconds, mebibytes = done.stderr.split()
    assert (code, json.loads(done.stdout)["allowed"]) == ("0", True)
    assert float(seconds) < 10
    assert int(mebibytes) < 200


def _replica(name: str, number: int) -> list[JsonObject]:
    provider = PROVIDERS[number % len(PROVIDERS)]
    plan = Plan(provider=provider, lws=name)
    lws = leader_worker_set(plan)
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["schedulerName"] = provider.scheduler_names[0]
    objects = [lws, worker_set(plan), *pods_of(plan), group(plan)]
    for obj in objects:
        obj["metadata"].pop("resourceVersion", None)
        for owner in obj["metadata"].get("ownerReferences", []):
            owner["apiVersion"] = {"StatefulSet": "apps/v1", "Pod": "v1"}[owner["kind"]]
    return objects
