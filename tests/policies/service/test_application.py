"""The service's answers, door by door, without a server."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from flask.testing import FlaskClient

from policies.exceptions import read_exceptions
from policies.findings import verdict_json
from policies.reading import read_objects
from policies.registry import all_rules
from policies.reviewing import review, snapshot_of
from policies.service.application import MAX_BODY
from policies.targets import Target
from serving.health import Health
from tests.policies.service.desks import REVIEWS, TODAY, client, desk, fixture, said

if TYPE_CHECKING:
    from policies.objects import Subject

JSON = "application/json"
YAML = "application/yaml"
GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "team-a"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}},
}
MINIMUM = "spec.schedulingPolicy.gang.minCount: must be at least 1, got 0"
NO_REQUEST = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'
CHANGED_KEY = (
    "group-marks-immutable: metadata.labels[leaderworkerset.sigs.k8s.io/group-key]: must stay "
    '"3026934fa959105a39223221cf76941a46fb01bb" once it is set, got "changed"'
)


@pytest.fixture(scope="module")
def asker() -> FlaskClient:
    """A client of one application."""
    return client()


def _reviewed(asker: FlaskClient, body: str | bytes, kind: str = YAML, query: str = "") -> Any:
    response = asker.post(f"/v1/review{query}", data=body, content_type=kind)
    assert response.status_code == 200, response.data
    return said(response)


def _messages(verdict: Any) -> list[str]:
    return [finding["message"] for finding in verdict["findings"] if finding["severity"] == "error"]


def test_a_review_answers_what_the_command_prints(asker: FlaskClient) -> None:
    """The JSON shape is the one of `lockstep review --output json`, byte for byte but for the file's name."""
    text = fixture("podgroup_minimum_positive/denied.yaml")
    response = asker.post("/v1/review", data=text, content_type=YAML)
    subjects = read_objects(text, "body")
    assert response.data == verdict_json(review(subjects, snapshot_of(subjects), Target()))
    assert response.content_type == JSON


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(json.dumps(GROUP), JSON, id="an object in JSON"),
        pytest.param(json.dumps(GROUP), YAML, id="JSON said to be YAML"),
        pytest.param(json.dumps([GROUP]), JSON, id="a list of objects"),
        pytest.param(json.dumps({"apiVersion": "v1", "kind": "List", "items": [GROUP]}), JSON, id="a List"),
        pytest.param(f"---\n{json.dumps(GROUP)}\n---\napiVersion: v1\nkind: X\n", "text/yaml; charset=utf-8", id="two"),
    ],
)
def test_objects_may_come_in_any_form(asker: FlaskClient, body: str, kind: str) -> None:
    """One or many, JSON or YAML."""
    verdict = _reviewed(asker, body, kind)
    assert not verdict["allowed"]
    assert MINIMUM in _messages(verdict)


def test_a_finding_names_the_line_of_the_body(asker: FlaskClient) -> None:
    """The source counts lines of what was sent."""
    verdict = _reviewed(asker, "\n\n" + json.dumps(GROUP, indent=1))
    lines = {finding["source"]["line"] for finding in verdict["findings"] if finding["message"] == MINIMUM}
    assert lines == {13}


def test_a_review_is_for_the_target_that_is_asked_for(asker: FlaskClient) -> None:
    """`target` and `gates` decide what the API server would say."""
    old = {**GROUP, "apiVersion": "scheduling.k8s.io/v1alpha2", "spec": {"schedulingPolicy": {"basic": {}}}}
    assert _reviewed(asker, json.dumps(old), query="?target=1.36&gates=GenericWorkload")["allowed"]
    refused = _messages(_reviewed(asker, json.dumps(old), query="?target=1.37"))
    assert any(message.startswith("apiVersion: must be scheduling.k8s.io/v1beta1 or") for message in refused)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("target=1.20", 'target: must be one of 1.35, 1.36, 1.37, 1.38-alpha, got "1.20"', id="a version"),
        pytest.param("cluster=maybe", 'cluster: must be true or false, got "maybe"', id="neither yes nor no"),
        pytest.param("tagret=1.37", 'query: must hold cluster, gates, target, timeout only, got "tagret"', id="word"),
    ],
)
def test_a_misspelt_question_is_not_answered(asker: FlaskClient, query: str, message: str) -> None:
    """A parameter that is left out without a word would give the wrong verdict."""
    response = asker.post(f"/v1/review?{query}", json=GROUP)
    assert (response.status_code, said(response)) == (400, {"message": message})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("", "body:1: must hold objects, got none", id="nothing"),
        pytest.param("# nothing\n---\n", "body:1: must hold objects, got none", id="a comment"),
        pytest.param("a: &x 1\nb: *x\n", 'body:2: must hold no YAML alias, got "*x"', id="an alias"),
        pytest.param("a: 1\na: 2\n", 'body:2: must hold each key once, got "a" twice', id="a key twice"),
        pytest.param("- 1\n", "body:1: must hold objects, got a list", id="a list in YAML"),
        pytest.param("a: !!python/object:os.system x\n", "body:1: must hold no YAML tag", id="a tag"),
        pytest.param("[" * 500, "body:1: must be at most 100 levels deep, got more", id="depth"),
        pytest.param("a: .nan\n", "body:1: must hold", id="not a number"),
        pytest.param(b"\xff\xfe", "body: must be UTF-8, got byte 0xff", id="not UTF-8"),
        pytest.param("a: \x00", "body:1: must be YAML", id="a control character"),
    ],
)
def test_a_body_without_objects_is_refused(asker: FlaskClient, body: str | bytes, message: str) -> None:
    """With the line, and the reason in one sentence."""
    response = asker.post("/v1/review", data=body, content_type=YAML)
    assert response.status_code == 400
    assert said(response)["message"].startswith(message)


@pytest.mark.parametrize("path", ["/v1/review", "/validate", "/validate/warn"])
def test_the_form_of_a_request_is_checked(asker: FlaskClient, path: str) -> None:
    """Type, encoding, size and method: each with its own status."""
    plain = asker.post(path, data=b"{}", content_type="text/plain")
    assert plain.status_code == 415
    assert said(plain)["message"].startswith("content-type: must be application/json")
    assert asker.post(path, data=b" " * (MAX_BODY + 1), content_type=JSON).status_code == 413
    wrong = asker.put(path, data=b"{}", content_type=JSON)
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")


def test_a_compressed_body_is_refused(asker: FlaskClient) -> None:
    """A small body could be a large one."""
    response = asker.post("/v1/review", data=b"{}", content_type=JSON, headers={"Content-Encoding": "gzip"})
    assert (response.status_code, said(response)) == (415, {"message": 'content-encoding: must be absent, got "gzip"'})


def test_a_recorded_change_of_a_group_mark_is_refused(asker: FlaskClient) -> None:
    """The API server's own review of a changed group-key: denied with the rule and the sentence."""
    body = (REVIEWS / "validate-update-vllm-leader.json").read_bytes()
    response = asker.post("/validate?timeout=10s", data=body, content_type=JSON)
    answer = said(response)["response"]
    assert answer["uid"] == json.loads(body)["request"]["uid"]
    assert not answer["allowed"]
    assert answer["status"]["code"] == 403
    assert answer["status"]["message"] == CHANGED_KEY


def test_the_other_door_admits_and_warns(asker: FlaskClient) -> None:
    """`/validate/warn` says the same and refuses nothing."""
    body = (REVIEWS / "validate-update-vllm-leader.json").read_bytes()
    answer = said(asker.post("/validate/warn", data=body, content_type=JSON))["response"]
    assert answer["allowed"]
    assert answer["warnings"] == [CHANGED_KEY]


@pytest.mark.parametrize("name", sorted(path.name for path in REVIEWS.glob("validate-*.json")))
def test_every_recorded_review_gets_an_answer(asker: FlaskClient, name: str) -> None:
    """Of all that a real API server sent, only the spoilt group-key is refused."""
    response = asker.post("/validate", data=(REVIEWS / name).read_bytes(), content_type=JSON)
    assert response.status_code == 200
    assert said(response)["response"]["allowed"] == (name != "validate-update-vllm-leader.json")


def _review(**request: Any) -> bytes:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_review(operation="CONNECT", object=GROUP), id="a connection"),
        pytest.param(_review(operation="CREATE", object=GROUP, subResource="status"), id="a subresource"),
        pytest.param(_review(operation="CREATE"), id="no object"),
        pytest.param(_review(operation="CREATE", object={"kind": "Unknown", "apiVersion": "v1"}), id="another kind"),
        pytest.param(_review(operation="DELETE", oldObject=GROUP), id="a deletion"),
        pytest.param(_review(operation="CREATE", object={}, userInfo={"username": "u", "groups": None}), id="odd user"),
    ],
)
def test_what_no_rule_looks_at_is_admitted(asker: FlaskClient, body: bytes) -> None:
    """Without a word."""
    answer = said(asker.post("/validate", data=body, content_type=JSON))["response"]
    assert answer == {"uid": "u", "allowed": True}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "body: must be an AdmissionReview, got Input data was truncated", id="nothing"),
        pytest.param(b"{}", 'kind: must be "admission.k8s.io/v1/AdmissionReview", got "/"', id="an empty object"),
        pytest.param(b"[" * 100_000, "body: must be an AdmissionReview, got", id="brackets"),
        pytest.param(_review(uid=""), "request.uid: must be set, got nothing", id="no uid"),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
            "request: must be set, got nothing",
            id="no",
        ),
        pytest.param(_review(object=[]), "body: must be an AdmissionReview, got", id="an object that is a list"),
        pytest.param(
            _review(object=json.loads('{"a":' * 200 + "1" + "}" * 200)),
            "request.object: must be at most 100 levels deep, got more",
            id="depth",
        ),
    ],
)
def test_what_is_no_review_is_refused(asker: FlaskClient, body: bytes, message: str) -> None:
    """400 with the reason, whatever the body."""
    response = asker.post("/validate", data=body, content_type=JSON)
    assert response.status_code == 400
    assert said(response)["message"].startswith(message)


def test_every_rule_is_listed_and_described(asker: FlaskClient) -> None:
    """In short and whole, with its YAML and its tests."""
    listed = said(asker.get("/v1/policies"))["policies"]
    assert [entry["id"] for entry in listed] == list(all_rules())
    for entry in listed:
        whole = said(asker.get(entry["href"]))
        assert {key: whole[key] for key in entry} == entry
        assert whole["why"]
        assert whole["blind"]
        assert whole["tests"]
        assert (whole["yaml"] != "") == (entry["enforcedBy"] == "both")


def test_an_unknown_rule_is_not_there(asker: FlaskClient) -> None:
    """404, with the id."""
    response = asker.get("/v1/policies/nothing-of-the-kind")
    assert (response.status_code, said(response)) == (
        404,
        {"message": 'id: must be the id of a rule, got "nothing-of-the-kind"'},
    )


def test_the_page_holds_every_rule_and_no_script(asker: FlaskClient) -> None:
    """Plain HTML under a policy that lets nothing else in."""
    response = asker.get("/")
    page = response.text
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert "<script" not in page
    for rule in all_rules().values():
        assert f'<h2 id="{rule.id}">' in page


def test_every_answer_carries_the_security_headers(asker: FlaskClient) -> None:
    """Errors too."""
    for path in ("/", "/v1/policies", "/nowhere", "/healthz"):
        assert asker.get(path).headers["X-Content-Type-Options"] == "nosniff"


def test_health_tells_why_not() -> None:
    """Ready, or the reason."""
    health = Health()
    asker = client(health=health)
    assert (asker.get("/readyz").status_code, asker.get("/healthz").text) == (200, "ok\n")
    health.missing = "cluster: must have been read once, got no answer yet"
    response = asker.get("/readyz")
    assert (response.status_code, response.text) == (503, f"{health.missing}\n")
    assert asker.get("/metrics").text == "metrics\n"


EXCEPTIONS = """
apiVersion: lockstep.dev/v1alpha1
kind: Exceptions
exceptions:
- id: podgroup-minimum-positive
  object: {kind: PodGroup, namespace: team-a, name: g}
  owner: team-a@example.com
  reason: measured without a gang
  expiry: 2027-03-31
- id: podgroup-minimum-positive
  object: {kind: PodGroup, namespace: team-a, name: other}
  owner: team-a@example.com
  reason: not in this request
  expiry: 2027-03-31
"""


def test_exceptions_count_and_unused_ones_are_no_matter_of_one_request() -> None:
    """A request shows a few objects: what isn't in it can't be called unused."""
    exceptions = read_exceptions(EXCEPTIONS, "exceptions.yaml", str(TODAY), all_rules())
    verdict = _reviewed(client(desk(exceptions)), json.dumps(GROUP), JSON)
    excepted = [finding["rule"] for finding in verdict["findings"] if "exception" in finding]
    assert excepted == ["podgroup-minimum-positive"]
    assert "exceptions-in-use" not in [finding["rule"] for finding in verdict["findings"]]


def test_verdicts_are_counted() -> None:
    """What is found goes to the metrics."""
    counted: list[Any] = []
    asker = client(count=counted.append)
    _reviewed(asker, json.dumps(GROUP), JSON)
    asker.post("/validate", data=_review(operation="CREATE", object=GROUP), content_type=JSON)
    assert [verdict.allowed for verdict in counted] == [False, False]


def test_a_subject_of_an_update_has_both_objects() -> None:
    """The rules see what was there before."""
    seen: list[Subject] = []

    class _View:
        def around(self, subjects: Any, *, certain: bool) -> Any:
            assert not certain
            seen.extend(subjects)
            return snapshot_of(subjects)

        def namespace_labels(self, namespace: str) -> dict[str, str]:
            return {"team": namespace}

        def target(self) -> None:
            return None

    request = {"operation": "UPDATE", "namespace": "team-a", "object": GROUP, "oldObject": {**GROUP, "spec": {}}}
    user = {"username": "jane", "groups": ["dev"]}
    client(desk(view=_View())).post("/validate", data=_review(**request, userInfo=user), content_type=JSON)
    assert seen[0].old == {**GROUP, "spec": {}}
    assert seen[0].namespace_labels == {"team": "team-a"}
    assert (seen[0].user.username, seen[0].user.groups) == ("jane", ("dev",))
