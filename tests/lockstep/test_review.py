"""`lockstep review` and `lockstep audit`: files, folders, standard input, a cluster; formats and exit codes."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from lockstep.main import main
from tests.builders import NAMESPACE, JsonObject
from tests.reconciler.fake_api import Answer, FakeApi, kubeconfig, status
from tests.reconciler.sights import VOLCANO, Plan, World, group, leader_worker_set, pods_of, worker_set

FINE: Final = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: team-a}
spec:
  minMember: 2
"""
BAD: Final = FINE.replace("minMember: 2", "minMember: 0")
WARNED: Final = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec:
  leaderWorkerTemplate:
    size: 4
    subGroupPolicy: {subGroupSize: 2}
    workerTemplate: {spec: {schedulerName: volcano, containers: []}}
"""
EXCEPTED: Final = """\
apiVersion: lockstep.dev/v1alpha1
kind: Exceptions
exceptions:
- id: podgroup-minimum-positive
  object: {kind: PodGroup, namespace: team-a, name: g}
  owner: team-a@example.com
  reason: measured without a gang
  expiry: 9999-12-31
"""
LINE: Final = "spec.minMember: must be at least 1, got 0 (PodGroup team-a/g) [podgroup-minimum-positive]"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs a command in a folder of its own; gives exit code, output and error output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def write(name: str, text: str) -> str:
    """Write a file; gives its name."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return name


def test_fine_manifests(run: Run) -> None:
    """Exit 0."""
    assert run("review", write("g.yaml", FINE)) == (0, "1 object: nothing found\n", "")


def test_findings_have_file_and_line(run: Run) -> None:
    """Exit 1; the line is that of the field, also in the second document of a file."""
    code, out, err = run("review", write("g.yaml", FINE + "---\n" + BAD))
    assert (code, err) == (1, "")
    assert out == f"g.yaml:11: error: {LINE}\n2 objects: 1 error\n"


def test_warnings_are_findings(run: Run) -> None:
    """Exit 1, although a warning is allowed."""
    code, out, _ = run("review", write("lws.yaml", WARNED), "--output", "json")
    verdict = json.loads(out)
    assert (code, verdict["allowed"]) == (1, True)
    assert [finding["rule"] for finding in verdict["findings"]] == ["subgroups-kept-by-scheduler"]


def test_notes_are_none(run: Run) -> None:
    """Exit 0: what only a cluster can tell is no fault of the manifests."""
    pod = pods_of(Plan(provider=VOLCANO, workers=0))[0]
    code, out, _ = run("review", write("pod.json", json.dumps(_owned(pod))))
    assert code == 0
    assert "note: metadata.annotations[scheduling.k8s.io/group-name]: must name a PodGroup" in out


def _owned(obj: JsonObject) -> JsonObject:
    for owner in obj["metadata"].get("ownerReferences", []):
        owner.setdefault("apiVersion", {"StatefulSet": "apps/v1", "Pod": "v1"}[owner["kind"]])
    return obj


def test_folders(run: Run) -> None:
    """A folder stands for every manifest below it, and for nothing else."""
    write("all/a/g.yaml", BAD)
    write("all/b.yml", FINE)
    write("all/c.json", json.dumps({"apiVersion": "v1", "kind": "ConfigMap"}))
    write("all/README.md", "- not a manifest")
    code, out, _ = run("review", "all")
    assert (code, out) == (1, f"all/a/g.yaml:5: error: {LINE}\n3 objects: 1 error\n")


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(BAD))
    assert run("review", "-")[:2] == (1, f"stdin:5: error: {LINE}\n1 object: 1 error\n")


def test_formats(run: Run) -> None:
    """Every format holds the finding, with its line."""
    write("g.yaml", BAD)
    sarif = json.loads(run("review", "g.yaml", "--output", "sarif")[1])
    result = sarif["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 5}
    junit = ET.fromstring(run("review", "g.yaml", "--output", "junit")[1])  # noqa: S314 - our own
    assert [case.attrib["line"] for case in junit.iter("testcase")] == ["5"]
    verdict = json.loads(run("review", "g.yaml", "--output", "json")[1])
    assert verdict["findings"][0]["source"] == {"file": "g.yaml", "line": 5}


def test_exceptions(run: Run) -> None:
    """Exit 0 when all findings are excepted; a broken file of exceptions is a bad configuration."""
    write("g.yaml", BAD)
    code, out, _ = run("review", "g.yaml", "--exceptions", write("exceptions.yaml", EXCEPTED))
    assert (code, out) == (0, f"g.yaml:5: excepted: {LINE}\n1 object: 1 excepted\n")
    code, _, err = run("review", "g.yaml", "--exceptions", write("broken.yaml", EXCEPTED.replace("owner", "boss")))
    assert (code, err.partition(",")[0]) == (4, "broken.yaml:1: must be lockstep.dev/v1alpha1 Exceptions")
    code, _, err = run("review", "g.yaml", "--exceptions", "nowhere.yaml")
    assert (code, err) == (4, "nowhere.yaml:1: must be a readable file, got No such file or directory\n")


def test_targets(run: Run) -> None:
    """The same manifest is judged for the Kubernetes that is named."""
    native = FINE.replace("scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/v1alpha2").replace(
        "minMember: 2", "schedulingPolicy: {gang: {minCount: 2}}"
    )
    write("g.yaml", native)
    assert run("review", "g.yaml", "--target", "1.36")[0] == 0
    code, out, _ = run("review", "g.yaml", "--target", "v1.37.2", "--gates", "GenericWorkload")
    assert code == 1
    assert out.startswith("g.yaml:1: error: apiVersion: must be scheduling.k8s.io/v1beta1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "arguments: must hold objects, or --cluster be given, got none\n"),
        (("nowhere.yaml",), "nowhere.yaml: must be a readable file, got No such file or directory\n"),
        (("empty.yaml",), "empty.yaml: must hold objects, or --cluster be given, got none\n"),
        (("list.yaml",), "list.yaml:1: must hold objects, got a list\n"),
        (("latin.yaml",), "latin.yaml: must be UTF-8, got byte 0xe9\n"),
        (("g.yaml", "--target", "1.20"), 'target: must be one of 1.35, 1.36, 1.37, 1.38-alpha, got "1.20"\n'),
        (
            ("g.yaml", "--cluster", "--target", "1.37"),
            "--target, --gates: must be left out with --cluster, which has its own, got both\n",
        ),
    ],
    ids=["nothing", "missing", "empty", "no object", "not UTF-8", "target", "cluster and target"],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], message: str) -> None:
    """Exit 2, with one line that says why."""
    write("g.yaml", FINE)
    write("empty.yaml", "---\n# nothing\n")
    write("list.yaml", "- a\n")
    Path("latin.yaml").write_bytes(b"a: \xe9\n")
    assert run("review", *arguments) == (2, "", message)


def test_unknown_words(run: Run) -> None:
    """Exit 2 for an option that there is not."""
    assert run("review", "--no-such-option")[0] == 2


ROOTS: Final = {
    "Pod": "/api/v1/pods",
    "Namespace": "/api/v1/namespaces",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
    "PodGroup": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
REPORTS: Final = "/apis/wgpolicyk8s.io/v1alpha2/policyreports"


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    """A cluster with one whole replica on Volcano."""
    fake = FakeApi()
    fake.objects |= {root: {} for root in ROOTS.values()}
    plan = Plan(provider=VOLCANO)
    lws = leader_worker_set(plan)
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["schedulerName"] = "volcano"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"team": "a"}}}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    put(fake, lws, _leaders(plan), worker_set(plan), *pods_of(plan), group(plan), namespace, queue)
    yield fake.start()
    fake.stop()


def _leaders(plan: Plan) -> JsonObject:
    owner = {"kind": "LeaderWorkerSet", "name": plan.lws, "uid": f"leaderworkerset/{plan.lws}", "controller": True}
    metadata = {"name": plan.lws, "namespace": NAMESPACE, "uid": f"statefulset/{plan.lws}", "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 1}}


def put(fake: FakeApi, *objects: JsonObject) -> None:
    """Store objects as a server would: it gives no kind to the members of a list."""
    for obj in World(*objects).objects.values():
        meta = obj["metadata"]
        for owner in meta.get("ownerReferences", []):
            owner["apiVersion"] = {"StatefulSet": "apps/v1", "Pod": "v1"}.get(
                owner["kind"], "leaderworkerset.x-k8s.io/v1"
            )
        stored = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        fake.objects[ROOTS[obj["kind"]]][meta.get("namespace", ""), meta["name"]] = stored


def stored(fake: FakeApi, kind: str, name: str) -> dict[str, Any]:
    """Give a stored object, to be changed."""
    found: dict[str, Any] = fake.objects[ROOTS[kind]][NAMESPACE, name]
    return found


def cluster(tmp_path: Path, fake: FakeApi) -> tuple[str, str]:
    """Give the options that name the cluster."""
    return "--kubeconfig", str(kubeconfig(tmp_path, fake))


def test_audit_of_a_sound_cluster(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """Exit 0: what Lockstep and LWS make breaks no rule."""
    assert run("audit", *cluster(tmp_path, fake)) == (0, "4 objects: nothing found\n", "")


def test_audit_finds_what_is_wrong(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """Exit 1; objects of the cluster are named, in place of files."""
    name = Plan(provider=VOLCANO).group
    stored(fake, "PodGroup", name)["spec"]["queue"] = "nowhere"
    code, out, _ = run("audit", *cluster(tmp_path, fake))
    assert code == 1
    assert out == (
        'error: spec.queue: must name a Queue.scheduling.volcano.sh that exists, got "nowhere" '
        f"(PodGroup team-a/{name}) [queue-exists]\n4 objects: 1 error\n"
    )


def test_review_of_a_cluster_is_the_audit(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """`review --cluster` without files gives what `audit` gives."""
    stored(fake, "Pod", "vllm-0-1")["metadata"]["labels"].pop("lockstep.dev/group")
    stored(fake, "Pod", "vllm-0-1")["metadata"]["annotations"].pop("scheduling.k8s.io/group-name")
    options = cluster(tmp_path, fake)
    assert run("review", "--cluster", *options) == run("audit", *options)


def test_files_are_judged_against_the_cluster(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """With files, only they are judged, and what the cluster has counts as there."""
    write("g.yaml", FINE.replace("minMember: 2", "{minMember: 2, queue: default}"))
    assert run("review", "--cluster", "g.yaml", *cluster(tmp_path, fake)) == (0, "1 object: nothing found\n", "")
    write("g.yaml", FINE.replace("minMember: 2", "{minMember: 2, queue: gold}"))
    code, out, _ = run("review", "--cluster", "g.yaml", *cluster(tmp_path, fake))
    assert (code, out.splitlines()[1]) == (1, "1 object: 1 error")


def test_what_we_may_not_list_is_not_missed(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """Without the right to list queues nothing is said about them; without that to list pods nothing can be said."""
    stored(fake, "PodGroup", Plan(provider=VOLCANO).group)["spec"]["queue"] = "nowhere"
    forbidden = Answer(403, json.dumps(status(403, "Forbidden", "no")).encode())
    fake.fault(lambda seen: seen.path.endswith("/queues"), forbidden, times=1)
    assert run("audit", *cluster(tmp_path, fake))[0] == 0
    fake.fault(lambda seen: seen.path.endswith("/pods"), forbidden, times=1)
    code, _, err = run("audit", *cluster(tmp_path, fake))
    assert (code, err) == (4, "api server: must let us get and list, got 403 Forbidden: no\n")


def test_reports_are_written(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """Reports are kept where their kind is served, and asking for them elsewhere is a bad configuration."""
    stored(fake, "PodGroup", Plan(provider=VOLCANO).group)["spec"]["queue"] = "nowhere"
    options = cluster(tmp_path, fake)
    code, _, err = run("audit", "--write-reports", *options)
    assert (code, err) == (
        4,
        "policyreports.wgpolicyk8s.io/v1alpha2: must be served to write reports, got no such kind\n",
    )
    fake.objects[REPORTS] = {}
    assert run("audit", "--write-reports", *options)[2] == "1 reports written\n"
    (report,) = fake.objects[REPORTS].values()
    assert report["results"][0]["policy"] == "queue-exists"
    stored(fake, "PodGroup", Plan(provider=VOLCANO).group)["spec"]["queue"] = "default"
    assert run("audit", "--write-reports", *options)[0] == 0
    assert fake.objects[REPORTS] == {}


def test_clusters_out_of_reach(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """Exit 3 when nobody answers, 4 when there is no configuration."""
    options = cluster(tmp_path, fake)
    fake.stop()
    code, _, err = run("audit", *options)
    assert code == 3
    assert err.startswith("api server: must be reachable, got ")
    code, _, err = run("review", "--cluster", "--kubeconfig", "nowhere")
    assert code == 4
    assert err.startswith('kubeconfig "nowhere": must be usable, got ')


def test_long_lists_come_in_pages(run: Run, fake: FakeApi, tmp_path: Path) -> None:
    """A list that outlives the server's history is read once more, in one piece."""
    fake.fault(lambda seen: seen.path.endswith("/pods"), Answer(410, json.dumps(status(410, "Expired")).encode()))
    assert run("audit", *cluster(tmp_path, fake))[0] == 0
