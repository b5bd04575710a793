"""What is patched onto which pod."""

import json
from itertools import product

import pytest

from tests.builders import KEY, LWS, NAMESPACE, JsonObject, leader_pod, operations, response, review, worker_pod
from tests.webhook.fakes import ALLOWED_PATHS, DRAWN, admit, decider, lws_key, lws_webhook

GROUP = "vllm-0-b2efc632cb"
DRAWN_GROUP = "vllm-0-ed2f01303a"
BUILDERS = (leader_pod, worker_pod)
LEFT_OUT = "lockstep leaves this pod out of its gang"


@pytest.mark.parametrize(
    ("scheduler", "stamped"),
    [
        pytest.param("default-scheduler", {"schedulingGroup": {"podGroupName": GROUP}}, id="kube-scheduler"),
        pytest.param(None, {"schedulingGroup": {"podGroupName": GROUP}}, id="no name is kube-scheduler"),
        pytest.param("", {"schedulingGroup": {"podGroupName": GROUP}}, id="an empty name is kube-scheduler"),
        pytest.param(
            "volcano",
            {"annotations": {"scheduling.k8s.io/group-name": GROUP, "volcano.sh/task-spec": "leader"}},
            id="Volcano",
        ),
        pytest.param(
            "scheduler-plugins-scheduler", {"labels": {"scheduling.x-k8s.io/pod-group": GROUP}}, id="Coscheduling"
        ),
        pytest.param(
            "yunikorn",
            {
                "labels": {"yunikorn.apache.org/app-id": GROUP},
                "annotations": {"yunikorn.apache.org/task-group-name": "leader"},
                "schedulingGates": [{"name": "lockstep.dev/group"}],
            },
            id="YuniKorn",
        ),
    ],
)
def test_c04_the_stamp_is_in_the_admission_patch_itself(scheduler: str | None, stamped: JsonObject) -> None:
    """Word for word, and nothing else: a scheduler that looks at the pod once sees its group."""
    pod = leader_pod(scheduler=scheduler)
    decision, after = admit(pod)
    assert decision.outcome == "stamped"
    assert added(pod, after) == {
        "labels": {"lockstep.dev/group": GROUP, **stamped.get("labels", {})},
        "annotations": stamped.get("annotations", {}),
        "spec": {key: value for key, value in stamped.items() if key.startswith("scheduling")},
    }


def test_c25_sets_of_two_schedulers_in_one_cluster_carry_their_own_keys_only() -> None:
    """One webhook, a choice per LWS: leader and worker of each set have their scheduler's keys, not the other's."""
    keys = {
        "volcano": {"scheduling.k8s.io/group-name", "volcano.sh/task-spec"},
        "scheduler-plugins-scheduler": {"scheduling.x-k8s.io/pod-group"},
    }
    for (lws, scheduler), build in product((("a", "volcano"), ("b", "scheduler-plugins-scheduler")), BUILDERS):
        pod = build(lws, scheduler=scheduler)
        new = added(pod, admit(pod)[1])
        assert new["labels"].keys() | new["annotations"].keys() == keys[scheduler] | {"lockstep.dev/group"}
        assert new["spec"] == {}
        groups = {value for value in (new["labels"] | new["annotations"]).values() if value not in ("leader", "worker")}
        assert len(groups) == 1


def added(before: JsonObject, after: JsonObject) -> JsonObject:
    """Give what is in a pod that was not there, once it is certain that the rest is as it was."""
    for where in ("labels", "annotations"):
        assert before["metadata"][where].items() <= after["metadata"][where].items()
    assert before["spec"].items() <= after["spec"].items()
    new = {
        where: {key: value for key, value in after["metadata"][where].items() if key not in before["metadata"][where]}
        for where in ("labels", "annotations")
    }
    return {**new, "spec": {key: value for key, value in after["spec"].items() if key not in before["spec"]}}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano", "scheduler-plugins-scheduler"])
def test_a_leader_draws_a_key_once_and_its_worker_agrees(scheduler: str) -> None:
    """First pass, LWS's webhook, second pass; then the worker with the leader's key in LWS's template."""
    first, leader = admit(leader_pod(first_pass=True, scheduler=scheduler))
    assert first.outcome == "stamped"
    assert leader["metadata"]["labels"][f"{LWS}group-key"] == DRAWN
    assert leader["metadata"]["labels"]["lockstep.dev/group"] == DRAWN_GROUP
    other_draw = decider(key="e" * 40)
    second, same = admit(lws_webhook(leader, NAMESPACE), other_draw)
    assert second.outcome == "unchanged"
    assert same["metadata"]["labels"][f"{LWS}group-key"] == DRAWN
    third, worker = admit(worker_pod(first_pass=True, key=DRAWN, scheduler=scheduler), other_draw)
    assert third.outcome == "stamped"
    assert worker["metadata"]["labels"]["lockstep.dev/group"] == DRAWN_GROUP


def test_each_incarnation_of_a_leader_has_another_group() -> None:
    """A deleted leader comes back under a name that was never used."""
    _, one = admit(leader_pod(first_pass=True), decider(key="1" * 40))
    _, two = admit(leader_pod(first_pass=True), decider(key="2" * 40))
    assert one["metadata"]["labels"]["lockstep.dev/group"] != two["metadata"]["labels"]["lockstep.dev/group"]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(leader_pod(scheduler="bespoke"), id="a scheduler without a provider"),
        pytest.param(leader_pod(scheduler="x" * 100000), id="a scheduler with an absurd name"),
        pytest.param(leader_pod(labels={f"{LWS}name": None}), id="a pod that is of no LWS"),
        pytest.param(leader_pod(labels={"lockstep.dev/gang": "off"}), id="an opt-out"),
        pytest.param(worker_pod(labels={"lockstep.dev/gang": "off"}, scheduler="volcano"), id="a worker's opt-out"),
        pytest.param({}, id="an empty object"),
        pytest.param(None, id="no object"),
        pytest.param({"metadata": None, "spec": None}, id="nulls where objects belong"),
        pytest.param({"metadata": {"labels": None, "annotations": None}, "spec": {}}, id="null maps"),
        pytest.param({"metadata": {"name": "p"}, "spec": {"containers": []}}, id="no maps"),
    ],
)
def test_pods_that_are_none_of_our_business_are_admitted_unchanged(pod: JsonObject | None) -> None:
    """No patch, no warning."""
    decision = decider()(review(pod))
    assert (decision.status, decision.outcome, decision.provider) == (200, "unchanged", "")
    assert response(decision.body) == {"uid": "8bb9e81b-fd9a-4f50-ae8e-5d39b1d05889", "allowed": True}


@pytest.mark.parametrize("scheduler", [None, "", "default-scheduler"])
@pytest.mark.parametrize("pod", [leader_pod, worker_pod])
def test_c03_kube_schedulers_pods_are_left_alone_where_only_volcano_is_configured(
    pod: object, scheduler: str | None
) -> None:
    """A provider serves the pods of its own scheduler, not those of the whole cluster."""
    assert callable(pod)
    decision, after = admit(pod(scheduler=scheduler), decider({"volcano": "volcano"}))
    assert decision.outcome == "unchanged"
    assert after == pod(scheduler=scheduler)


@pytest.mark.parametrize("value", ["on", "", "OFF", "false"])
def test_only_off_opts_out(value: str) -> None:
    """Another value of the opt-out label is not one."""
    assert admit(leader_pod(labels={"lockstep.dev/gang": value}))[0].outcome == "stamped"


def test_a_scheduler_of_another_name_is_known_by_the_configuration() -> None:
    """A second profile or a renamed scheduler is one line of configuration."""
    decide = decider({"my-volcano": "volcano", "default-scheduler": "coscheduling"})
    assert admit(leader_pod(scheduler="my-volcano"), decide)[0].provider == "volcano"
    assert admit(leader_pod(scheduler=None), decide)[0].provider == "coscheduling"
    assert admit(leader_pod(scheduler="volcano"), decide)[0].outcome == "unchanged"


def test_c16_a_nested_pod_is_stamped_as_a_worker() -> None:
    """No key is drawn for it and it makes no group of its own."""
    pod = worker_pod(labels={f"{LWS}worker-index": "0"}, scheduler="volcano")
    _, after = admit(pod)
    assert after["metadata"]["labels"]["lockstep.dev/group"] == GROUP
    assert after["metadata"]["labels"][f"{LWS}group-key"] == KEY
    assert after["metadata"]["annotations"]["volcano.sh/task-spec"] == "worker"


@pytest.mark.parametrize("inside", ["team-b", None, ""])
def test_c49_the_namespace_is_that_of_the_request(inside: str | None) -> None:
    """What the object says of its namespace does not count."""
    pod = leader_pod()
    pod["metadata"] = {**pod["metadata"], "namespace": inside}
    if inside is None:
        del pod["metadata"]["namespace"]
    _, after = admit(pod, namespace="team-a")
    assert after["metadata"]["labels"]["lockstep.dev/group"] == GROUP


@pytest.mark.parametrize("absent", [{}, {"annotations": None}, {"labels": None}, {"labels": None, "annotations": None}])
def test_c47_missing_and_null_maps_never_make_a_patch_that_fails(absent: JsonObject) -> None:
    """Without LWS's annotations a pod is left out with a warning; every answer applies."""
    pod = leader_pod()
    maps = {"labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"], **absent}
    for gone in (maps, {key: value for key, value in maps.items() if value is not None}):
        before = {**pod, "metadata": {"name": "vllm-0", **gone}}
        decision, after = admit(before)
        if absent:
            assert after == before
            assert decision.outcome == ("unchanged" if "labels" in absent else "warned")
        else:
            assert added(before, after)["labels"] == {"lockstep.dev/group": GROUP}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano", "scheduler-plugins-scheduler"])
def test_c48_odd_keys_stay_what_they_are(scheduler: str) -> None:
    """Slashes, tildes and dots in other keys are untouched, and ours stand under their exact names."""
    odd = {"a/b": "1", "a~b": "2", "a~1b": "3", "a~0b": "4", "x.example.com/y.z": "5", "": "6"}
    pod = leader_pod(first_pass=True, scheduler=scheduler, labels=odd, annotations=odd)
    _, after = admit(pod)
    new = added(pod, after)
    assert new["labels"]["lockstep.dev/group"] == DRAWN_GROUP
    assert new["labels"].keys() | new["annotations"].keys() <= {
        "lockstep.dev/group",
        f"{LWS}group-key",
        "scheduling.x-k8s.io/pod-group",
        "scheduling.k8s.io/group-name",
        "volcano.sh/task-spec",
    }


@pytest.mark.parametrize(
    ("pod", "warning"),
    [
        pytest.param(
            leader_pod(annotations={f"{LWS}size": "two"}),
            'metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, got "two"',
            id="a size that is no number",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}group-key": None}),
            "metadata.labels[leaderworkerset.sigs.k8s.io/group-key]: must be set on a worker, got nothing",
            id="a worker without key",
        ),
        pytest.param(
            leader_pod(labels={"lockstep.dev/group": "mine"}),
            'metadata.labels[lockstep.dev/group]: must be unset in a pod template, got "mine"',
            id="our label in the template",
        ),
        pytest.param(
            leader_pod(labels={"lockstep.dev/group": "mine"}, first_pass=True),
            'metadata.labels[lockstep.dev/group]: must be unset in a pod template, got "mine"',
            id="our label in the template, on the first pass",
        ),
    ],
)
def test_a_pod_that_lws_would_not_write_is_admitted_with_a_warning(pod: JsonObject, warning: str) -> None:
    """The user is told which field keeps the pod out; LWS's own webhook decides whether it may be."""
    decision = decider()(review(pod))
    assert (decision.status, decision.outcome) == (200, "warned")
    answer = response(decision.body)
    assert answer == {"uid": answer["uid"], "allowed": True, "warnings": [f"{LEFT_OUT}: {warning}"]}


def test_a_warning_is_short_and_plain_whatever_the_pod_holds() -> None:
    """It becomes an HTTP header of the API server's answer."""
    for text in ("x" * 1_000_000, "ä" * 300, "a\r\nInjected: 1", "\x00", "\U0001f600" * 100):
        for pod in (leader_pod(labels={f"{LWS}name": text}), leader_pod(labels={"lockstep.dev/group": text})):
            warnings = response(decider()(review(pod)).body)["warnings"]
            assert len(warnings[0]) < 900
            assert warnings[0].isascii()
            assert warnings[0].isprintable()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"operation": "UPDATE"}, id="an update"),
        pytest.param({"operation": "DELETE", "object": None, "oldObject": leader_pod()}, id="a deletion"),
        pytest.param(
            {"operation": "CONNECT", "subResource": "exec", "kind": {"kind": "PodExecOptions", "version": "v1"}},
            id="a connection",
        ),
        pytest.param({"subResource": "ephemeralcontainers"}, id="a subresource"),
        pytest.param({"subResource": "binding", "kind": {"version": "v1", "kind": "Binding"}}, id="a binding"),
        pytest.param({"kind": {"group": "example.com", "version": "v1", "kind": "Pod"}}, id="another group's Pod"),
        pytest.param(
            {
                "kind": {"version": "v1", "kind": "Node"},
                "object": {"kind": "Node", "metadata": {"labels": {}}, "spec": {"taints": [], "schedulerName": 1}},
            },
            id="a node",
        ),
        pytest.param(
            {
                "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                "object": {"metadata": {"labels": {f"{LWS}name": "x"}}, "spec": {"schedulingGroup": [1, 2]}},
            },
            id="a deployment with other types where a pod has the fields that are read",
        ),
        pytest.param({"kind": {"version": "v1", "kind": "Secret"}, "object": "text"}, id="an object that is a text"),
    ],
)
def test_reviews_of_anything_but_a_new_pod_are_admitted_unchanged(request_: JsonObject) -> None:
    """A rule that sends us too much does no harm."""
    decision = decider()(review(leader_pod(), **request_))
    assert (decision.status, decision.outcome) == (200, "unchanged")
    assert operations(decision.body) == []


def test_a_dry_run_gets_the_same_answer() -> None:
    """The decision has no side effects, so there is nothing to leave out."""
    for pod in (leader_pod(), leader_pod(first_pass=True), worker_pod(scheduler="volcano")):
        assert decider()(review(pod, dryRun=True)) == decider()(review(pod))


def test_patches_stay_in_the_allow_list() -> None:
    """Over schedulers, roles and passes, no other path is ever written."""
    for scheduler in ("default-scheduler", "volcano", "scheduler-plugins-scheduler"):
        for build in (leader_pod, worker_pod):
            for first_pass in (True, False):
                decision = decider()(review(build(scheduler=scheduler, first_pass=first_pass)))
                assert {operation["path"] for operation in operations(decision.body)} <= ALLOWED_PATHS


def test_the_key_that_lws_would_draw_is_known() -> None:
    """The fake of LWS's webhook writes what is on the recorded pods."""
    assert lws_key("default", "vllm-0") == KEY
    assert json.loads(review(leader_pod()))["request"]["namespace"] == NAMESPACE


@pytest.mark.parametrize("build", BUILDERS)
def test_our_gate_stands_beside_those_of_others(build: object) -> None:
    """Kueue's stays, in its place; ours comes once, however often the pod is admitted."""
    assert callable(build)
    kueue = {"name": "kueue.x-k8s.io/admission"}
    _, once = admit(build(scheduler="yunikorn", spec={"schedulingGates": [kueue]}))
    assert once["spec"]["schedulingGates"] == [kueue, {"name": "lockstep.dev/group"}]
    assert admit(once)[0].outcome == "unchanged"


@pytest.mark.parametrize("gates", [None, []])
def test_no_gates_are_no_trouble(gates: object) -> None:
    """A field that is null or empty gets ours."""
    _, after = admit(leader_pod(scheduler="yunikorn", spec={"schedulingGates": gates}))
    assert after["spec"]["schedulingGates"] == [{"name": "lockstep.dev/group"}]


def test_a_pod_that_names_its_node_gets_no_gate() -> None:
    """The API server would refuse it, and no scheduler is asked about it anyway."""
    _, after = admit(leader_pod(scheduler="yunikorn", spec={"nodeName": "n1"}))
    assert "schedulingGates" not in after["spec"]


def test_other_schedulers_pods_get_no_gate() -> None:
    """They have a group object to wait for."""
    for scheduler in ("default-scheduler", "volcano", "scheduler-plugins-scheduler"):
        assert "schedulingGates" not in admit(leader_pod(scheduler=scheduler))[1]["spec"]


def test_a_gate_is_withdrawn_alone() -> None:
    """When someone else claims the pod between our passes, ours goes, and others' stay."""
    kueue = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
    pod = worker_pod(first_pass=True, scheduler="yunikorn", spec={"schedulingGates": kueue})
    _, ours = admit(pod)
    decision, after = admit(lws_webhook(ours, NAMESPACE, volcano=True))
    assert decision.outcome == "withdrawn"
    assert after == lws_webhook(pod, NAMESPACE, volcano=True)


def test_c42_all_that_an_application_needs_to_be_told_apart_is_there_at_creation() -> None:
    """Id and task group are on the pod when YuniKorn first sees it; what it can't know yet, it is held back for."""
    for build, role in ((leader_pod, "leader"), (worker_pod, "worker")):
        _, after = admit(build(scheduler="yunikorn"))
        assert after["metadata"]["labels"]["yunikorn.apache.org/app-id"] == GROUP
        assert after["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] == role
        assert after["spec"]["schedulingGates"] == [{"name": "lockstep.dev/group"}]
