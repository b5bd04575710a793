"""Reports in the cluster: made, changed and deleted with the findings, and nobody else's touched."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from reconciler.report_objects import keep_reports
from schedulers.contract import GroupKind
from tests.reconciler.fake_api import Answer, FakeApi, InProcess

KIND: Final = GroupKind("wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports")
ROOT: Final = "/apis/wgpolicyk8s.io/v1alpha2/policyreports"


def report(name: str, message: str = "spec: must be, got nothing", **labels: str) -> dict[str, Any]:
    """Build a report."""
    return {
        "apiVersion": KIND.api_version,
        "kind": KIND.kind,
        "metadata": {"name": name, "namespace": "a", "labels": labels or {"app.kubernetes.io/managed-by": "lockstep"}},
        "scope": {"kind": "Pod", "name": name},
        "summary": {"fail": 1},
        "results": [{"message": message}],
    }


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    """An API server that serves reports."""
    fake = FakeApi()
    fake.objects[ROOT] = {}
    yield fake.start()
    fake.stop()


def writes(fake: FakeApi) -> list[tuple[str, str]]:
    """List what was written."""
    return [(seen.method, seen.path) for seen in fake.requests if seen.method != "GET"]


def test_reports_follow_findings(fake: FakeApi) -> None:
    """What is new is made, what has changed is patched, what is gone is deleted, what is the same is left alone."""
    api = InProcess(fake)
    assert keep_reports(api, [KIND], [report("one"), report("two"), report("three")]) == 3
    fake.requests.clear()
    assert keep_reports(api, [KIND], [report("one"), report("two", "spec: must be, got another")]) == 2
    place = "/apis/wgpolicyk8s.io/v1alpha2/namespaces/a/policyreports"
    assert writes(fake) == [("PATCH", f"{place}/two"), ("DELETE", f"{place}/three")]
    fake.requests.clear()
    assert keep_reports(api, [KIND], [report("one"), report("two", "spec: must be, got another")]) == 0
    assert writes(fake) == []


def test_reports_of_others_are_left_alone(fake: FakeApi) -> None:
    """A report that is not labelled as ours is neither changed nor deleted, even under a name of ours."""
    theirs = report("one", "theirs", team="blue")
    fake.create(ROOT, "a", "one", **{key: value for key, value in theirs.items() if key != "metadata"})
    assert keep_reports(InProcess(fake), [KIND], [report("one")]) == 0
    assert fake.objects[ROOT]["a", "one"]["results"] == [{"message": "theirs"}]
    assert keep_reports(InProcess(fake), [KIND], []) == 0
    assert ("a", "one") in fake.objects[ROOT]


def test_a_report_that_is_gone_already(fake: FakeApi) -> None:
    """A report that somebody deletes at the same moment is no failure."""
    api = InProcess(fake)
    keep_reports(api, [KIND], [report("one")])
    gone = Answer(404, b'{"kind":"Status","code":404,"reason":"NotFound"}')
    fake.fault(lambda seen: seen.method == "DELETE", gone)
    assert keep_reports(api, [KIND], []) == 1
