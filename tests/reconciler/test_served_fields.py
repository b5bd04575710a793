"""Which gated fields the API server keeps is asked, not assumed."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from reconciler.contract import NO_QUERY, ApiError, Forbidden, Response, TooManyRequests, Unreachable
from reconciler.served_fields import AGAIN, EVERY, ServedFields
from schedulers.contract import GroupKind
from schedulers.native import Native
from schedulers.native_objects import V1ALPHA1, V1ALPHA2, V1BETA1
from schedulers.registry import all_providers

VOLCANO = all_providers()["volcano"]
Json = dict[str, Any]
Answer = Callable[[Json], Json]


class Server:
    """An API server that answers dry runs."""

    def __init__(self, answer: Answer | Exception) -> None:
        """Answer with a spec made of the one that was sent, or fail."""
        self.answer, self.asked = answer, 0

    def request(  # noqa: PLR0913 - the protocol's
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = NO_QUERY,
        *,
        body: bytes | None = None,
        content_type: str = "",
        timeout: float = 0.0,
    ) -> Response:
        """Answer."""
        del content_type, timeout
        self.asked += 1
        assert (method, query) == ("POST", {"dryRun": "All"})
        assert path.startswith("/apis/scheduling.k8s.io/")
        if isinstance(self.answer, Exception):
            raise self.answer
        sent = json.loads(body or b"")
        return Response(201, {}, json.dumps({**sent, "spec": self.answer(sent["spec"])}).encode())

    def stream(self, path: str, query: Mapping[str, str], *, read_timeout: float) -> Any:
        """Watch nothing."""
        raise NotImplementedError(path, query, read_timeout)


def fields(server: Server, kind: GroupKind = V1BETA1) -> ServedFields:
    """Ask a server that serves one kind of group object."""

    def first(kinds: Iterable[GroupKind]) -> GroupKind | None:
        return kind if kind in kinds else None

    return ServedFields(server, "team-a", [Native(), VOLCANO], first)


def only(*names: str, **filled: Any) -> Answer:
    """Keep some fields, and fill others in."""
    return lambda spec: {name: spec[name] for name in ("schedulingPolicy", *names) if name in spec} | filled


ANSWERS: dict[str, tuple[GroupKind, Answer, set[str]]] = {
    "1.37 without gates": (V1BETA1, only(priority=0, disruptionMode={"single": {}}), set()),
    "1.37 with topology": (V1BETA1, only("schedulingConstraints"), {"schedulingConstraints"}),
    "1.37 fills the preemption policy in": (V1BETA1, only(preemptionPolicy="Never"), {"preemptionPolicy"}),
    "1.37 with composite groups": (
        V1BETA1,
        only("parentCompositePodGroupName", "workloadRef"),
        {"parentCompositePodGroupName"},
    ),
    "1.36 with preemption": (V1ALPHA2, only("disruptionMode"), {"disruptionMode"}),
    "1.36 fills in what it has dropped": (V1ALPHA2, only(disruptionMode="Pod", schedulingConstraints=None), set()),
}
GATED = {"schedulingConstraints", "resourceClaims", "preemptionPolicy", "parentCompositePodGroupName", "disruptionMode"}


@pytest.mark.parametrize(("kind", "answer", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_a_field_is_kept_that_comes_back(kind: GroupKind, answer: Answer, expected: set[str]) -> None:
    """As it was sent, or filled in where nothing was sent; a default in its place is none of ours."""
    asked = fields(Server(answer), kind)
    assert asked.kept(kind) is None
    assert asked.look(0.0)
    kept = asked.kept(kind)
    assert kept is not None
    found = {field for field in GATED if field in kept}
    # 1.37 fills in a mode of its own, which no gate decides about: it is not asked for.
    assert found - ({"disruptionMode"} if kind == V1BETA1 else set()) == expected


def test_nothing_is_asked_where_nothing_is_gated() -> None:
    """Volcano's groups, and the Workloads of 1.35: everything that is written is kept."""
    server = Server(only())
    asked = fields(server, V1ALPHA1)
    assert not asked.look(0.0)
    for kind in (V1ALPHA1, *VOLCANO.kinds):
        kept = asked.kept(kind)
        assert kept is not None
        assert "schedulingConstraints" in kept
    assert server.asked == 0


FAILURES: dict[str, tuple[Exception, bool]] = {
    "no answer": (Unreachable("reset"), False),
    "busy": (TooManyRequests(429, "TooManyRequests", "later"), False),
    "broken": (ApiError(500, "InternalError", "oops"), False),
    "forbidden": (Forbidden(403, "Forbidden", "no"), True),
    "refused": (ApiError(422, "Invalid", "spec"), True),
}


@pytest.mark.parametrize(("failure", "final"), FAILURES.values(), ids=FAILURES.keys())
def test_a_refusal_is_an_answer_and_silence_is_none(failure: Exception, *, final: bool) -> None:
    """Refused: nothing that depends on a gate is written. No answer: asked again soon, and no group is made yet."""
    server = Server(failure)
    asked = fields(server)
    assert asked.look(0.0) == final
    assert (asked.kept(V1BETA1) is not None) == final
    assert not asked.look(AGAIN / 2)
    assert server.asked == 1
    server.answer = only("schedulingConstraints")
    assert asked.look(EVERY if final else AGAIN)
    kept = asked.kept(V1BETA1)
    assert kept is not None
    assert "schedulingConstraints" in kept


def test_a_gate_that_changes_is_noticed_and_an_outage_changes_nothing() -> None:
    """An API server may come back with other gates; what was known stays while none answers."""
    server = Server(only("schedulingConstraints"))
    asked = fields(server)
    assert asked.look(0.0)
    assert not asked.look(EVERY)
    server.answer = Unreachable("gone")
    assert not asked.look(2 * EVERY)
    known = asked.kept(V1BETA1)
    assert known is not None
    assert "schedulingConstraints" in known
    server.answer = only()
    assert asked.look(2 * EVERY + AGAIN)
    kept = asked.kept(V1BETA1)
    assert kept is not None
    assert "schedulingConstraints" not in kept
