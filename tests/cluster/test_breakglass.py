"""`lockstep breakglass` and the documented uninstall, on an installation that refuses pods without a group."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gangs import keys
from lockstep.main import main
from tests.cluster.client import ApiError
from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.install import MUTATING, VALIDATING, Installation
from tests.cluster.resources import EVENTS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS, Json, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import PlaneFactory

REASON = "the nodes are upgraded, ticket 4711"
OPENED = "lockstep.dev/breakglass"
CHECK = "lockstep-final-check"
BINDINGS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
OBJECTS = ((MUTATING_WEBHOOKS, MUTATING), (VALIDATING_WEBHOOKS, VALIDATING), (BINDINGS, CHECK))
UNINSTALL = Path(__file__).parent.parent.parent / "docs" / "uninstall.md"


@pytest.fixture(scope="module")
def plane(start_plane: PlaneFactory) -> ControlPlane:
    """A control plane; nothing has to be placed."""
    return start_plane(Options(scheduler=False, kwok=False))


@pytest.fixture(scope="module")
def installation(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The installation of all schedulers with the component `fail-closed`."""
    with Installation(plane, tmp_path_factory.mktemp("breakglass"), components=["fail-closed"]) as running:
        yield running


def breakglass(plane: ControlPlane, *arguments: str) -> int:
    """Run the command."""
    return main(["breakglass", *arguments, "--kubeconfig", str(plane.kubeconfig())])


def specs(plane: ControlPlane) -> list[Any]:
    """What decides, of each object that is changed."""
    found = [plane.api.get(resource, name) for resource, name in OBJECTS]
    return [each.get("webhooks") or each["spec"] for each in found]


def marks(plane: ControlPlane) -> list[Any]:
    """The marks of an opening."""
    found = [plane.api.get(resource, name)["metadata"].get("annotations") or {} for resource, name in OBJECTS]
    return [json.loads(each[OPENED]) for each in found if OPENED in each]


def refusal(plane: ControlPlane) -> str:
    """Give the message that an LWS pod is refused with, empty when it is admitted."""
    labels = {keys.LWS_NAME: "vllm", keys.WORKER_INDEX: "0", keys.REVISION: "1"}
    pod: Json = PODS.make("vllm-0", metadata={"labels": labels, "annotations": {keys.SIZE: "1"}})
    pod["spec"] = {"containers": [{"name": "server", "image": "registry.example/server:1"}]}
    try:
        plane.api.create(PODS, pod, query="dryRun=All")
    except ApiError as error:
        return error.message
    return ""


def test_on_opens_and_off_puts_back_what_was_there(plane: ControlPlane, installation: Installation) -> None:
    """With the webhook away an LWS pod is refused, admitted while it is open, and refused again."""
    before = specs(plane)
    with installation.away("webhook"):
        plane.wait("it is refused", lambda: "lockstep breakglass on" in refusal(plane))
        assert breakglass(plane, "on", "--reason", REASON) == 0
        plane.wait("it is admitted", lambda: not refusal(plane))
        assert [(mark["reason"], mark["who"]) for mark in marks(plane)] == [(REASON, "admin")] * 3
        assert breakglass(plane, "off") == 0
        plane.wait("it is refused again", lambda: "lockstep breakglass on" in refusal(plane))
    assert specs(plane) == before
    assert marks(plane) == []


def test_each_change_leaves_an_event(plane: ControlPlane, installation: Installation) -> None:
    """With the reason, where the cluster's events are read."""
    assert breakglass(plane, "on", "--reason", REASON) == 0
    assert breakglass(plane, "off") == 0
    told = {
        (each["reason"], each["message"], each["involvedObject"]["name"]) for each in plane.api.items(EVENTS, "default")
    }
    for _, name in OBJECTS:
        assert ("BreakglassOn", f"opened by admin: {REASON}", name) in told
        assert ("BreakglassOff", "closed again", name) in told
    assert installation.processes["reconciler"].alive


def test_the_reconciler_does_not_fight_it(plane: ControlPlane, installation: Installation) -> None:
    """It goes on putting the bundle right, and leaves all else as it is; what is put back has the bundle of now."""
    before = specs(plane)
    assert breakglass(plane, "on", "--reason", REASON, "--uncalled") == 0
    plane.api.patch(
        MUTATING_WEBHOOKS, MUTATING, [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]
    )

    def repaired() -> bool:
        return bool(specs(plane)[0][0]["clientConfig"].get("caBundle") == before[0][0]["clientConfig"]["caBundle"])

    plane.wait("the bundle is put right", repaired, 90)
    assert len(marks(plane)) == 3
    conditions = [each["expression"] for each in specs(plane)[0][0]["matchConditions"]]
    assert conditions[-1] == "false"
    assert breakglass(plane, "off") == 0
    assert specs(plane) == before
    assert installation.processes["reconciler"].alive


def test_twice_on_keeps_what_was_there_first(plane: ControlPlane, installation: Installation) -> None:
    """The second reason does not hide the first, and off puts back the values from before both."""
    before = specs(plane)
    assert breakglass(plane, "on", "--reason", REASON) == 0
    assert breakglass(plane, "on", "--reason", "another") == 0
    assert {mark["reason"] for mark in marks(plane)} == {REASON}
    assert breakglass(plane, "off") == 0
    assert breakglass(plane, "off") == 0
    assert specs(plane) == before
    assert installation.processes["reconciler"].alive


def test_without_rights_it_says_so(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    """The one moment when a stack trace helps nobody."""
    words = ["breakglass", "on", "--reason", REASON, "--kubeconfig", str(plane.kubeconfig("stranger"))]
    assert main(words) == 4
    assert "must let us read and patch" in capsys.readouterr().err


def test_c56_the_documented_uninstall_leaves_no_configuration(plane: ControlPlane, installation: Installation) -> None:
    """The commands of docs/uninstall.md, in their order; a reconciler that still runs makes nothing again."""
    commands = re.findall(
        r"^ {4}kubectl (.*?)(?: +#.*)?$", UNINSTALL.read_text().partition("What stays")[0], re.MULTILINE
    )
    assert len(commands) == 2
    for command in commands:
        plane.kubectl(*command.replace("OVERLAY", str(installation.overlay())).split(), "--wait=false")
    plane.holds("no configuration of ours is there", lambda: not left_over(plane), 5)
    assert not refusal(plane)


def left_over(plane: ControlPlane) -> list[str]:
    """Names of what could still stop a pod."""
    found = [each for resource, _ in OBJECTS for each in plane.api.items(resource)]
    return [name for each in found if (name := each["metadata"]["name"]).startswith("lockstep")]
