"""Which gated fields of group objects the API server keeps: asked by a dry run and read from its answer.

Fields whose feature gate is off are dropped without a word, and discovery shows no gates.
"""

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Final

import msgspec

from reconciler.contract import Api, ApiError, CallFailed, TooManyRequests, object_path
from reconciler.objects import GroupObject
from reconciler.replicas import EVERYTHING
from schedulers.abilities import DropsFields
from schedulers.contract import GroupKind, Provider

log = logging.getLogger(__name__)

EVERY: Final = 300.0
"""Seconds between two looks at one kind; gates change only when an API server starts anew."""

AGAIN: Final = 2.0
"""Seconds until a look that got no answer is repeated."""

REFUSED: Final = range(400, 500)
"""HTTP status of an answer that stays the same until somebody changes something, but for 429."""

PROBE: Final = "lockstep-probe-"

_decode: Final = msgspec.json.Decoder(GroupObject).decode


class ServedFields:
    """Remembers for each kind which fields are kept. Looked at from any thread, asked from one."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        providers: Iterable[Provider],
        first: Callable[[Iterable[GroupKind]], GroupKind | None],
    ) -> None:
        """Know nothing yet.

        Args:
            api: whom to ask; nothing is ever stored.
            namespace: one where the reconciler may create group objects.
            providers: whose group objects are made.
            first: gives the first of some kinds that the cluster serves.
        """
        self._api, self._namespace, self._first = api, namespace, first
        self._providers = [provider for provider in providers if isinstance(provider, DropsFields)]
        self._probes = {
            kind: fields for of in self._providers for kind in of.kinds if (fields := of.probe(kind)) is not None
        }
        self._kept: dict[GroupKind, frozenset[str]] = {}
        self._due: dict[GroupKind, float] = {}

    def kept(self, kind: GroupKind) -> Container[str] | None:
        """Give the fields of a kind that are kept, `None` while that is not known."""
        return self._kept.get(kind) if kind in self._probes else EVERYTHING

    def look(self, now: float) -> bool:
        """Ask about the kinds whose turn it is; tells whether anything is known now that was not before."""
        kinds = {self._first(provider.kinds) for provider in self._providers}
        due = [kind for kind in self._probes if kind in kinds and now >= self._due.get(kind, now)]
        return any(self._learn(kind, now) for kind in due)

    def _learn(self, kind: GroupKind, now: float) -> bool:
        found = self._ask(kind, self._probes[kind])
        self._due[kind] = now + (AGAIN if found is None else EVERY)
        if found is None or found == self._kept.get(kind):
            return False
        log.info("%s keeps %s", kind.title, ", ".join(sorted(found)) or "nothing")
        self._kept[kind] = found
        return True

    def _ask(self, kind: GroupKind, fields: Mapping[str, object]) -> frozenset[str] | None:
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"generateName": PROBE, "namespace": self._namespace},
            "spec": fields,
        }
        try:
            answer = self._api.request(
                "POST", object_path(kind, self._namespace), {"dryRun": "All"}, body=msgspec.json.encode(body)
            )
            return _kept(fields, _decode(answer.body).spec)
        except (CallFailed, msgspec.MsgspecError) as error:
            refused = isinstance(error, ApiError) and error.status in REFUSED and not isinstance(error, TooManyRequests)
            log.warning("which fields of %s are kept is not known: %s", kind.title, error)
            # What is refused is answered: nothing that depends on a gate is written then.
            return frozenset() if refused else None


def _kept(sent: Mapping[str, object], answered: Mapping[str, object]) -> frozenset[str]:
    """Give the fields that came back as they were sent, or that the server filled in: a default is no field of ours."""
    return frozenset(name for name, value in answered.items() if value is not None and value == sent.get(name, value))
