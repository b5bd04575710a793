"""What the doctor makes of what it sees; that it sees it, `tests/cluster/test_doctor.py` shows."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.doctoring.checks import answering, gates, leaderworkersets, lease, rights, schedulers, versions
from lockstep.doctoring.comparing import differences
from lockstep.doctoring.examining import CHECKS, examine
from lockstep.doctoring.findings import ERROR, WARNING, Finding, Report, write_json, write_text
from lockstep.doctoring.places import Place, place_of
from lockstep.doctoring.probing import Probe, leader_pod
from lockstep.doctoring.seeing import Seen, look, plural_of
from lockstep.main import main
from manifests.shipped import NAMESPACE, install_objects
from policies.exceptions import NO_EXCEPTIONS
from reconciler.cache import Cache
from reconciler.contract import NO_QUERY, Forbidden, NotFound, Response, Stream
from reconciler.objects import Pod
from reconciler.snapshot import Snapshot
from schedulers.configuration import default_configuration
from webhook.mutation import Decider

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
SHIPPED = install_objects()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def seen(**changes: Any) -> Seen:
    """A cluster on which everything is as it was shipped, but for what is said."""
    whole: dict[str, Any] = {
        "now": NOW,
        "ours": "0.1.0",
        "cluster": "v1.37.2",
        "namespace": NAMESPACE,
        "shipped": SHIPPED,
        "live": {place_of(content): content for content in SHIPPED},
        "endpoints": 2,
        "configuration": default_configuration(),
        "snapshot": Snapshot(Cache(), frozenset(), None, {}),
        "exceptions": NO_EXCEPTIONS,
    }
    return Seen(**(whole | changes))


def stamped(**spec: Any) -> Probe:
    """A probe that came back with a group."""
    pod = leader_pod("default", "default-scheduler")
    labels = {**pod["metadata"]["labels"], "lockstep.dev/group": "g"}
    return Probe(
        "default-scheduler",
        "native",
        pod={**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": {**pod["spec"], **spec}},
    )


def whats(found: Any) -> list[str]:
    """What findings say."""
    return [finding.what for finding in found]


def test_a_dropped_field_means_that_the_gate_is_off() -> None:
    """The webhook stamped, and the API server kept the label alone."""
    assert whats(gates.find(seen(probes=[stamped()], served=frozenset({"native"})))) == [
        'spec.schedulingGroup of a stamped pod of scheduler "default-scheduler" (dry run): must be kept, got nothing'
    ]
    kept = stamped(schedulingGroup={"podGroupName": "g"})
    assert whats(gates.find(seen(probes=[kept], served=frozenset({"native"})))) == []


def test_a_refused_pod_is_told_with_the_servers_words() -> None:
    """Whoever refuses it, no replica starts."""
    probe = Probe("volcano", "volcano", refused="denied by policy x")
    (what,) = whats(answering.find(seen(probes=[probe])))
    assert what == 'an LWS pod of scheduler "volcano" (dry run): must be admitted, got "denied by policy x"'


@pytest.mark.parametrize(
    ("cluster", "told"), [("v1.34.9", True), ("v1.35.0", False), ("v1.37.2-gke.1", False), ("v1.38.0", True)]
)
def test_a_version_of_kubernetes_that_nobody_tried_is_told(cluster: str, told: bool) -> None:  # noqa: FBT001
    """From the oldest to the newest that is tested."""
    assert bool(whats(versions.find(seen(cluster=cluster)))) is told


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.example/lws/lws:v0.8.0", (0, 8)),
        ("registry.example:5000/lws:0.10.1-rc.1", (0, 10)),
        ("lws:v0.8.0@sha256:" + "0" * 64, (0, 8)),
        ("lws:main", None),
        ("registry.example:5000/lws", None),
    ],
)
def test_the_version_of_lws_is_read_from_its_image(image: str, version: tuple[int, int] | None) -> None:
    """Where its tag has one."""
    deployment = {"spec": {"template": {"spec": {"containers": [{"image": image}]}}}}
    assert leaderworkersets.version_of(deployment) == version


@pytest.mark.parametrize("text", ["", "a: b", "[", "gangSchedulingManagement:", "gangSchedulingManagement: {}"])
def test_lws_without_a_provider_of_its_own(text: str) -> None:
    """Whatever else its configuration says."""
    assert leaderworkersets.own_provider(text) == ""


def test_a_lease_that_nobody_renews() -> None:
    """Its holder hangs, or has lost the API server."""
    renewed = (NOW - dt.timedelta(seconds=100)).isoformat()
    spec = {"holderIdentity": "pod-a", "renewTime": renewed, "leaseDurationSeconds": 15}
    assert whats(lease.find(seen(lease={"spec": spec}))) == [
        'Lease "lockstep-system/lockstep-reconciler": must be renewed, got none for 100 s from "pod-a"'
    ]


def test_a_scheduler_that_is_not_configured_is_no_fault() -> None:
    """Its pods are none of our business."""
    cache = Cache()
    pod = msgspec.convert({"metadata": {"namespace": "a", "name": "b"}, "spec": {"schedulerName": "other"}}, Pod)
    cache.pods.replace({("a", "b"): cache.pods.make_entry("u", "1", pod)})
    assert whats(schedulers.find(seen(snapshot=Snapshot(cache, frozenset(), None, {})))) == []


def test_rights_are_compared_one_by_one() -> None:
    """Rules that say the same in another way are the same."""
    one = {"rules": [{"apiGroups": ["", "apps"], "resources": ["a", "b"], "verbs": ["get"]}]}
    other = {
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": ["get"]}
            for group in ("", "apps")
            for resource in "ab"
        ]
    }
    assert rights.rights_of(one) == rights.rights_of(other)


@given(json_values)
def test_nothing_differs_from_itself(value: Any) -> None:
    """And so a sound installation shows no difference."""
    assert list(differences(value, value)) == []


@pytest.mark.parametrize(
    ("shipped", "live", "told"),
    [
        pytest.param({"a": 1}, {"a": 2}, "a: must be 1, got 2", id="another value"),
        pytest.param({"a": 1}, {}, "a: must be 1, got nothing", id="a field is gone"),
        pytest.param({}, {"a": 1}, "a: must not be there, got 1", id="a field too many"),
        pytest.param(
            {"a": [{"name": "n", "b": 1}]},
            {"a": [{"name": "n", "b": 2}]},
            "a[n].b: must be 1, got 2",
            id="within a list",
        ),
        pytest.param({"a": [{"b": 1}]}, {"a": []}, 'a: must be [{"b": 1}], got []', id="a shorter list"),
        pytest.param({"a": ["x", "y"]}, {"a": ["y", "x"]}, 'a: must be ["x", "y"], got ["y", "x"]', id="another order"),
    ],
)
def test_a_difference_is_told_with_its_path(shipped: Any, live: Any, told: str) -> None:
    """As it was shipped, and as it is."""
    assert [str(each) for each in differences(shipped, live)] == [told]


@pytest.mark.parametrize(
    "live", [{"matchPolicy": "Equivalent"}, {"objectSelector": {}}, {"scope": "*"}, {"x": {}}, {"x": []}]
)
def test_what_the_api_server_fills_in_is_no_difference(live: Any) -> None:
    """Defaults are the same as nothing."""
    assert list(differences({}, live)) == []


def test_where_nothing_is_installed_that_alone_is_said() -> None:
    """Not a hundred objects that are missing, too."""
    report = examine(seen(live=dict.fromkeys(map(place_of, SHIPPED))))
    assert whats(report.findings) == ['Namespace "lockstep-system": must be there, got nothing']
    assert list(report.checks) == ["installed"]


def test_a_scheduler_that_is_not_there_needs_no_rights() -> None:
    """The installation of all schedulers is sound on a cluster that has one."""
    live: dict[Place, Any] = {place_of(content): content for content in SHIPPED}
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        live[Place(kind, "", "lockstep-reconciler-volcano")] = None
    assert [what for what in whats(CHECKS["installed"](seen(live=live))) if "volcano" in what] == []
    served = seen(live=live, served=frozenset({"volcano"}))
    assert len([what for what in whats(CHECKS["installed"](served)) if "volcano" in what]) == 2


def test_errors_are_told_first_and_counted() -> None:
    """For people; the same for programs as JSON."""
    warning = Finding("lease", WARNING, "a: must b, got c", "why", "mend")
    error = Finding("drift", ERROR, "d: must e, got f", "because", "do")
    report = Report({"command": "Lockstep 0.1.0"}, ["lease", "drift"], [error, warning])
    assert write_text(report) == (
        "command  Lockstep 0.1.0\n\n"
        "ERROR drift: d: must e, got f\n  why:  because\n  mend: do\n\n"
        "WARNING lease: a: must b, got c\n  why:  why\n  mend: mend\n\n"
        "2 checks, 1 errors, 1 warnings\n"
    )
    assert msgspec.json.decode(write_json(report), type=Report) == report


def test_the_probe_is_a_pod_that_the_webhook_stamps() -> None:
    """For every scheduler of the configuration."""
    configuration = default_configuration()
    decide = Decider(configuration, lambda: "0" * 40)
    for scheduler in configuration.schedulers:
        pod = leader_pod("default", scheduler)
        request = {"uid": "u", "operation": "CREATE", "namespace": "default", "object": pod}
        request |= {
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"resource": "pods", "version": "v1"},
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        assert b"patch" in decide(msgspec.json.encode(review)).body, scheduler


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("PriorityClass", "priorityclasses"),
        ("NetworkPolicy", "networkpolicies"),
        ("Deployment", "deployments"),
    ],
)
def test_resources_are_named_as_the_api_server_does(kind: str, plural: str) -> None:
    """Every kind that is shipped is read under its own path."""
    assert plural_of(kind) == plural


class Bare:
    """An API server with nothing on it but what it has itself; Secrets are nobody's to read."""

    def request(self, method: str, path: str, query: Mapping[str, str] = NO_QUERY, **_: object) -> Response:  # noqa: ARG002
        """Answer; nothing is stored."""
        if "/secrets/" in path:
            raise Forbidden(403, "Forbidden", "no")
        if path == "/version":
            return Response(200, {}, b'{"gitVersion": "v1.37.2"}')
        if method == "POST":
            raise Forbidden(403, "Forbidden", 'pods is forbidden: User "x" cannot create resource "pods"')
        raise NotFound(404, "NotFound", path)

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Stream:
        """Nobody asks for one."""
        raise NotImplementedError


def test_a_cluster_without_lws_and_without_us_is_looked_at() -> None:
    """What is not there is no reason to stop, and what may not be looked at is said."""
    found = look(Bare(), SHIPPED, ours="0.1.0", now=NOW, exceptions=NO_EXCEPTIONS, probe_namespace="default")
    assert not found.lws_served
    assert found.unseen == (
        'Secret "lockstep-system/lockstep-ca"',
        'Secret "lockstep-system/lockstep-tls"',
        'dry runs of pods in namespace "default"',
    )
    told = whats(CHECKS["leaderworkerset"](found))
    assert told == ["leaderworkersets.leaderworkerset.x-k8s.io: must be served, got no such kind"]
    assert whats(examine(found).findings) == ['Namespace "lockstep-system": must be there, got nothing']


@pytest.mark.parametrize("namespace", ["kube-system", NAMESPACE])
def test_a_probe_where_nothing_is_stamped_is_refused(namespace: str) -> None:
    """It would find a fault that is none."""
    with pytest.raises(ValueError, match="--probe-namespace: must be one whose pods are stamped"):
        look(Bare(), SHIPPED, ours="0.1.0", now=NOW, exceptions=NO_EXCEPTIONS, probe_namespace=namespace)


@pytest.mark.parametrize("text", ["a: b: c", "[1]", "just words"], ids=["no YAML", "no objects", "a word"])
def test_manifests_that_are_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage, with the file's name."""
    file = tmp_path / "applied.yaml"
    file.write_text(text)
    assert main(["doctor", "--manifests", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: must ")


def test_outside_of_a_cluster_without_a_kubeconfig(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad configuration, not a bug."""
    assert main(["doctor"]) == 4
    assert capsys.readouterr().err.startswith("in-cluster configuration: must be usable")


def test_every_check_has_a_name_of_its_own() -> None:
    """A finding leads to its module."""
    assert all(name and name == name.lower() for name in CHECKS)
    assert len(CHECKS) == 17
