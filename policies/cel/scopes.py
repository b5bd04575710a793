"""The names an expression may use, with their types: what `object`, `request` and the rest are.

Source: `BuildRequestType` and `BuildNamespaceType` in kubernetes
`staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from policies.cel.functions import BOOL, DYN, INT, STRING, TIMESTAMP
from policies.cel.syntax import Type

Shape: TypeAlias = Mapping[str, "Type | Shape"]
"""The fields of an object whose type the API server knows."""

_STRINGS: Final = Type("list", (STRING,))
_LABELS: Final = Type("map", (STRING, STRING))
_KIND: Final[Shape] = {"group": STRING, "version": STRING, "kind": STRING}
_RESOURCE: Final[Shape] = {"group": STRING, "version": STRING, "resource": STRING}

SHAPES: Final[Mapping[str, Shape]] = {
    "request": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": {
            "username": STRING,
            "uid": STRING,
            "groups": _STRINGS,
            "extra": Type("map", (STRING, _STRINGS)),
        },
        "dryRun": BOOL,
        "options": DYN,
    },
    "namespaceObject": {
        "metadata": {
            "name": STRING,
            "generateName": STRING,
            "namespace": STRING,
            "labels": _LABELS,
            "annotations": _LABELS,
            "UID": STRING,
            "creationTimestamp": TIMESTAMP,
            "deletionGracePeriodSeconds": INT,
            "deletionTimestamp": TIMESTAMP,
            "generation": INT,
            "resourceVersion": STRING,
            "finalizers": _STRINGS,
        },
        "spec": {"finalizers": _STRINGS},
        "status": {"phase": STRING},
    },
}

UNTYPED: Final = ("object", "oldObject")
PARAMS: Final = "params"
VARIABLES: Final = "variables"
RESERVED: Final = frozenset({*UNTYPED, *SHAPES, PARAMS, VARIABLES, "authorizer"})
"""Names that no macro may bind anew: we tell these objects by name."""


def declarations(*, params: bool) -> dict[str, Type]:
    """Give the types of all names but the policy's own variables.

    The fields of typed objects are names of their own (`request.operation`): the engine's types can't say what an
    object of Kubernetes holds, and it prefers the longest name.
    """
    names = dict.fromkeys((*UNTYPED, *SHAPES, *((PARAMS,) if params else ())), DYN)
    for root, shape in SHAPES.items():
        names.update(_leaves(root, shape))
    return names


def _leaves(prefix: str, shape: Shape) -> dict[str, Type]:
    found: dict[str, Type] = {}
    for field, kind in shape.items():
        name = f"{prefix}.{field}"
        found.update({name: kind} if isinstance(kind, Type) else _leaves(name, kind))
    return found
