"""Every way in which a test spoils a sound installation for a while."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.main import main
from manifests.shipped import NAMESPACE
from tests.cluster.install import DEPLOYMENTS, MUTATING, RECONCILER
from tests.cluster.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NATIVE_GROUPS,
    SECRETS,
    Json,
    Resource,
)
from tests.webhook.serving import make_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.cluster.sound import Place

    Plant = Callable[["Place"], AbstractContextManager[object]]

BUDGETS = Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
SERVICES = Resource("v1", "services", "Service")
BINDINGS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
SERVICE_NAMES = (f"lockstep-webhook.{NAMESPACE}.svc", f"lockstep-policy.{NAMESPACE}.svc")
WEBHOOK, POLICY, CHECK = "lockstep-webhook", "lockstep-policy", "lockstep-final-check"


def replace(path: str, value: object) -> Json:
    """A JSON patch operation."""
    return {"op": "replace", "path": path, "value": value}


def add(path: str, value: object) -> Json:
    """A JSON patch operation."""
    return {"op": "add", "path": path, "value": value}


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        title: a sentence.
        check: the check that finds it.
        what: a part of what it says.
        plant: makes it while it is entered.
        arguments: options of the doctor.
    """

    title: str
    check: str
    what: str
    plant: Plant
    arguments: tuple[str, ...] = ()


def entry(path: str, value: object) -> Plant:
    """Change a field of the stamping webhook's entry."""
    return lambda place: place.patched(MUTATING_WEBHOOKS, MUTATING, replace(f"/webhooks/0/{path}", value))


@contextlib.contextmanager
def with_bundle(place: Place, bundle: bytes | None) -> Iterator[None]:
    """Another bundle, while nobody repairs it."""
    path = "/webhooks/0/clientConfig/caBundle"
    operation = {"op": "remove", "path": path} if bundle is None else replace(path, base64.b64encode(bundle).decode())
    with place.stopped("reconciler"), place.patched(MUTATING_WEBHOOKS, MUTATING, operation):
        yield


@contextlib.contextmanager
def with_leaf(place: Place, chain: bytes) -> Iterator[None]:
    """Another certificate in the Secret, while nobody repairs it; the webhook is not handed its key."""
    value = base64.b64encode(chain).decode()
    with place.stopped("reconciler"), place.patched(SECRETS, "lockstep-tls", replace("/data/tls.crt", value)):
        yield


def with_leaf_of_age(days: int) -> Plant:
    """A certificate that was made so many days ago."""
    return lambda place: with_leaf(place, leaf(*SERVICE_NAMES, age=dt.timedelta(days=days)))


def with_leaf_for_others(place: Place) -> AbstractContextManager[None]:
    """A certificate for a name that nobody asks for."""
    return with_leaf(place, leaf("other.example"))


def audit_only(place: Place) -> AbstractContextManager[None]:
    """A rule that warns nobody."""
    return place.patched(BINDINGS, CHECK, replace("/spec/validationActions", ["Audit"]))


def relaxed(place: Place) -> AbstractContextManager[None]:
    """Our namespace takes any pod."""
    return place.patched(
        NAMESPACES, NAMESPACE, replace(f"/metadata/labels/{ENFORCED.replace('/', '~1')}", "privileged")
    )


def without_events(place: Place) -> AbstractContextManager[None]:
    """The reconciler may not say what is wrong."""
    role = place.plane.api.get(CLUSTER_ROLES, RECONCILER)
    number = next(number for number, rule in enumerate(role["rules"]) if rule["resources"] == ["events"])
    return place.patched(CLUSTER_ROLES, RECONCILER, replace(f"/rules/{number}/verbs", ["patch"]))


def with_secrets(place: Place) -> AbstractContextManager[None]:
    """The reconciler may read every Secret."""
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    return place.patched(CLUSTER_ROLES, RECONCILER, add("/rules/-", rule))


def writable(place: Place) -> AbstractContextManager[None]:
    """The webhook's container may write its root."""
    return place.patched(DEPLOYMENTS, WEBHOOK, replace(READ_ONLY, value=False))


def alone(place: Place) -> AbstractContextManager[None]:
    """One replica of the policy service."""
    return place.patched(DEPLOYMENTS, POLICY, replace("/spec/replicas", 1))


def misconfigured(place: Place) -> AbstractContextManager[None]:
    """A configuration that no process would start with."""
    return place.patched(CONFIG_MAPS, "lockstep-config", replace("/data/config.yaml", "kind: Nonsense"))


def stuck(place: Place) -> AbstractContextManager[None]:
    """New pods find no node."""
    return place.patched(DEPLOYMENTS, POLICY, add("/spec/template/spec/nodeSelector", {"no": "where"}))


@contextlib.contextmanager
def opened(place: Place) -> Iterator[None]:
    """Breakglass."""
    kubeconfig = ("--kubeconfig", str(place.plane.kubeconfig()))
    assert main(["breakglass", "on", "--reason", "a test", *kubeconfig]) == 0
    try:
        yield
    finally:
        assert main(["breakglass", "off", *kubeconfig]) == 0


@contextlib.contextmanager
def unstamped(place: Place) -> Iterator[None]:
    """An LWS whose pods were made while the webhook was not called."""
    with place.without(MUTATING_WEBHOOKS, MUTATING):
        with_pods(place, "late", scheduler=None)
    try:
        yield
    finally:
        remove(place, "late")


@contextlib.contextmanager
def of_absent_scheduler(place: Place) -> Iterator[None]:
    """An LWS for a scheduler whose kind nobody serves."""
    with_pods(place, "volcanic", scheduler="volcano")
    try:
        yield
    finally:
        remove(place, "volcanic")


def with_pods(place: Place, name: str, scheduler: str | None) -> None:
    """Create an LWS and wait for its pods."""
    place.plane.lws.create(name, 1, 2, scheduler=scheduler, gpus=1)
    place.plane.wait("both pods exist", lambda: len(place.plane.lws.pods(name)) == 2, 60)


def remove(place: Place, name: str) -> None:
    """Delete an LWS and wait until nothing is left."""
    place.plane.lws.delete(name)
    place.plane.wait("its pods are gone", lambda: not place.plane.lws.pods(name), 60)


@contextlib.contextmanager
def old_lws(place: Place) -> Iterator[None]:
    """A Deployment of LWS as old as no one should have."""
    container = {"name": "manager", "image": "registry.example/lws/lws:v0.5.1"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    with place.added(DEPLOYMENTS, DEPLOYMENTS.make("lws-controller-manager", "default", spec=spec), "default"):
        yield


@contextlib.contextmanager
def own_gangs(place: Place) -> Iterator[None]:
    """LWS told to make groups itself."""
    data = {"controller_manager_config.yaml": "gangSchedulingManagement:\n  schedulerProvider: volcano\n"}
    with place.added(CONFIG_MAPS, CONFIG_MAPS.make("lws-manager-config", "default", data=data), "default"):
        yield


@contextlib.contextmanager
def bound_to_everything(place: Place) -> Iterator[None]:
    """The reconciler as cluster administrator."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": RECONCILER, "namespace": NAMESPACE}
    binding = CLUSTER_ROLE_BINDINGS.make("helpful", roleRef=role, subjects=[subject])
    with place.added(CLUSTER_ROLE_BINDINGS, binding):
        yield


@contextlib.contextmanager
def called_first(place: Place) -> Iterator[None]:
    """LWS's webhooks under a name before ours."""
    lws = place.plane.api.get(MUTATING_WEBHOOKS, "lws-mutating-webhook-configuration")
    body = MUTATING_WEBHOOKS.make("a-lws", webhooks=lws["webhooks"])
    with place.added(MUTATING_WEBHOOKS, body):
        yield


@contextlib.contextmanager
def orphan(place: Place) -> Iterator[None]:
    """A group without a leader."""
    labels = {"lockstep.dev/group": "left"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    with place.added(
        NATIVE_GROUPS, NATIVE_GROUPS.make("left", "default", metadata={"labels": labels}, spec=spec), "default"
    ):
        yield


@contextlib.contextmanager
def elsewhere(place: Place) -> Iterator[None]:
    """A rendering for a namespace where nothing is."""
    text = place.manifests.read_text()
    place.manifests.write_text(text.replace(NAMESPACE, "lockstep-elsewhere"))
    try:
        yield
    finally:
        place.manifests.write_text(text)


@contextlib.contextmanager
def nothing(_: Place) -> Iterator[None]:
    """The fault is in the options."""
    yield


def foreign_authority() -> bytes:
    """The certificate of an authority that nobody here knows."""
    return make_pair()[0].certificate_pem


def leaf(*hosts: str, age: dt.timedelta = dt.timedelta()) -> bytes:
    """A certificate."""
    return make_pair(hosts, dt.datetime.now(dt.UTC) - age)[1].certificate_pem


def gone(resource: Resource, name: str) -> Plant:
    """An object is deleted."""
    return lambda place: place.without(resource, name)


def changed(resource: Resource, name: str, path: str, value: object) -> Plant:
    """A field has another value."""
    return lambda place: place.patched(resource, name, replace(path, value))


def away(container: str) -> Plant:
    """A container does not run."""
    return lambda place: place.stopped(container)


VERSION = "/metadata/labels/app.kubernetes.io~1version"
SELECTOR = "/spec/selector/app.kubernetes.io~1name"
ENFORCED = "pod-security.kubernetes.io/enforce"
IMAGE = "/spec/template/spec/containers/1/image"
READ_ONLY = "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem"
ENTRY = "webhooks[pods.lockstep.dev]"
ADMINISTRATOR = f'"helpful": must not bind "{RECONCILER}" to ClusterRole "cluster-admin"'

FAULTS = [
    Fault("nothing is installed", "installed", 'Namespace "lockstep-elsewhere": must be there', elsewhere),
    Fault("a budget is gone", "installed", f'"lockstep-system/{WEBHOOK}": must be there', gone(BUDGETS, WEBHOOK)),
    Fault("the webhook is not registered", "installed", f'"{MUTATING}": must be', gone(MUTATING_WEBHOOKS, MUTATING)),
    Fault("the final check binds nothing", "installed", f'Binding "{CHECK}": must be there', gone(BINDINGS, CHECK)),
    Fault("it is an older version", "versions", 'got "0.0.9"', changed(DEPLOYMENTS, POLICY, VERSION, "0.0.9")),
    Fault("two versions in one pod", "versions", "must run one image", changed(DEPLOYMENTS, WEBHOOK, IMAGE, "a:1")),
    Fault("the webhook is away", "answering", "must get label lockstep.dev/group, got none", away("webhook")),
    Fault("the Service leads nowhere", "answering", "a ready address", changed(SERVICES, WEBHOOK, SELECTOR, "other")),
    Fault("the bundle is empty", "bundle", "must hold certificates", lambda place: with_bundle(place, None)),
    Fault("the bundle is foreign", "bundle", "must verify", lambda place: with_bundle(place, foreign_authority())),
    Fault("the leaf is not renewed", "certificates", "must have been renewed by now", with_leaf_of_age(25)),
    Fault("the leaf has ended", "certificates", "must be valid, ended", with_leaf_of_age(40)),
    Fault("the leaf is for another name", "certificates", f'must be for "{SERVICE_NAMES[0]}"', with_leaf_for_others),
    Fault("the cluster depends on the webhook", "drift", f"{ENTRY}.failurePolicy", entry("failurePolicy", "Fail")),
    Fault("every pod goes through it", "drift", f"{ENTRY}.objectSelector", entry("objectSelector", {})),
    Fault("a rule only writes to the log", "drift", "spec.validationActions", audit_only),
    Fault("Pod Security is relaxed", "drift", f'{ENFORCED}: must be "restricted", got "privileged"', relaxed),
    Fault("a root can be written", "drift", "readOnlyRootFilesystem: must be true, got false", writable),
    Fault("a right is missing", "rights", 'must allow "create" on "events"', without_events),
    Fault("a right was added", "rights", 'must not allow "list" on "secrets"', with_secrets),
    Fault("the reconciler may do everything", "rights", ADMINISTRATOR, bound_to_everything),
    Fault("LWS is called first", "order", 'must sort before "a-lws"', called_first),
    Fault("LWS is too old", "leaderworkerset", "must be from 0.6 to 0.10, got 0.5", old_lws),
    Fault("LWS makes groups itself", "leaderworkerset", 'must not be set beside Lockstep, got "volcano"', own_gangs),
    Fault("the configuration is none", "schedulers", "must be a configuration, got", misconfigured),
    Fault("groups are not served", "schedulers", 'scheduler "volcano" of 2 LWS pods', of_absent_scheduler),
    Fault("there is one replica", "replicas", "must be at least 2, got 1", alone),
    Fault("a rollout is stuck", "replicas", "must have 2 ready replicas of its latest template", stuck),
    Fault("nobody leads", "lease", "must have a holder, got none", away("reconciler")),
    Fault("admission was left open", "breakglass", 'by "admin": "a test"', opened),
    Fault("pods came without a group", "pods", 'replica "default/late-0": must be in a group', unstamped),
    Fault("a group is left over", "groups", "must be owned by a leader pod that lives, got none", orphan),
    Fault("an exception ends soon", "exceptions", "must last for 14 days", nothing, ("--exceptions", "soon")),
    Fault("an exception has ended", "exceptions", "must not be past", nothing, ("--exceptions", "past")),
]
