"""`lockstep explain` says what would become of an LWS, with the reason for every choice."""

import json
from pathlib import Path
from typing import Any

import pytest

from gangs.names import DNS_LABEL
from lockstep.main import main
from schedulers.registry import all_providers, usual_schedulers

Json = dict[str, Any]

CONFIGURED = ", ".join(sorted(usual_schedulers(all_providers())))


def lws(size: int = 2, replicas: int = 1, **changes: Any) -> Json:
    """An LWS manifest of Volcano's; keywords change the pods' spec (`pod`), `spec`, `annotations`, `labels`."""
    spec = changes.pop("spec", {})
    template = {
        "metadata": {"labels": changes.pop("labels", {})},
        "spec": {"schedulerName": "volcano", "containers": [container()], **changes.pop("pod", {})},
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm", "namespace": "team", "annotations": changes.pop("annotations", {})},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}, **spec},
    }


def container(**resources: Any) -> Json:
    """A container that asks one CPU and, by its limit alone, eight GPUs."""
    given = resources or {"requests": {"cpu": 1}, "limits": {"nvidia.com/gpu": 8}}
    return {"name": "server", "image": "registry.example/server:1", "resources": given}


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that explains a manifest as JSON and gives the one explanation."""

    def run(manifest: Json, *options: str) -> Json:
        file = tmp_path / "lws.json"
        file.write_text(json.dumps(manifest))
        assert main(["explain", str(file), "--output", "json", *options]) == 0
        explained: list[Json] = json.loads(capsys.readouterr().out)["leaderWorkerSets"]
        assert len(explained) == 1
        return explained[0]

    return run


def test_every_pod_and_every_group_is_there(explain: Any) -> None:
    """Three replicas of four pods have twelve stamps and three groups, each under its own name."""
    explained = explain(lws(size=4, replicas=3))
    assert [pod["name"] for pod in explained["pods"]][:5] == ["vllm-0", "vllm-0-1", "vllm-0-2", "vllm-0-3", "vllm-1"]
    assert len(explained["pods"]) == 12
    names = [group["object"]["metadata"]["name"] for group in explained["groups"]]
    assert names == ["vllm-0-xxxxxxxxxx", "vllm-1-xxxxxxxxxx", "vllm-2-xxxxxxxxxx"]
    assert all(DNS_LABEL.fullmatch(name) for name in names)


def test_leader_and_worker_carry_the_group_that_is_made(explain: Any) -> None:
    """The stamps name the very group object that is shown."""
    explained = explain(lws())
    name = explained["groups"][0]["object"]["metadata"]["name"]
    for pod in explained["pods"]:
        stamped = {operation["path"]: operation["value"] for operation in pod["patch"]}
        assert stamped["/metadata/annotations/scheduling.k8s.io~1group-name"] == name
        assert stamped["/metadata/labels/lockstep.dev~1group"] == name


def test_limits_without_requests_count(explain: Any) -> None:
    """What only a limit asks is asked of the scheduler too, for the whole replica."""
    group = explain(lws(size=3))["groups"][0]["object"]
    assert group["spec"]["minResources"] == {"cpu": "3", "nvidia.com/gpu": "24"}
    assert group["spec"]["minMember"] == 3


@pytest.mark.parametrize(
    ("change", "because"),
    [
        pytest.param({"spec": {"startupPolicy": "LeaderReady"}}, "spec.startupPolicy", id="leader ready"),
        pytest.param(
            {"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}},
            "metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]",
            id="exclusive topology",
        ),
    ],
)
def test_late_workers_are_told_with_their_reason(explain: Any, change: Json, because: str) -> None:
    """The minimum is 1 at first, the floor that of the whole replica, and the minimum is raised later."""
    explained = explain(lws(size=4, **change))
    assert explained["lateWorkers"]["because"] == because
    group = explained["groups"][0]
    assert (group["object"]["spec"]["minMember"], group["raised"]["spec"]) == (1, {"minMember": 4})
    assert group["object"]["spec"]["minResources"]["nvidia.com/gpu"] == "32"


def test_workers_that_come_with_their_leader_are_not_late(explain: Any) -> None:
    """The default is told as such."""
    explained = explain(lws())
    assert explained["lateWorkers"] is None
    assert explained["groups"][0]["raised"] is None
    assert explained["groups"][0]["because"] == "the minimum is the size: all 2 pods are placed or none"


@pytest.mark.parametrize(
    ("change", "provider", "because"),
    [
        pytest.param({}, "volcano", 'spec.schedulerName is "volcano"', id="by scheduler name"),
        pytest.param(
            {"pod": {"schedulerName": ""}},
            "native",
            "spec.schedulerName is not set, which means default-scheduler",
            id="no scheduler name",
        ),
        pytest.param(
            {"pod": {"schedulerName": "mine"}},
            None,
            f'spec.schedulerName is "mine": pods are left alone, because only {CONFIGURED} are configured',
            id="unknown scheduler",
        ),
        pytest.param(
            {"labels": {"lockstep.dev/gang": "off"}},
            "volcano",
            'the pod template\'s label lockstep.dev/gang is "off": its pods are left alone',
            id="opted out",
        ),
    ],
)
def test_the_provider_is_told_with_its_reason(explain: Any, change: Json, provider: str | None, because: str) -> None:
    """Every choice has its reason."""
    explained = explain(lws(**change))
    assert explained["provider"] == {"name": provider, "because": because}


@pytest.mark.parametrize(
    "change",
    [{"pod": {"schedulerName": "mine"}}, {"labels": {"lockstep.dev/gang": "off"}}],
    ids=["unknown", "opted out"],
)
def test_pods_left_alone_have_no_stamp_and_no_group(explain: Any, change: Json) -> None:
    """Left alone means untouched."""
    explained = explain(lws(**change))
    assert [pod["patch"] for pod in explained["pods"]] == [[], []]
    assert explained["groups"] == []


def test_c26_two_schedulers_in_one_replica_are_told(explain: Any) -> None:
    """A leader template without the workers' scheduler name is told, with the way to mend it."""
    manifest = lws()
    manifest["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = {"spec": {"containers": [container()]}}
    assert explain(manifest)["provider"]["because"] == (
        'spec.schedulerName is not set, which means default-scheduler for the leader, but "volcano" for its workers: '
        "both templates must name one scheduler"
    )


def test_a_word_the_scheduler_has_nothing_for_is_told(explain: Any) -> None:
    """Nothing is dropped in silence."""
    explained = explain(lws(annotations={"lockstep.dev/schedule-timeout": "60", "lockstep.dev/queue": "Bad Queue"}))
    assert explained["remarks"] == [
        'leaderworkerset.metadata.annotations[lockstep.dev/queue]: must be a DNS subdomain, got "Bad Queue"',
        (
            "lockstep.dev/schedule-timeout: Volcano has nothing of the kind; the nearest is sla-waiting-time of its "
            "sla plugin, after which a waiting group goes first"
        ),
    ]


def test_a_size_of_one_has_one_pod_and_a_group_of_one(explain: Any) -> None:
    """A replica without workers is shown as it is."""
    explained = explain(lws(size=1))
    assert [pod["role"] for pod in explained["pods"]] == ["leader"]
    assert explained["groups"][0]["object"]["spec"]["minMember"] == 1


def test_no_replicas_have_no_groups(explain: Any) -> None:
    """Scaled to zero there is nothing to make."""
    explained = explain(lws(replicas=0))
    assert (explained["pods"], explained["groups"]) == ([], [])


def test_the_text_shows_stamps_group_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text is for people: one replica in full, the others in a line."""
    file = tmp_path / "lws.json"
    file.write_text(json.dumps(lws(size=4, replicas=3, spec={"startupPolicy": "LeaderReady"})))
    assert main(["explain", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"LeaderWorkerSet team/vllm ({file}:1): 3 replicas of 4 pods",
        '  provider: volcano, because spec.schedulerName is "volcano"',
        "  workers:  come late, because of spec.startupPolicy",
        "            the leader starts only when queue and cluster sums cover the whole replica; the room is not held",
        (
            "  name:     vllm-<index>-xxxxxxxxxx: the last ten digits follow from a key drawn for each leader, "
            "so that no name is used twice"
        ),
        "  leader vllm-0:",
        '    add /metadata/labels/leaderworkerset.sigs.k8s.io/group-key = "<drawn for each leader>"',
        '    add /metadata/labels/lockstep.dev/group = "vllm-0-xxxxxxxxxx"',
        '    add /metadata/annotations/scheduling.k8s.io/group-name = "vllm-0-xxxxxxxxxx"',
        '    add /metadata/annotations/volcano.sh/task-spec = "leader"',
        "  worker vllm-0-1 to -3:",
        '    add /metadata/labels/lockstep.dev/group = "vllm-0-xxxxxxxxxx"',
        '    add /metadata/annotations/scheduling.k8s.io/group-name = "vllm-0-xxxxxxxxxx"',
        '    add /metadata/annotations/volcano.sh/task-spec = "worker"',
        "  group of vllm-0: the minimum is 1 until the workers are there, because of spec.startupPolicy, and 4 then",
        "    apiVersion: scheduling.volcano.sh/v1beta1",
        "    kind: PodGroup",
        "    metadata:",
        "      name: vllm-0-xxxxxxxxxx",
        "      namespace: team",
        "      labels:",
        "        lockstep.dev/group: vllm-0-xxxxxxxxxx",
        "        leaderworkerset.sigs.k8s.io/name: vllm",
        "        leaderworkerset.sigs.k8s.io/group-index: '0'",
        "        leaderworkerset.sigs.k8s.io/template-revision-hash: <revision>",
        "      ownerReferences:",
        "      - apiVersion: v1",
        "        kind: Pod",
        "        name: vllm-0",
        "        controller: true",
        "    spec:",
        "      minMember: 1",
        "      minResources:",
        "        cpu: '4'",
        "        nvidia.com/gpu: '32'",
        "      queue: default",
        '    then: {"minMember":4}',
        "  groups of vllm-1 to vllm-2: the same under their own names",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            "kind: Pod", "{file}: must hold a leaderworkerset.x-k8s.io/v1/LeaderWorkerSet, got none", id="none"
        ),
        pytest.param("a: [", "{file}:2: must be YAML, got did not find expected node content", id="yaml"),
        pytest.param("- 1", "{file}:1: must hold objects, got a list", id="a list"),
        pytest.param("a: &x 1\nb: *x", '{file}:2: must hold no YAML alias, got "*x"', id="alias"),
        pytest.param(
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nspec: {}",
            "{file}:1: metadata.name: must be set, got nothing",
            id="no name",
        ),
        pytest.param(
            "---\napiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nspec: {replicas: many}",
            "{file}:2: must be a LeaderWorkerSet, got Expected `int | null`, got `str` - at `$.spec.replicas`",
            id="wrong type",
        ),
    ],
)
def test_bad_input_is_wrong_usage_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    """What can't be explained is told with its place; exit code 2."""
    file = tmp_path / "lws.yaml"
    file.write_text(content)
    assert main(["explain", str(file)]) == 2
    assert capsys.readouterr().err == message.format(file=file) + "\n"


def test_a_bad_configuration_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 4."""
    manifest, configuration = tmp_path / "lws.json", tmp_path / "configuration.yaml"
    manifest.write_text(json.dumps(lws()))
    configuration.write_text("apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\nrepair: never\n")
    assert main(["explain", str(manifest), "--config", str(configuration)]) == 4
    assert f"{configuration}:3: repair: must be one of" in capsys.readouterr().err


def test_a_list_of_objects_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kubectl get lws -o json` gives a List; each of its members is explained, others are passed over."""
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [lws(), {"kind": "Pod"}, lws()]}))
    assert main(["explain", str(file), "--output", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["leaderWorkerSets"]) == 2


def test_without_a_group_object_it_shows_what_is_declared_when_gates_are_opened(explain: Any) -> None:
    """YuniKorn: no group, the same annotations on every pod, the queue as a label."""
    words = {"lockstep.dev/queue": "root.gpu", "lockstep.dev/schedule-timeout": "300"}
    explained = explain(lws(size=3, replicas=2, pod={"schedulerName": "yunikorn"}, annotations=words))
    assert explained["groups"] == []
    assert [gate["leader"] for gate in explained["gates"]] == ["vllm-0", "vllm-1"]
    gate = explained["gates"][0]
    groups = json.loads(gate["annotations"]["yunikorn.apache.org/task-groups"])
    assert [(group["name"], group["minMember"]) for group in groups] == [("leader", 1), ("worker", 2)]
    assert groups[1]["minResource"] == {"cpu": "1", "nvidia.com/gpu": "8"}
    assert gate["labels"] == {"yunikorn.apache.org/queue": "root.gpu"}
    parameters = gate["annotations"]["yunikorn.apache.org/schedulingPolicyParameters"]
    assert parameters == "placeholderTimeoutInSeconds=300 gangSchedulingStyle=Hard"
    for pod in explained["pods"]:
        assert {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "lockstep.dev/group"}]} in pod["patch"]


def test_gates_of_late_workers_are_declared_with_their_leader(explain: Any) -> None:
    """LeaderReady: the leader's pod alone is there, and the room of all is asked for."""
    late = {"startupPolicy": "LeaderReady"}
    gate = explain(lws(size=4, pod={"schedulerName": "yunikorn"}, spec=late))["gates"][0]
    groups = json.loads(gate["annotations"]["yunikorn.apache.org/task-groups"])
    assert [(group["name"], group["minMember"]) for group in groups] == [("leader", 1), ("worker", 3)]


def test_gates_are_shown_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason, then line by line."""
    file = tmp_path / "lws.json"
    file.write_text(json.dumps(lws(pod={"schedulerName": "yunikorn"})))
    assert main(["explain", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    why = "lockstep.dev/group holds each pod until it is its replica's turn: one is opened at a time, the oldest first"
    assert f"  gates of vllm-0: {why}; then stands on each pod" in lines
    assert "    annotation yunikorn.apache.org/schedulingPolicyParameters = gangSchedulingStyle=Hard" in lines
