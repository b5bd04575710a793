"""What is being done to which object: the input of every policy."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from policies.admission.normalising import as_served
from policies.cel.expressions import Bindings
from policies.targets import Target

_RESOURCES: Final = {
    "Endpoints": "endpoints",
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
}
_CLUSTER_SCOPED: Final = frozenset(
    {
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "ClusterQueue",
        "ResourceFlavor",
        "Topology",
        "RuntimeClass",
        "StorageClass",
    }
)
_SIBILANTS: Final = ("s", "x", "ch", "sh")


class Kind(msgspec.Struct, frozen=True):
    """Group, version and kind."""

    group: str
    version: str
    kind: str


class Resource(msgspec.Struct, frozen=True):
    """Group, version and resource."""

    group: str
    version: str
    resource: str


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = {}


class Admission(msgspec.Struct, frozen=True, dict=True):
    """One operation on one object.

    Attributes:
        content: the object; `None` on DELETE.
        old: the object before, on UPDATE and DELETE.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        kind: of the object.
        resource: that was asked for.
        subresource: empty for the object itself.
        name: may be empty when the server is to make one up.
        namespace: empty for a cluster-scoped object.
        user: who asks.
        namespace_object: the Namespace, `None` for a cluster-scoped object.
        dry_run: whether nothing is stored.
        options: CreateOptions, UpdateOptions or DeleteOptions.
    """

    content: Mapping[str, Any] | None
    operation: str
    kind: Kind
    resource: Resource
    old: Mapping[str, Any] | None = None
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    user: User = User()
    namespace_object: Mapping[str, Any] | None = None
    dry_run: bool = False
    options: Mapping[str, Any] | None = None

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """Labels of the namespace."""
        return labels_of(self.namespace_object)

    @cached_property
    def request(self) -> dict[str, Any]:
        """What expressions see as `request`: empty fields are absent, as on the wire."""
        kind, resource = msgspec.to_builtins(self.kind), msgspec.to_builtins(self.resource)
        user = {
            "username": self.user.username,
            "uid": self.user.uid,
            "groups": list(self.user.groups),
            "extra": {key: list(values) for key, values in self.user.extra.items()},
        }
        optional = {
            "subResource": self.subresource,
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        return {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": self.operation,
            "userInfo": {key: value for key, value in user.items() if value},
            "dryRun": self.dry_run,
            "options": self.options,
            **{key: value for key, value in optional.items() if value},
        }

    @cached_property
    def bindings(self) -> Bindings:
        """What expressions without parameters see, converted once for all policies."""
        return self.bindings_with(None)

    def bindings_with(self, params: Mapping[str, Any] | None) -> Bindings:
        """What expressions see; converting costs more than most evaluations."""
        return Bindings(
            {
                "object": self.content,
                "oldObject": self.old,
                "request": self.request,
                "namespaceObject": self.namespace_object,
                "params": params,
            }
        )


def admission_of(  # noqa: PLR0913 - each has a default and a name
    content: Mapping[str, Any],
    *,
    operation: str = "CREATE",
    old: Mapping[str, Any] | None = None,
    namespace_labels: Mapping[str, str] | None = None,
    username: str = "",
    groups: Sequence[str] = (),
    target: Target | None = None,
) -> Admission:
    """Make the operation that a manifest or a stored object stands for, as the API server would see it.

    Args:
        content: the object; on DELETE the one that goes.
        operation: CREATE, UPDATE or DELETE.
        old: the object before an UPDATE.
        namespace_labels: of its namespace, where known.
        username: who asks, where known.
        groups: the user's groups.
        target: the API server that it is meant for, which decides what it drops and fills in.
    """
    group, _, version = str(content.get("apiVersion", "")).rpartition("/")
    kind = str(content.get("kind", ""))
    metadata = _mapping(content.get("metadata"))
    namespace = "" if kind in _CLUSTER_SCOPED else str(metadata.get("namespace") or "default")
    served = as_served(content, namespace, target or Target())
    deleted = operation == "DELETE"
    before = content if deleted else old
    return Admission(
        content=None if deleted else served,
        operation=operation,
        kind=Kind(group, version, kind),
        resource=Resource(group, version, resource_of(kind)),
        old=None if before is None else as_served(before, namespace, target or Target()),
        name=str(metadata.get("name") or ""),
        namespace=namespace,
        user=User(username, "", tuple(groups)),
        namespace_object=_namespace(namespace, namespace_labels or {}) if namespace else None,
    )


def admission_from_review(review: Mapping[str, Any], namespace_labels: Mapping[str, str] | None = None) -> Admission:
    """Read the request of an `admission.k8s.io/v1` AdmissionReview, whose objects the API server has filled in already.

    Raises:
        msgspec.ValidationError: it is of another shape.
    """
    request = msgspec.convert(review.get("request"), _Request)
    namespaced = request.namespace and request.kind.kind != "Namespace"
    return Admission(
        content=request.object,
        operation=request.operation,
        kind=request.kind,
        resource=request.resource,
        old=request.old_object,
        subresource=request.sub_resource,
        name=request.name,
        namespace=request.namespace,
        user=request.user_info,
        namespace_object=_namespace(request.namespace, namespace_labels or {}) if namespaced else None,
        dry_run=bool(request.dry_run),
        options=request.options,
    )


def resource_of(kind: str) -> str:
    """Give the resource of a kind: its plural, lower case."""
    lower = kind.lower()
    if lower.endswith(_SIBILANTS):
        lower += "e"
    elif lower.endswith("y"):
        lower = lower[:-1] + "ie"
    return _RESOURCES.get(kind, f"{lower}s" if lower else "")


def labels_of(content: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Give the labels of an object, none for no object."""
    return _mapping(_mapping((content or {}).get("metadata")).get("labels"))


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    operation: str
    kind: Kind
    resource: Resource
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: User = User()
    dry_run: bool | None = None
    options: dict[str, Any] | None = None


def _namespace(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    # The API server itself sets this label on every namespace.
    named = {"kubernetes.io/metadata.name": name, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": named},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
