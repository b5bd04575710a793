"""Pieces of the schemas that several versions share, and the words that the schemas add to JSON Schema.

The schemas are JSON Schema (draft 2020-12) with these annotations:

    x-plain       a plain Go value: zero means not set; a struct that is left out is an empty one
    x-gate        the API server drops the field while this gate is off, unless the stored object has it
    x-unknown     the API server of this version does not know the field and drops it
    x-open        a struct of which only the fields that concern groups are listed
    x-needed      these have to be set, and are told to be invalid where they aren't ("required" says they are missing)
    x-union       exactly one of these fields has to be set
    x-update      what an update may do: FIXED, SET_ONCE, NO_SET_NO_UNSET, or SAME_ITEMS for a list
    x-update-path the path that the API server reports for it, where that is not the field's own
    x-default-gate  the default is filled in while this gate is on
    x-kubernetes-list-map-keys  as in Kubernetes: items are told apart by this key
    x-duplicate-at-key  a second item of the same key is reported at the key, not at the item

Source: k8s.io/api scheduling/v1alpha1 of 1.35, v1alpha2 of 1.36, v1beta1 and v1alpha3 of 1.37.
"""

from typing import Any, Final

Schema = dict[str, Any]
Value = Any
"""Decoded JSON; what it is has been checked, or is being checked."""

FIXED: Final = "fixed"
SET_ONCE: Final = "set once"
NO_SET_NO_UNSET: Final = "no set, no unset"
SAME_ITEMS: Final = "same items"

HIGHEST_PRIORITY: Final = 1_000_000_000
MOST_TEMPLATES: Final = 8
MOST_CLAIMS: Final = 4
DEEPEST_TREE: Final = 4

EMPTY: Final[Schema] = {"type": "object", "properties": {}}
COUNT: Final[Schema] = {"type": "integer", "format": "int32", "minimum": 1, "x-plain": True}
PRIORITY: Final[Schema] = {"type": "integer", "format": "int32", "maximum": HIGHEST_PRIORITY}
TEXT: Final[Schema] = {"type": "string", "x-plain": True}


def plain(format_: str) -> Schema:
    """A string of a format; empty is not set."""
    return {"type": "string", "format": format_, "x-plain": True}


def pointer(format_: str) -> Schema:
    """A string of a format; empty is a value, and a wrong one."""
    return {"type": "string", "format": format_}


def struct(properties: Schema, *required: str, **annotations: object) -> Schema:
    """A struct."""
    wanted: Schema = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **wanted, **_spelt(annotations)}


def union(properties: Schema, **annotations: object) -> Schema:
    """A struct of which exactly one field is set."""
    return {**struct(properties, **annotations), "x-union": list(properties)}


def items_by(key: str, items: Schema, most: int | None = None, **annotations: object) -> Schema:
    """A list whose items are told apart by a key."""
    limit: Schema = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, "x-kubernetes-list-map-keys": [key], **limit, **_spelt(annotations)}


def also(schema: Schema, **annotations: object) -> Schema:
    """A schema with more annotations, written `x_gate` for `x-gate`."""
    return {**schema, **_spelt(annotations)}


def _spelt(annotations: dict[str, object]) -> Schema:
    return {name.replace("_", "-"): value for name, value in annotations.items()}


def basic_or_gang(gang: Schema) -> Schema:
    """Scheduling policy up to 1.36; it is only ever compared as a whole."""
    return union({"basic": EMPTY, "gang": gang}, x_plain=True)


CONTROLLER_REF: Final = struct(
    {"apiGroup": plain("dns-subdomain"), "kind": plain("path-segment"), "name": plain("path-segment")},
    "kind",
    "name",
)

CONSTRAINTS: Final = struct(
    {"topology": {"type": "array", "maxItems": 1, "items": struct({"key": plain("label-key")}, "key")}}
)

_CLAIM_SOURCES: Final = ["resourceClaimName", "resourceClaimTemplateName"]

CLAIMS_LIST: Final = items_by(
    "name",
    {
        **struct(
            {"name": plain("dns-label"), **{source: pointer("dns-subdomain") for source in _CLAIM_SOURCES}}, "name"
        ),
        "x-union": _CLAIM_SOURCES,
    },
    MOST_CLAIMS,
)

CONDITIONS: Final = items_by(
    "type",
    struct(
        {
            "type": plain("label-key"),
            "status": {**TEXT, "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0, "x-plain": True},
            "lastTransitionTime": {"type": "string", "format": "time"},
            "reason": {**plain("condition-reason"), "maxLength": 1024},
            "message": {**TEXT, "maxLength": 32768},
        },
        "type",
        "status",
        "lastTransitionTime",
        "reason",
    ),
)

CLAIM_STATUSES: Final = items_by(
    "name", struct({"name": TEXT, "resourceClaimName": pointer("dns-subdomain")}), MOST_CLAIMS
)

METADATA: Final = struct(
    {
        "name": TEXT,
        "generateName": TEXT,
        "namespace": TEXT,
        "uid": TEXT,
        "resourceVersion": TEXT,
        "selfLink": TEXT,
        "generation": {"type": "integer", "format": "int64", "minimum": 0, "x-plain": True},
        "creationTimestamp": {"type": "string", "format": "time"},
        "deletionTimestamp": {"type": "string", "format": "time"},
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {
            "type": "array",
            "items": struct(
                {
                    "apiVersion": TEXT,
                    "kind": TEXT,
                    "name": TEXT,
                    "uid": TEXT,
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
                "apiVersion",
                "kind",
                "name",
                "uid",
            ),
        },
        "managedFields": {"type": "array", "items": {"type": "object", "properties": {}, "x-open": True}},
    },
    x_plain=True,
)


def kind(spec: Schema, status: Schema | None = None, **definitions: Schema) -> Schema:
    """A whole kind: metadata, spec and perhaps status."""
    properties = {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA, "spec": {**spec, "x-plain": True}}
    if status is not None:
        properties["status"] = {**status, "x-plain": True}
    return {**struct(properties), "$defs": definitions}
