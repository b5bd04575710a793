"""`lockstep status` against an API server over HTTP: what it lists, prints and exits with."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.main import main
from tests.builders import NAMESPACE, JsonObject
from tests.lockstep.stored import READY, ROOTS, Command, put, put_replica
from tests.reconciler.fake_api import Answer, FakeApi, status
from tests.reconciler.sights import COSCHEDULING, Plan, merged, replica

SAYS: JsonObject = {
    "status": {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes are\navailable",
            }
        ]
    }
}
RUNS = Plan(changes={"vllm-0": READY, "vllm-0-1": READY})
WAITS = Plan(index=1, key="7" * 40, changes={"vllm-1": SAYS})


@pytest.fixture
def run(run_command: Command) -> Command:
    """A function that runs the command; gives exit code, output and error output."""
    return functools.partial(run_command, "status")


def records(text: str) -> list[dict[str, Any]]:
    """Read the JSON output."""
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_what_runs_is_fine(fake: FakeApi, run: Command) -> None:
    """Exit 0."""
    put_replica(fake, RUNS)
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == (
        "team-a/vllm: 1 running\n"
        "INDEX  REVISION   GROUP              STATE    PODS  REASON\n"
        f"0      69fbc5554  {RUNS.group}  running  2/2   all pods are ready\n"
    )


def test_c09_c12_what_waits_is_told_with_the_amount_that_blocks_it(fake: FakeApi, run: Command) -> None:
    """Exit 1; the scheduler's own words on one line, in the table beside the sum."""
    put_replica(fake, RUNS)
    put_replica(fake, WAITS)
    code, out, err = run()
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == "team-a/vllm: 1 running, 1 waits for capacity"
    assert out.splitlines()[3] == (
        f"1      69fbc5554  {WAITS.group}  waits for capacity  0/2   "
        "asks nvidia.com/gpu 16, 8 free in sum (a sum is not a placement); "
        'native says: "0/1 nodes are available"'
    )


def test_what_an_autoscaler_gets_wrong_is_told(fake: FakeApi, run: Command) -> None:
    """A replica that lacks room without the reason that autoscalers look for, in the table and as a record."""
    silent = Plan(index=1, key="7" * 40)
    put_replica(fake, RUNS)
    put_replica(fake, silent)
    misread = "no autoscaler is asked for room: none of its pods is shown as Unschedulable"
    assert run()[1].splitlines()[3].endswith(f"(a sum is not a placement); {misread}")
    assert [record["autoscaler"] for record in records(run("--output", "json")[1])] == ["", misread]


def test_records_have_fixed_keys(fake: FakeApi, run: Command) -> None:
    """Whatever the state; a list, in the order of namespace, LWS and index."""
    put_replica(fake, WAITS)
    code, out, _ = run("--output", "json")
    missing, waits = records(out)
    assert code == 1
    assert waits == {
        "namespace": "team-a",
        "lws": "vllm",
        "index": 1,
        "revision": "69fbc5554",
        "provider": "native",
        "group": WAITS.group,
        "state": "waits for capacity",
        "fine": False,
        "pods": 2,
        "bound": 0,
        "size": 2,
        "reason": "asks no more than is free in sum, but a sum is not a placement",
        "gates": [],
        "short": [],
        "words": "0/1 nodes are\navailable",
        "autoscaler": "",
        "warnings": [],
    }
    assert (missing["index"], missing["state"], missing["reason"]) == (0, "no leader", "its leader pod does not exist")
    assert missing.keys() == waits.keys()


def test_c12_before_any_group_exists(fake: FakeApi, run: Command) -> None:
    """Told apart from waiting for capacity."""
    put_replica(fake, RUNS)
    put_replica(fake, WAITS, grouped=False)
    assert [record["state"] for record in records(run("--output", "json")[1])] == ["running", "no group"]


def test_each_lws_has_a_table_and_names_choose(fake: FakeApi, run: Command) -> None:
    """By name, or by namespace and name; the exit code is that of what was asked for."""
    other = Plan(lws="other", provider=COSCHEDULING, changes={"other-0": READY, "other-0-1": READY})
    put_replica(fake, other)
    put_replica(fake, Plan())
    code, out, _ = run()
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("team-a/")] == [
        "team-a/other: 1 running",
        "team-a/vllm: 1 waits for capacity",
    ]
    assert "\n\n" in out
    for name in ("other", "team-a/other"):
        assert run(name)[:2] == (0, out[: out.index("\n\n") + 1])


def test_a_name_that_is_not_there_is_told(run: Command) -> None:
    """Exit 1: a script that waits for an LWS must not take nothing for fine."""
    assert run("nothing") == (1, "no replicas\n", 'lws: must be one with replicas, got "nothing"\n')


def test_an_empty_cluster_is_fine(run: Command) -> None:
    """Nothing waits."""
    assert run() == (0, "no replicas\n", "")
    assert run("--output", "json") == (0, "[]\n", "")


def test_only_the_namespaces_asked_for_are_looked_at(fake: FakeApi, run: Command) -> None:
    """What is free is still that of the whole cluster."""
    put_replica(fake, Plan())
    assert len(records(run("--output", "json", "--namespace", "elsewhere", NAMESPACE)[1])) == 1
    assert run("--namespace", "elsewhere")[:2] == (0, "no replicas\n")
    assert fake.count(lambda seen: seen.path == "/api/v1/namespaces/elsewhere/pods") == 2


def test_it_only_looks(fake: FakeApi, run: Command) -> None:
    """Not one write, not one watch; each list once."""
    put_replica(fake, Plan())
    run()
    assert fake.count(lambda seen: seen.method != "GET" or seen.watches) == 0
    lists = [(seen.path, seen.query.get("fieldSelector", "")) for seen in fake.requests if seen.query]
    assert len(lists) == len(set(lists)) == 10


def warning(name: str, reason: str, component: str = "lockstep", kind: str = "Warning") -> JsonObject:
    """An event on the LWS."""
    return {
        "kind": "Event",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": f"2026-11-29T22:05:3{name}Z"},
        "involvedObject": {"namespace": NAMESPACE, "name": "vllm", "uid": "lws/vllm"},
        "type": kind,
        "reason": reason,
        "message": "something is wrong",
        "source": {"component": component},
    }


def test_what_lockstep_has_warned_of_stands_below_the_table(fake: FakeApi, run: Command) -> None:
    """Its own warnings in their order, and nobody else's."""
    put_replica(fake, RUNS)
    told = [warning("2", "Second"), warning("1", "First"), warning("3", "Theirs", component="kubelet")]
    for event in [*told, warning("4", "GroupOfOther", kind="Normal")]:
        fake.objects.setdefault(ROOTS["Event"], {})[NAMESPACE, event["metadata"]["name"]] = event
    out = run()[1]
    assert out.splitlines()[3:] == ["  warned: First: something is wrong", "  warned: Second: something is wrong"]
    assert records(run("--output", "json")[1])[0]["warnings"] == [
        "First: something is wrong",
        "Second: something is wrong",
    ]


def test_without_rights_on_nodes_events_and_namespaces_the_rest_is_told(fake: FakeApi, run: Command) -> None:
    """What is free is then not known, and is said so; nor is what namespaces say."""
    put_replica(fake, Plan())
    optional = {ROOTS[kind] for kind in ("Node", "Event", "Namespace")}
    no = Answer(403, json.dumps(status(403, "Forbidden", "no")).encode())
    fake.fault(lambda seen: seen.path in optional, no, times=3)
    code, out, _ = run("--output", "json")
    assert code == 1
    reason = "asks cpu 2, nvidia.com/gpu 16; what is free is not known: nodes or pods can't be listed"
    assert records(out)[0]["reason"] == reason


def test_a_leader_that_makes_no_sense_is_told(fake: FakeApi, run: Command) -> None:
    """By field and value; it counts as a fault."""
    size = "leaderworkerset.sigs.k8s.io/size"
    put(fake, *replica(changes={"vllm-0": {"metadata": {"annotations": {size: "two"}}}}))
    code, out, _ = run("--output", "json")
    broken = records(out)[0]
    assert (code, broken["state"], broken["index"]) == (1, "malformed", -1)
    path = f"metadata.annotations[{size}]"
    assert broken["reason"] == f'pod vllm-0: {path}: must be a whole number of at least 1, got "two"'
    assert "?      -" in run()[1]


FINE: dict[str, tuple[JsonObject, int]] = {
    "opted out and waiting": ({}, 1),
    "opted out and placed": ({"spec": {"nodeName": "n1"}}, 0),
}


@pytest.mark.parametrize(("change", "code"), FINE.values(), ids=FINE.keys())
def test_what_is_not_ours_is_fine_once_it_is_placed(fake: FakeApi, run: Command, change: JsonObject, code: int) -> None:
    """It has no group, and needs none."""
    change = merged(change, {"metadata": {"labels": {"lockstep.dev/gang": "off"}}})
    put_replica(fake, Plan(changes={"vllm-0": change, "vllm-0-1": change}), grouped=False)
    assert run()[0] == code


def test_a_namespace_that_is_opted_out_is_not_ours(fake: FakeApi, run: Command) -> None:
    """Its pods have no stamp, and that is no fault."""
    put(fake, {"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"lockstep.dev/gang": "off"}}})
    put_replica(fake, Plan(stamped=False), grouped=False)
    record = records(run("--output", "json")[1])[0]
    assert (record["state"], record["reason"]) == ("not ours", "its namespace keeps Lockstep away")


REFUSED = {
    "forbidden": (403, "Forbidden", 4, "api server: must let us get and list, got 403 Forbidden: no\n"),
    "unknown": (401, "Unauthorized", 4, "api server: must let us get and list, got 401 Unauthorized: no\n"),
    "unwell": (500, "InternalError", 3, "api server: must be reachable, got 500 InternalError: no\n"),
}


@pytest.mark.parametrize(("answer", "reason", "code", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_server_that_does_not_answer_as_it_should(  # noqa: PLR0913, PLR0917 - a row of the table
    fake: FakeApi, run: Command, answer: int, reason: str, code: int, message: str
) -> None:
    """Exit 4 where somebody has to grant something, 3 where one can only wait."""
    body = json.dumps(status(answer, reason, "no")).encode()
    fake.fault(lambda seen: seen.path == ROOTS["Pod"], Answer(answer, body))
    assert run() == (code, "", message)


def test_a_server_that_is_away(fake: FakeApi, run: Command) -> None:
    """Exit 3."""
    fake.stop()
    code, out, err = run()
    assert (code, out) == (3, "")
    assert err.startswith("api server: must be reachable, got GET /apis/")


def test_a_configuration_that_is_wrong(run: Command, tmp_path: Path) -> None:
    """Exit 4, whether the file is ours or the kubeconfig."""
    file = tmp_path / "configuration.yaml"
    file.write_text("apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\nrepair: never\n")
    code, _, err = run("--config", str(file))
    assert code == 4
    assert err.startswith(f"{file}:3: repair: must be")
    code = main(["status", "--kubeconfig", str(tmp_path / "nothing")])
    assert code == 4


def test_a_long_list_is_read_in_pages(fake: FakeApi, run: Command) -> None:
    """And anew in one piece when it outlives the server's history."""
    for index in range(260):
        put(fake, *replica(index=index, key=f"{index:040x}"))
    gone = Answer(410, json.dumps(status(410, "Expired", "too old")).encode())
    fake.fault(lambda seen: "continue" in seen.query, gone)
    assert len(records(run("--output", "json")[1])) == 260
