"""The Helm chart, made of what kustomize makes of the base alone and with each component."""

import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Final

import yaml

from schedulers.registry import all_providers
from tests.manifests.built import objects_of
from tests.manifests.choices import ABSENT, merged
from tests.manifests.documents import Json
from tests.manifests.rendered import IN_BASE
from tests.manifests.templates import Raw, Writer

Identity = tuple[str, str]

OPTIONS: Final[Mapping[str, str]] = {
    "ha": "highAvailability",
    "fail-closed": "failClosed",
    "policies-deny": "policiesDeny",
    "policy-reports": "policyReports",
    "cert-manager": "certManager",
    "monitoring": "monitoring",
    "network-policy": "networkPolicy",
    "mtls": "clientCertificates",
}
"""Component -> the chart's value that turns it on, in the order in which an overlay lists them."""

SUMMARIES: Final[Mapping[str, str]] = {
    "highAvailability": "three replicas of each, spread over zones",
    "failClosed": "refuse LWS pods that would start without their group",
    "policiesDeny": "refuse what breaks a rule",
    "policyReports": "keep PolicyReports of the cluster",
    "certManager": "cert-manager makes the certificates",
    "monitoring": "ServiceMonitors, alerts and a dashboard",
    "networkPolicy": "nothing in and out but what is needed",
    "clientCertificates": "only who has a certificate of the authority in lockstep-client-ca may call the webhook",
}

CONFIGURATION: Final = Raw(
    line="|",
    block=(
        "apiVersion: lockstep.dev/v1alpha1",
        "kind: Configuration",
        "{{- toYaml .Values.configuration | nindent 4 }}",
    ),
)
SCHEDULERS: Final = Raw(
    line="""{{ printf "['%s']" (keys .Values.configuration.schedulers | sortAlpha | join "', '") | quote }}"""
)

HEAD: Final = "{{- /* Made of manifests/base and its components by `make render`. */ -}}\n"


def chart() -> Iterator[tuple[str, str]]:
    """Give each file of the chart by its path within it."""
    yield "Chart.yaml", _chart()
    yield "values.yaml", _values()
    yield "values.schema.json", _schema()
    by_kind: dict[str, list[str]] = {}
    writer = Writer(_conditions())
    for (kind, _), tree in _trees().items():
        by_kind.setdefault(kind, []).append(_placed(writer.document(tree)))
    for kind, documents in by_kind.items():
        yield f"templates/{kind.lower()}.yaml", HEAD + "".join(documents)


def _conditions() -> dict[str, str]:
    schedulers = {
        name: f'has "{name}" (values .Values.configuration.schedulers)'
        for name in all_providers()
        if name not in IN_BASE
    }
    return schedulers | {component: f".Values.{value}" for component, value in OPTIONS.items()}


def _trees() -> dict[Identity, Json]:
    """Merge every object's versions."""
    base = _by_identity(objects_of())
    versions = {component: _by_identity(objects_of(component)) for component in _conditions()}
    names = dict.fromkeys(identity for each in (base, *versions.values()) for identity in each)
    trees = {
        identity: merged(
            base.get(identity, ABSENT),
            {component: each.get(identity, ABSENT) for component, each in versions.items()},
            "/".join(identity),
        )
        for identity in names
    }
    trees["ConfigMap", "lockstep-config"]["data"]["config.yaml"] = CONFIGURATION
    variables = trees["ValidatingAdmissionPolicy", "lockstep-final-check"]["spec"]["variables"]
    variables[0]["expression"] = SCHEDULERS
    return trees


def _by_identity(documents: list[Json]) -> dict[Identity, Json]:
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def _placed(text: str) -> str:
    """Put the release's own namespace and image in the place of the manifests'."""
    image = "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    placed = text.replace("lockstep-system", "{{ .Release.Namespace }}")
    placed = placed.replace(f"image: lockstep:{metadata.version('lockstep')}", f"image: {image}")
    if placed.startswith("---\napiVersion: v1\nkind: Namespace\n"):
        return "{{- if .Values.createNamespace }}\n" + placed + "{{- end }}\n"
    return placed


def _chart() -> str:
    version = metadata.version("lockstep")
    content = {
        "apiVersion": "v2",
        "name": "lockstep",
        "description": metadata.metadata("lockstep")["Summary"],
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.35.0-0",
    }
    return yaml.safe_dump(content, sort_keys=False)


def _schema() -> str:
    """Refuse values that nothing reads: a misspelt `failClosed` would leave the door open without a word."""
    texts = {"type": "string"}
    schedulers = {"type": "object", "additionalProperties": {"enum": sorted(all_providers())}, "minProperties": 1}
    configuration = {
        "schedulers": schedulers,
        "defaults": {"type": "object"},
        "repair": {"enum": ["report", "recreate"]},
    }
    properties: Json = {
        "image": _closed({"repository": texts, "tag": texts}),
        "createNamespace": {"type": "boolean"},
        "configuration": _closed(configuration),
        "global": {"type": "object"},
    }
    properties |= {name: {"type": "boolean"} for name in SUMMARIES}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_closed(properties)}
    return json.dumps(schema, indent=1) + "\n"


def _closed(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _values() -> str:
    providers = ", ".join(all_providers())
    lines = [
        "# The image, in a registry of yours.",
        "image:",
        "  repository: lockstep",
        '  tag: ""  # the version of the chart',
        "",
        "# Make the Namespace too, with the labels of Pod Security; `helm install --create-namespace` sets no labels.",
        "createNamespace: false",
        "",
        f"# The configuration file. spec.schedulerName -> provider, of {providers}:",
        "# each one named here gets its rights, and no other.",
        "configuration:",
        "  schedulers:",
        "    default-scheduler: native",
        "",
    ]
    lines += [line for name, summary in SUMMARIES.items() for line in (f"# {summary}", f"{name}: false")]
    return "".join(f"{line}\n" for line in lines)
