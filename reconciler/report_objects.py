"""Keeps report objects as they should be: creates, changes and deletes, and touches nobody else's."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from reconciler.contract import JSON, MERGE_PATCH, Api, Conflict, NotFound, object_path
from reconciler.wire import decode_page
from schedulers.contract import GroupKind

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = "lockstep"
PAGE: Final = 500

Json = dict[str, Any]


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Report(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    results: Any = None
    scope: Any = None
    summary: Any = None


def keep_reports(api: Api, kinds: Iterable[GroupKind], wanted: Sequence[Mapping[str, Any]]) -> int:
    """Make the reports of some kinds be exactly the wanted ones; those without our label are not looked at.

    Args:
        api: a fenced `Api` in the reconciler.
        kinds: kinds that are served.
        wanted: whole objects.

    Returns:
        How many were written or deleted.

    Raises:
        reconciler.contract.CallFailed: a call did not succeed; what was done stays done.
    """
    return sum(_keep(api, kind, [each for each in wanted if each["kind"] == kind.kind]) for kind in kinds)


def _keep(api: Api, kind: GroupKind, wanted: Sequence[Mapping[str, Any]]) -> int:
    have = {
        (report.metadata.namespace, report.metadata.name): report
        for report in _listed(api, kind)
        if (report.metadata.labels or {}).get(MANAGED_BY) == OURS
    }
    writes = 0
    for report in wanted:
        key = report["metadata"].get("namespace", ""), report["metadata"]["name"]
        writes += _write(api, kind, report, have.pop(key, None))
    for namespace, name in have:
        _delete(api, kind, namespace, name)
    return writes + len(have)


def _write(api: Api, kind: GroupKind, report: Mapping[str, Any], live: _Report | None) -> int:
    namespace, name = report["metadata"].get("namespace", ""), report["metadata"]["name"]
    if live is None:
        try:
            api.request("POST", object_path(kind, namespace), body=msgspec.json.encode(report), content_type=JSON)
        except Conflict:
            return 0  # another's report of our name: left alone, told by the next audit's conflict again
        return 1
    changed = {field: report[field] for field in ("results", "scope", "summary")}
    if all(getattr(live, field) == value for field, value in changed.items()):
        return 0
    path = object_path(kind, namespace, name)
    api.request("PATCH", path, body=msgspec.json.encode(changed), content_type=MERGE_PATCH)
    return 1


def _delete(api: Api, kind: GroupKind, namespace: str, name: str) -> None:
    try:
        api.request("DELETE", object_path(kind, namespace, name))
    except NotFound:
        return


def _listed(api: Api, kind: GroupKind) -> list[_Report]:
    found: list[_Report] = []
    more = ""
    while True:
        query = {"labelSelector": f"{MANAGED_BY}={OURS}", "limit": str(PAGE)} | ({"continue": more} if more else {})
        page = decode_page(api.request("GET", object_path(kind), query).body)
        found += [msgspec.json.decode(raw, type=_Report) for raw in page.items or ()]
        more = page.metadata.more or ""
        if not more:
            return found
