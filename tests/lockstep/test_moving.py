"""`lockstep move`, `adopt` and `uninstall` against an API server over HTTP: what they refuse, and what they find."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import JsonObject
from tests.lockstep.stored import READY, ROOTS, Command, put_replica
from tests.reconciler.fake_api import FakeApi
from tests.reconciler.sights import COSCHEDULING, YUNIKORN, Plan, merged

RUNS = {"vllm-0": READY, "vllm-0-1": READY}
GROUP_NAME = "scheduling.k8s.io/group-name"


def change_lws(fake: FakeApi, change: JsonObject) -> None:
    """Merge a change into the LWS."""
    stored: Any = fake.objects[ROOTS["LeaderWorkerSet"]]
    stored["team-a", "vllm"] = merged(stored["team-a", "vllm"], change)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        pytest.param("slurm", '--to: must be one of .*coscheduling, .*, got "slurm"', id="nobody knows it"),
        pytest.param("koord", '--to: must be one of .*koord-scheduler, .*, got "koord"', id="half a name"),
    ],
)
def test_an_unknown_scheduler_is_wrong_usage(run_command: Command, to: str, message: str) -> None:
    """The message lists what is known."""
    code, _, err = run_command("move", "team-a/vllm", "--to", to)
    assert code == 2
    assert re.match(message, err)


def test_a_provider_with_two_names_is_asked_for_by_name(run_command: Command, tmp_path: Path) -> None:
    """There is no telling which profile is meant."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: lockstep.dev/v1alpha1\nkind: Configuration\nschedulers: {first: volcano, second: volcano}\n"
    )
    code, _, err = run_command("move", "vllm", "--to", "volcano", "--config", str(config))
    assert (code, err) == (2, '--to: must be one of first, second, got "volcano"\n')


def test_a_set_that_is_not_there_is_wrong_usage(run_command: Command) -> None:
    """Nothing is written."""
    code, _, err = run_command("move", "team-a/vllm", "--to", "native")
    assert (code, err) == (2, 'lws: must be one that exists, got "team-a/vllm"\n')


@pytest.mark.parametrize(
    ("to", "change", "message"),
    [
        pytest.param(
            "volcano",
            {},
            "Volcano: must be installed, got a cluster that serves none of podgroups.scheduling.volcano.sh/v1beta1",
            id="its kind is not served",
        ),
        pytest.param(
            "coscheduling",
            {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}}},
            "spec.rolloutStrategy.rollingUpdateConfiguration.partition: must be 0, got 1: LWS leaves the replicas "
            "below it as they are",
            id="the rollout is held",
        ),
        pytest.param(
            "coscheduling",
            {
                "spec": {
                    "leaderWorkerTemplate": {"workerTemplate": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}}
                }
            },
            "spec.leaderWorkerTemplate.workerTemplate.spec.schedulingGroup.podGroupName: must not be written by hand, "
            'got "mine": `lockstep adopt` takes it off',
            id="a group by hand",
        ),
    ],
)
def test_what_can_not_be_moved_is_refused(
    fake: FakeApi, run_command: Command, to: str, change: JsonObject, message: str
) -> None:
    """Exit 1 with the reason, and not a byte is written."""
    put_replica(fake, Plan(changes=RUNS))
    change_lws(fake, change)
    before = len(fake.requests)
    assert run_command("move", "team-a/vllm", "--to", to) == (1, "", message + "\n")
    assert {seen.method for seen in fake.requests[before:]} == {"GET"}


def test_words_that_get_lost_are_told(fake: FakeApi, run_command: Command) -> None:
    """Before anything happens, in the dry run too."""
    put_replica(fake, Plan(changes=RUNS, lws_annotations={"lockstep.dev/queue": "gold"}))
    code, out, _ = run_command("move", "team-a/vllm", "--to", "coscheduling", "--dry-run")
    assert code == 0
    assert out == (
        'team-a/vllm: from "default-scheduler" to "scheduler-plugins-scheduler", Coscheduling (scheduler-plugins), '
        "replica by replica; Coscheduling (scheduler-plugins) can't honour lockstep.dev/queue\n"
    )


def test_adopting_asks_for_names(run_command: Command) -> None:
    """Nobody restarts every replica of a cluster by leaving a word out."""
    assert run_command("adopt") == (2, "", "lws: must be named, or --all or --dry-run given, got none of them\n")


@pytest.mark.parametrize(
    ("plan", "change", "line"),
    [
        pytest.param(
            Plan(stamped=False, changes=RUNS),
            {},
            "admitted without a group: vllm-0: each replica is made anew",
            id="unstamped",
        ),
        pytest.param(
            Plan(provider=COSCHEDULING, stamped=False, changes=RUNS),
            {},
            None,
            id="stamped in place by the reconciler, where that can be done",
        ),
        pytest.param(
            Plan(stamped=False),
            {"metadata": {"annotations": {GROUP_NAME: "vllm-0-69fbc5554"}}},
            "of LWS's own Volcano provider: vllm-0 (vllm-0-69fbc5554): each replica is made anew, once LWS's manager "
            "runs without gangSchedulingManagement",
            id="LWS's own",
        ),
        pytest.param(
            Plan(stamped=False),
            {"spec": {"schedulingGroup": {"podGroupName": "theirs"}}},
            "of someone else: vllm-0 (theirs): each replica is made anew, once whoever makes these groups has been "
            "turned off",
            id="somebody's",
        ),
        pytest.param(Plan(changes=RUNS), {}, None, id="ours"),
    ],
)
def test_what_there_is_to_adopt(
    fake: FakeApi, run_command: Command, plan: Plan, change: JsonObject, line: str | None
) -> None:
    """By who has made the group, with what adopting takes; ours are not listed."""
    both = {name: merged(plan.changes.get(name, {}), change) for name in ("vllm-0", "vllm-0-1")}
    put_replica(fake, Plan(**vars(plan) | {"changes": both}), grouped=plan.stamped)
    code, out, _ = run_command("adopt", "--dry-run")
    assert code == 0
    title = f"team-a/vllm: 1 replica of {plan.provider.name} to adopt"
    assert out.splitlines() == ([] if line is None else [title, f"  {line}"])


def test_uninstalling_tells_what_would_be_stuck(fake: FakeApi, run_command: Command) -> None:
    """Pods behind our gate, and members without their group object: nobody else helps them."""
    gate = {"spec": {"schedulingGates": [{"name": "lockstep.dev/group"}]}}
    put_replica(
        fake,
        Plan(lws="behind", provider=YUNIKORN, changes=dict.fromkeys(("behind-0", "behind-0-1"), gate)),
        grouped=False,
    )
    put_replica(fake, Plan(lws="groupless"), grouped=False)
    put_replica(fake, Plan(changes=RUNS))
    code, out, _ = run_command("uninstall")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "1 of 3 replicas in groups of ours run, and go on running"
    stuck = [line for line in lines if line.startswith("stuck: ")]
    assert [line.partition(": waits")[0].partition(": 2 members")[0] for line in stuck] == [
        "stuck: team-a/behind-0",
        "stuck: team-a/groupless-0",
    ]


def test_uninstalling_with_nothing_stuck_is_fine(fake: FakeApi, run_command: Command) -> None:
    """A replica that waits for capacity has its group, and its scheduler goes on with it."""
    put_replica(fake, Plan())
    assert run_command("uninstall")[0] == 0
