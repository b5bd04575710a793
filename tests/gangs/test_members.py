"""What a pod says about its replica."""

import pytest

from gangs.members import Malformed, Member, looks_nested, read_member
from tests.builders import KEY, LWS, REVISION, JsonObject, leader_pod, worker_pod

LEADER = Member("team-a", "vllm", 0, True, "vllm-0", REVISION, 2, KEY)  # noqa: FBT003 - a row of values
WORKER = Member("team-a", "vllm", 0, False, "vllm-0", REVISION, 2, KEY)  # noqa: FBT003 - a row of values


def read(pod: JsonObject) -> Member | None:
    metadata = pod["metadata"]
    return read_member("team-a", metadata["name"], metadata["labels"], metadata["annotations"])


@pytest.mark.parametrize(
    ("pod", "member"),
    [
        pytest.param(leader_pod(), LEADER, id="a leader after LWS's webhook"),
        pytest.param(worker_pod(), WORKER, id="a worker after LWS's webhook"),
        pytest.param(worker_pod(first_pass=True), WORKER, id="a worker needs no worker-index"),
        pytest.param(
            leader_pod(index=12, first_pass=True),
            Member("team-a", "vllm", 12, True, "vllm-12", REVISION, 2, None),  # noqa: FBT003 - a row of values
            id="a leader before LWS's webhook has its index from its name and no key",
        ),
        pytest.param(
            leader_pod(index=1, labels={f"{LWS}group-index": "7"}),
            Member("team-a", "vllm", 7, True, "vllm-1", REVISION, 2, KEY),  # noqa: FBT003 - a row of values
            id="the label counts before the name",
        ),
        pytest.param(
            leader_pod("m" + "-x" * 31),
            Member("team-a", "m" + "-x" * 31, 0, True, "m" + "-x" * 31 + "-0", REVISION, 2, KEY),  # noqa: FBT003
            id="a name of 63 characters",
        ),
        pytest.param(
            leader_pod(index=2147483647, first_pass=True, size=2147483647),
            Member("team-a", "vllm", 2147483647, True, "vllm-2147483647", REVISION, 2147483647, None),  # noqa: FBT003
            id="the largest index and size that LWS has",
        ),
        pytest.param(leader_pod(labels={f"{LWS}name": None}), None, id="a pod without the label is of no LWS"),
    ],
)
def test_a_pod_of_an_lws_says_where_it_belongs(pod: JsonObject, member: Member | None) -> None:
    """Labels and annotations of the pod alone give its place."""
    assert read(pod) == member


def test_c16_a_worker_with_the_leaders_worker_index_is_a_worker() -> None:
    """A `leader-name` annotation makes a worker, whatever the worker-index says, and the oddity can be seen."""
    pod = worker_pod(labels={f"{LWS}worker-index": "0"})
    assert read(pod) == WORKER
    assert looks_nested(pod["metadata"]["labels"], pod["metadata"]["annotations"])
    for ordinary in (leader_pod(), worker_pod(), leader_pod(first_pass=True)):
        assert not looks_nested(ordinary["metadata"]["labels"], ordinary["metadata"]["annotations"])


def test_the_group_of_a_member_is_known_once_it_has_a_key() -> None:
    """Leader and workers compute one name; a leader before its first pass has none."""
    assert LEADER.group == WORKER.group == "vllm-0-b2efc632cb"
    member = read(leader_pod(first_pass=True))
    assert member is not None
    assert member.group is None


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            leader_pod(labels={f"{LWS}name": "Vllm_1"}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/name]: must be a DNS label, got "Vllm_1"',
            id="a name that is no DNS label",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}name": "v" * 64}),
            f'metadata.labels[leaderworkerset.sigs.k8s.io/name]: must be a DNS label, got "{"v" * 63}..."',
            id="a name that is too long is shown short",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}name": "vllm\n"}),
            r'metadata.labels[leaderworkerset.sigs.k8s.io/name]: must be a DNS label, got "vllm\n"',
            id="a line break in a name is shown, not sent",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}worker-index": "1"}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/worker-index]: must be "0" on a leader, got "1"',
            id="a worker-index on a pod without leader-name",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}worker-index": None}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/worker-index]: must be "0" on a leader, got nothing',
            id="a leader without worker-index",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}template-revision-hash": None}),
            "metadata.labels[leaderworkerset.sigs.k8s.io/template-revision-hash]: must be set, got nothing",
            id="no revision",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}template-revision-hash": ""}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/template-revision-hash]: must be set, got ""',
            id="an empty revision",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}group-key": None}),
            "metadata.labels[leaderworkerset.sigs.k8s.io/group-key]: must be set on a worker, got nothing",
            id="a worker without key",
        ),
        pytest.param(
            leader_pod(labels={f"{LWS}group-key": ""}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/group-key]: must be a key, got ""',
            id="an empty key",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}group-index": None}),
            "metadata.labels[leaderworkerset.sigs.k8s.io/group-index]: must be set on a worker, got nothing",
            id="a worker without index",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}group-index": "-1"}),
            'metadata.labels[leaderworkerset.sigs.k8s.io/group-index]: must be a whole number of at least 0, got "-1"',
            id="a negative index",
        ),
        pytest.param(
            worker_pod(labels={f"{LWS}group-index": "2147483648"}),
            "metadata.labels[leaderworkerset.sigs.k8s.io/group-index]: must be a whole number of at least 0, "
            'got "2147483648"',
            id="an index above LWS's int32",
        ),
        pytest.param(
            leader_pod(annotations={f"{LWS}size": None}),
            "metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, got nothing",
            id="no size",
        ),
        pytest.param(
            leader_pod(annotations={f"{LWS}size": "0"}),
            'metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, got "0"',
            id="a size of nothing",
        ),
        pytest.param(
            leader_pod(annotations={f"{LWS}size": "2.0"}),
            'metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, got "2.0"',
            id="a size with a fraction",
        ),
        pytest.param(
            leader_pod(annotations={f"{LWS}size": "٣"}),
            r"metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, "
            r'got "\u0663"',
            id="a digit of another script",
        ),
        pytest.param(
            leader_pod(annotations={f"{LWS}size": "9" * 5000}),
            "metadata.annotations[leaderworkerset.sigs.k8s.io/size]: must be a whole number of at least 1, "
            f'got "{"9" * 63}..."',
            id="a size of five thousand digits",
        ),
        pytest.param(
            {"metadata": {**leader_pod(first_pass=True)["metadata"], "name": "vllm-x"}},
            'metadata.name: must end in the leader\'s ordinal, got "vllm-x"',
            id="a leader without ordinal",
        ),
        pytest.param(
            {"metadata": {**leader_pod(first_pass=True)["metadata"], "name": ""}},
            'metadata.name: must end in the leader\'s ordinal, got ""',
            id="a leader without name",
        ),
        pytest.param(
            {"metadata": {**leader_pod(first_pass=True)["metadata"], "name": "vllm-9999999999"}},
            'metadata.name: must end in the leader\'s ordinal, got "vllm-9999999999"',
            id="an ordinal above LWS's int32",
        ),
    ],
)
def test_what_lws_never_writes_is_told_by_its_field(pod: JsonObject, message: str) -> None:
    """The message names the field, the rule and the culprit."""
    with pytest.raises(Malformed) as caught:
        read(pod)
    assert str(caught.value) == message
    assert str(caught.value).startswith(f"{caught.value.path}: must {caught.value.rule}, got ")
