"""Kinds that the API server does not know by itself: register them, ask whether they are served."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.cluster.client import ApiError
from tests.cluster.resources import CUSTOM_RESOURCES, Json, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cluster.client import Client
    from tests.cluster.waiting import Waiter

VOLCANO_CRDS = Path(__file__).parent / "crds" / "volcano.yaml"
LWS_CRDS = ("leaderworkerset.x-k8s.io_leaderworkersets.yaml",)
KOORDINATOR_CRDS = ("koordinator.yaml",)
KAI_CRDS = ("kai.yaml",)
COSCHEDULING_CRDS = ("scheduling.x-k8s.io_podgroups.yaml", "scheduling.x-k8s.io_elasticquotas.yaml")


def read(files: Iterable[Path]) -> list[Json]:
    """All documents of these files."""
    # The loader in Python takes a second for one of these.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for path in files for document in yaml.load_all(path.read_text(), loader) if document]


class Kinds:
    """The custom kinds of one control plane."""

    def __init__(self, api: Client, waiter: Waiter) -> None:
        """Act through `api`."""
        self._api = api
        self._waiter = waiter

    def register(self, definitions: list[Json]) -> None:
        """Apply CustomResourceDefinitions and wait until the API server serves them."""
        for definition in definitions:
            self._create_or_apply(definition)
        for definition in definitions:
            spec = definition["spec"]
            version = f"{spec['group']}/{spec['versions'][0]['name']}"
            kind = Resource(version, spec["names"]["plural"], spec["names"]["kind"])
            self._waiter.wait(f"{kind.plural} of {version} are served", lambda kind=kind: self.served(kind), 60, 0.05)  # type: ignore[misc]

    def _create_or_apply(self, definition: Json) -> None:
        # Creating is much cheaper for the API server than applying: the schemas are large.
        try:
            self._api.create(CUSTOM_RESOURCES, definition)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            self._api.apply(CUSTOM_RESOURCES, definition)

    def served(self, resource: Resource) -> bool:
        """Does the API server serve this kind?"""
        return self._api.text("GET", f"{resource.collection()}?limit=1")[0] == HTTPStatus.OK
