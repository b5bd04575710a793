"""Where bindings find their parameters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from policies.admission.documents import ParamKind, ParamRef
from policies.admission.matching import selects
from policies.admission.requests import labels_of

MOST: Final = 1000
"""Parameter objects of one binding: each is one evaluation of the whole policy."""

Params = Sequence[Mapping[str, Any] | None]


class MissingParamsError(ValueError):
    """A binding whose parameters can't be had; failurePolicy decides."""


class ParamSource(Protocol):
    """Looks parameter objects up."""

    def objects(self, kind: ParamKind) -> Iterable[Mapping[str, Any]] | None:
        """Give all objects of a kind, or `None` where the kind is not served."""


class ObjectParams:
    """Parameters out of a collection of objects."""

    def __init__(self, objects: Iterable[Mapping[str, Any]] = (), served: Iterable[ParamKind] = ()) -> None:
        """Take the objects, and the kinds that are served though there is no object of them."""
        self._objects: dict[ParamKind, list[Mapping[str, Any]]] = {kind: [] for kind in served}
        for content in objects:
            kind = ParamKind(str(content.get("apiVersion")), str(content.get("kind")))
            self._objects.setdefault(kind, []).append(content)

    def objects(self, kind: ParamKind) -> Iterable[Mapping[str, Any]] | None:
        """Give all objects of a kind, or `None` where there is neither an object nor word that it is served."""
        return self._objects.get(kind)


NO_PARAMS: Final = ObjectParams()


def collect_params(kind: ParamKind | None, ref: ParamRef | None, namespace: str, source: ParamSource) -> Params:
    """Give the parameters to evaluate with, one evaluation each; `None` is an evaluation without.

    Raises:
        MissingParamsError: the kind is not served, none is found and that is to be denied, or they are too many.
    """
    if kind is None or ref is None:
        return (None,)
    known = source.objects(kind)
    if known is None:
        raise MissingParamsError(f"paramKind kind `{kind.api_version}, Kind={kind.kind}` not known")
    found = [content for content in known if _meant(content, ref, namespace)]
    if len(found) > MOST:
        raise MissingParamsError(f"must find at most {MOST} params, got {len(found)}")
    if not found and ref.parameter_not_found_action == "Deny":
        raise MissingParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


def _meant(content: Mapping[str, Any], ref: ParamRef, namespace: str) -> bool:
    metadata = content.get("metadata") or {}
    where = metadata.get("namespace", "")
    if where and where != (ref.namespace or namespace):
        return False
    if ref.name:
        return bool(metadata.get("name") == ref.name)
    return ref.selector is not None and selects(ref.selector, labels_of(content))
